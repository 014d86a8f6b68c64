"""`palace backup` and `restore`: an archive as one file and back, and backups that are cut, damaged, new or none at all."""

import random
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from palace_pipeline.backup import Backup, BackupError, make_backup, restore, verify
from palace_pipeline.backup import make as make_module
from palace_pipeline.store.files import Told
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.versions import TooNew
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import assert_same, home_at, take


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("archive")
    export(
        folder / "exports/a.json",
        chat("a", "why is the sky blue?", "scattering"),
        chat("b", "数据库怎么选", "看读写比例"),
    )
    export(folder / "exports/c.json", chat("c", "and the sea?", "the same", start=START + 90 * 86_400))
    home = home_at(folder / "home")
    take(home, folder / "exports")
    page = next(home.conversations.rglob("*.md"))
    page.write_text(page.read_text() + "\nMy own words.\n")
    return home


@pytest.fixture(scope="module")
def backup(archive: Home, tmp_path_factory: pytest.TempPathFactory) -> Backup:
    with archive.writing():
        return make_backup(archive, tmp_path_factory.mktemp("backups"))


def test_what_is_restored_is_what_was_backed_up(archive: Home, backup: Backup, tmp_path: Path) -> None:
    assert stat.S_IMODE(backup.path.stat().st_mode) == 0o600
    assert backup.conversations == 3
    found, wrong = verify(backup.path)
    assert wrong == []
    assert found.members == backup.members
    assert restore(tmp_path / "new", backup.path, "test").members == backup.members
    assert_same(tmp_path / "new", archive.path)
    assert (tmp_path / "new/.key").read_bytes() == (archive.path / ".key").read_bytes()
    for path in (tmp_path / "new").rglob("*"):
        if path.is_file() and not path.is_relative_to(tmp_path / "new/dagster"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert not (tmp_path / "new/.restore").exists()


def test_a_backup_can_be_unpacked_and_restored_from_the_folder(archive: Home, backup: Backup, tmp_path: Path) -> None:
    with zipfile.ZipFile(backup.path) as unpacked:
        unpacked.extractall(tmp_path / "unpacked")
    assert verify(tmp_path / "unpacked")[1] == []
    restore(tmp_path / "new", tmp_path / "unpacked", "test")
    assert_same(tmp_path / "new", archive.path)
    (tmp_path / "unpacked/vault/vault.sqlite").write_bytes(b"other")
    (tmp_path / "unpacked/palace.toml").unlink()
    assert verify(tmp_path / "unpacked")[1] == [
        "palace.toml is missing",
        "vault/vault.sqlite is not what was put into the backup",
    ]


def test_an_archive_is_not_overwritten_unless_that_is_meant(backup: Backup, tmp_path: Path) -> None:
    export(tmp_path / "other.json", chat("z", "another archive", "indeed"))
    other = home_at(tmp_path / "home")
    take(other, tmp_path / "other.json")
    before = other.ledger_path.read_bytes()
    with pytest.raises(BackupError, match="is not empty"):
        restore(other.path, backup.path, "test")
    assert other.ledger_path.read_bytes() == before
    restore(other.path, backup.path, "test", force=True)
    with other.ledger() as ledger:
        assert ledger.conversation(("chatgpt", "z")) is None
        assert ledger.conversation(("chatgpt", "a")) is not None
    aside = next((other.path / "before-upgrades").glob("*ledger.sqlite"))
    old = Ledger(aside)
    assert old.conversation(("chatgpt", "z")) is not None
    old.close()


def damaged(backup: Backup, target: Path, beginning: str) -> Path:
    """A copy with one bit changed in the middle of the content of a member."""
    data = bytearray(backup.path.read_bytes())
    with zipfile.ZipFile(backup.path) as archive:
        found = next(info for info in archive.infolist() if info.filename.startswith(beginning))
    name, extra = (
        int.from_bytes(data[found.header_offset + at : found.header_offset + at + 2], "little") for at in (26, 28)
    )
    data[found.header_offset + 30 + name + extra + found.compress_size // 2] ^= 0x10
    target.write_bytes(data)
    return target


@pytest.mark.parametrize(
    "beginning", ["ledger.sqlite", ".key", "vault/", "conversations/", "lake/clean/", "lake/raw/", "manifest.json"]
)
def test_a_flipped_bit_is_found_and_nothing_is_restored(backup: Backup, tmp_path: Path, beginning: str) -> None:
    broken = damaged(backup, tmp_path / "broken.zip", beginning)
    try:
        wrong = verify(broken)[1]
    except BackupError as error:
        wrong = [str(error)]
    assert wrong
    with pytest.raises(BackupError):
        restore(tmp_path / "new", broken, "test")
    assert not (tmp_path / "new/ledger.sqlite").exists()
    assert not (tmp_path / "new/.restore").exists()


def test_a_flipped_bit_in_what_zip_says_of_the_parts_is_told_or_changes_nothing(backup: Backup, tmp_path: Path) -> None:
    """The lists and headers of the file: names, sizes, offsets, methods, versions, the mark of an encrypted part."""
    data, broken, rng = backup.path.read_bytes(), tmp_path / "broken.zip", random.Random(7)
    with zipfile.ZipFile(backup.path) as archive:
        spots = [*range(archive.start_dir, len(data))]
        spots += [at for info in archive.infolist() for at in range(info.header_offset, info.header_offset + 30)]
        encrypted, version = archive.start_dir + 8, archive.start_dir + 6
    flips = [
        (encrypted, 0),
        (version, 7),
        (len(data) - 3, 7),
        *((rng.choice(spots), rng.randrange(8)) for _ in range(150)),
    ]
    for at, bit in flips:
        changed = bytearray(data)
        changed[at] ^= 1 << bit
        broken.write_bytes(changed)
        try:
            found, wrong = verify(broken)
        except Told:
            continue
        assert wrong or found.members == backup.members


def test_a_page_that_goes_away_while_it_is_read_is_left_out(
    archive: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_at(Path(shutil.copytree(archive.path, tmp_path / "home")))
    gone = next(home.conversations.rglob("*.md"))
    real = make_module._found

    def found_and_then_deleted(*arguments: Any) -> Iterator[tuple[str, Path]]:
        yield from list(real(*arguments))
        gone.unlink()

    monkeypatch.setattr(make_module, "_found", found_and_then_deleted)
    with home.writing():
        made = make_backup(home, tmp_path / "a.zip")
    assert gone.relative_to(home.path).as_posix() not in made.members
    assert verify(made.path)[1] == []


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_a_cut_backup_is_said_to_be_cut(backup: Backup, tmp_path: Path, part: float) -> None:
    data = backup.path.read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: int(len(data) * part)])
    with pytest.raises(BackupError, match="is cut or damaged"):
        verify(tmp_path / "cut.zip")
    with pytest.raises(BackupError, match="Nothing was restored"):
        restore(tmp_path / "new", tmp_path / "cut.zip", "test")


def rewritten(backup: Backup, target: Path, **changes: object) -> Path:
    with zipfile.ZipFile(backup.path) as source, zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            data = source.read(name)
            if name == "manifest.json":
                data = orjson.dumps({**orjson.loads(data), **changes})
            copy.writestr(name, data)
    return target


def test_a_backup_of_a_newer_palace_is_refused(backup: Backup, tmp_path: Path) -> None:
    with pytest.raises(TooNew, match="update Palace"):
        verify(rewritten(backup, tmp_path / "a.zip", format=99))
    with pytest.raises(TooNew, match="the ledger in"):
        restore(tmp_path / "new", rewritten(backup, tmp_path / "b.zip", stores={"ledger": 999}), "test")


@pytest.mark.parametrize("name", ["../outside", "vault/../../outside", "/etc/passwd", "inbox/a.json", ".lock"])
def test_a_member_that_leads_elsewhere_is_refused(backup: Backup, tmp_path: Path, name: str) -> None:
    broken = rewritten(backup, tmp_path / "a.zip", members={name: [0, ""]})
    with pytest.raises(BackupError, match="does not belong"):
        verify(broken)


def test_any_other_zip_is_no_backup(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as other:
        other.writestr("conversations.json", "[]")
    with pytest.raises(BackupError, match="no backup of Palace"):
        verify(tmp_path / "a.zip")
    with pytest.raises(BackupError, match="holds no backup"):
        verify(tmp_path)


def test_a_backup_is_not_put_into_the_archive_nor_over_a_file(archive: Home, tmp_path: Path) -> None:
    (tmp_path / "there.zip").write_bytes(b"mine")
    with archive.writing():
        with pytest.raises(BackupError, match="lies in the archive itself"):
            make_backup(archive, archive.path / "backup.zip")
        with pytest.raises(BackupError, match="is there already"):
            make_backup(archive, tmp_path / "there.zip")
        with pytest.raises(BackupError, match="there is no folder"):
            make_backup(archive, tmp_path / "nowhere/backup.zip")
    assert (tmp_path / "there.zip").read_bytes() == b"mine"


def test_a_folder_that_is_not_there_is_made_and_holds_one_backup_after_another(archive: Home, tmp_path: Path) -> None:
    with archive.writing():
        made = make_backup(archive, tmp_path / "backups").path
        assert made.parent == tmp_path / "backups"
        assert made.parent.stat().st_mode & 0o777 == 0o700
        with pytest.raises(BackupError, match=f"there is no folder {tmp_path / 'no/where'}"):
            make_backup(archive, tmp_path / "no/where/backups")
    made.rename(made.with_name("palace-backup-20200101T000000Z.zip"))
    with archive.writing():
        assert make_backup(archive, tmp_path / "backups").path.parent == tmp_path / "backups"


def test_a_damaged_archive_is_not_backed_up_as_if_it_were_sound(archive: Home, tmp_path: Path) -> None:
    broken = home_at(Path(shutil.copytree(archive.path, tmp_path / "home")))
    data = broken.ledger_path.read_bytes()
    broken.ledger_path.write_bytes(data[:4096] + b"\xff" * 4096 + data[8192:])
    with pytest.raises(BackupError, match="is damaged"):
        make_backup(broken, tmp_path)
    assert not list(tmp_path.glob("*.zip"))
