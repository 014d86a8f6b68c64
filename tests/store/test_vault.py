"""The vault gives back what it was given, and keeps nothing twice."""

import io
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.store import vault as vault_module
from palace_pipeline.store.vault import RecordTooLarge, Vault, content_hash


@pytest.fixture
def vault(tmp_path: Path):
    vault = Vault(tmp_path / "vault")
    yield vault
    vault.close()


def test_equal_pieces_are_stored_once(vault: Vault, tmp_path: Path) -> None:
    first = vault.put_bytes(b"the same element" * 100)
    second = vault.put_bytes(b"the same element" * 100)
    vault.commit()
    assert first == second
    assert sqlite3.connect(tmp_path / "vault/vault.sqlite").execute("select count(*) from pieces").fetchone() == (1,)


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=300), piece=st.integers(1, 64))
def test_a_stream_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, data: bytes, piece: int) -> None:
    vault = Vault(tmp_path_factory.mktemp("v"))
    old, vault_module.PIECE_BYTES = vault_module.PIECE_BYTES, piece
    try:
        names = [name for name, _ in vault.put_stream(io.BytesIO(data))]
        assert vault.open_pieces(names).read() == data
        assert vault.open_pieces(vault.put_bytes(data)).read() == data
    finally:
        vault_module.PIECE_BYTES = old
        vault.close()


def test_what_was_not_committed_is_gone_after_a_crash(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    kept = vault.put_record(b"kept")
    vault.commit()
    lost = vault.put_record(b"lost")
    vault._db.execute("ROLLBACK")
    assert vault.record(kept) == b"kept"
    with pytest.raises(KeyError, match=lost[:12]):
        vault.record(lost)
    vault.close()


def test_dropped_records_leave_no_bytes_behind(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    secret = bytes(range(33, 120)) * 3  # does not compress away entirely
    name = vault.put_record(secret)
    vault.commit()
    vault.drop_records([name])
    vault.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert bytes(range(33, 120)) not in stored


@settings(max_examples=50, deadline=None)
@given(parts=st.lists(st.binary(max_size=40)), piece=st.integers(1, 100))
def test_a_record_in_parts_is_the_same_record(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], piece: int
) -> None:
    vault = Vault(tmp_path_factory.mktemp("v"))
    old, vault_module.PIECE_BYTES = vault_module.PIECE_BYTES, piece
    try:
        name = content_hash(b"".join(parts))
        vault.put_record_parts(name, parts)
        vault.put_record_parts(name, parts)
        assert vault.record(name) == b"".join(parts)
        assert vault.put_record(b"".join(parts)) == name
    finally:
        vault_module.PIECE_BYTES = old
        vault.close()


def test_a_record_that_no_cell_holds_is_refused_while_it_comes(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_module, "PIECE_BYTES", 1000)
    monkeypatch.setattr(vault_module, "_LARGEST_BLOB", 100_000)
    with pytest.raises(RecordTooLarge):
        vault.put_record_parts("name", (os.urandom(1000) for _ in range(10**9)))


def test_files_are_the_owners_alone(vault: Vault, tmp_path: Path) -> None:
    vault.put_bytes(b"x")
    vault.commit()
    assert (tmp_path / "vault").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "vault/vault.sqlite").stat().st_mode & 0o777 == 0o600
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "vault").iterdir())
