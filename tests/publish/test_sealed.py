"""Files of an export: ours are known again, others' are left alone."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.publish.sealed import Kind, building, put, seal_of, seal_size

KINDS: list[Kind] = ["html", "docx", "pdf", "md"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_own_file_is_replaced_and_an_equal_one_is_not_touched(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "a"
    assert put(path, b"one", kind) == "written"
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert put(path, b"one", kind) == "unchanged"
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert put(path, b"two", kind) == "written"
    assert path.read_bytes().startswith(b"two")
    assert len(path.read_bytes()) == 3 + seal_size(kind)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [b"mine", b""])
def test_a_file_that_somebody_wrote_or_changed_stays(tmp_path: Path, kind: Kind, change: bytes) -> None:
    path = tmp_path / "a"
    put(path, b"one", kind)
    changed = path.read_bytes().replace(b"one", b"0ne") if change else b""
    path.write_bytes(changed)
    assert put(path, b"two", kind) == "in the way"
    assert path.read_bytes() == changed
    assert put(path, b"two", kind, overwrite=True) == "written"
    assert seal_of(path) is not None


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    put(other, b"one", "md")
    kept = other.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(other)
    assert put(link, b"two", "md") == "in the way"
    assert put(link, b"two", "md", overwrite=True) == "written"
    assert other.read_bytes() == kept
    assert not link.is_symlink()
    (tmp_path / "folder").mkdir()
    assert put(tmp_path / "folder", b"x", "md") == "in the way"


def test_an_error_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    put(path, b"one", "md")
    kept = path.read_bytes()

    def half() -> None:
        with building(path, "md") as file:
            file.stream.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert path.read_bytes() == kept
    assert list(tmp_path.iterdir()) == [path]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), at=st.integers(0, 10_000), to=st.integers(1, 255))
def test_no_changed_byte_goes_unseen(tmp_path: Path, data: bytes, at: int, to: int) -> None:
    path = tmp_path / "a"
    put(path, data, "html", overwrite=True)
    whole = bytearray(path.read_bytes())
    assert seal_of(path) is not None
    whole[at % len(data + b"<!-- palace export ")] ^= to
    path.write_bytes(bytes(whole))
    assert seal_of(path) is None
