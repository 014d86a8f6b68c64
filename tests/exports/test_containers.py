"""Files, folders and ZIPs: every good member is given once, everything else is named with its reason."""

import gc
import gzip
import io
import os
import stat
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from palace_pipeline.exports import names
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.containers import DiskMember, members_of
from palace_pipeline.exports.streams import Limits, MemberError

WORDS = b" ".join(b"%d" % (number * 7919 % 100_003) for number in range(300_000))


class Found:
    """All members of a path with their bytes, and the skips as (place, reason, expected)."""

    def __init__(self, path, **options):
        self.reports = []
        self.members = list(members_of(path, self.report_for, **options))
        self.paths = [member.path for member in self.members]

    def report_for(self, path):
        self.reports.append(Report(path))
        return self.reports[-1]

    @property
    def skips(self):
        return {(skip.where, skip.reason, skip.expected) for report in self.reports for skip in report.skips}

    def read(self, path):
        with self.members[self.paths.index(path)].open() as stream:
            return stream.read()


def zipped(path, entries, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return path


# --- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_gives_its_files_in_order_and_leaves_system_litter_out(tmp_path):
    for name in ("b.json", "a/2.json", "a/1.json", ".DS_Store", "a/._1.json", "__MACOSX/x.json", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"[]")
    found = Found(tmp_path)
    assert found.paths == ["b.json", "a/1.json", "a/2.json"]
    assert found.skips == {
        (place, "hidden or system file", True) for place in (".DS_Store", ".git", "__MACOSX", "a/._1.json")
    }


def test_hidden_folders_of_agents_are_read(tmp_path):
    for folder in (".claude/projects/p", ".codex/sessions"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "s.jsonl").write_bytes(b"{}")
    assert Found(tmp_path).paths == [".claude/projects/p/s.jsonl", ".codex/sessions/s.jsonl"]


def test_a_file_by_itself_has_its_folder_as_root(tmp_path):
    (tmp_path / "a.json").write_bytes(b"[1]")
    (tmp_path / "b.json").write_bytes(b"[2]")
    found = Found(tmp_path / "a.json")
    assert found.paths == ["a.json"]
    with found.members[0].near("b.json").open() as stream:
        assert stream.read() == b"[2]"


def test_links_and_special_files_are_named_and_not_opened(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.json").write_bytes(b"[]")
    (root / "real.json").write_bytes(b"[]")
    (root / "inner-link.json").symlink_to(root / "real.json")
    (root / "outer-link.json").symlink_to(outside / "secret.json")
    (root / "folder-link").symlink_to(outside)
    (root / "dead-link").symlink_to(tmp_path / "nowhere")
    os.mkfifo(root / "pipe.json")
    found = Found(root)
    assert found.paths == ["real.json"]
    links = "symbolic links are not followed"
    assert found.skips == {
        ("inner-link.json", links, True),
        ("outer-link.json", links, False),
        ("folder-link", links, False),
        ("dead-link", links, False),
        ("pipe.json", "not a regular file", False),
    }


def test_a_fifo_by_itself_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    found = Found(tmp_path / "pipe.json")
    assert (found.paths, found.skips) == ([], {("pipe.json", "not a regular file", False)})


def test_a_member_that_becomes_a_link_or_goes_away_is_an_error_with_a_reason(tmp_path):
    (tmp_path / "a.json").write_bytes(b"[]")
    (tmp_path / "b.json").write_bytes(b"[]")
    found = Found(tmp_path)
    (tmp_path / "a.json").unlink()
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").unlink()
    for member in found.members:
        with pytest.raises(MemberError, match="cannot be opened"):
            member.open()


def test_near_never_leaves_the_root(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    for file in (outside / "x.json", root / "users.json", root / "sub" / "day.json", root / "sub" / "other.json"):
        file.write_bytes(b"[]")
    (root / "sub" / "hole").symlink_to(outside)
    (root / "sub" / "link.json").symlink_to(outside / "x.json")
    member = next(m for m in Found(root).members if m.path == "sub/day.json")
    assert member.near("other.json").path == "sub/other.json"
    assert member.near("../users.json").path == "users.json"
    assert member.near("../users.json").near("sub/other.json").path == "sub/other.json"
    for wrong in ("../../outside/x.json", "hole/x.json", "link.json", "/etc/passwd", "nothing.json", "..", "a\0b"):
        assert member.near(wrong) is None


def test_a_link_above_the_export_folder_hides_nothing_beside_a_file(tmp_path):
    (tmp_path / "real/export/sub").mkdir(parents=True)
    (tmp_path / "real/export/users.json").write_text("[]")
    (tmp_path / "real/export/sub/day.json").write_text("[]")
    (tmp_path / "real/outside").mkdir()
    (tmp_path / "real/outside/secret.json").write_text("[]")
    (tmp_path / "moved").symlink_to("real")
    root = tmp_path / "moved/export"
    (root / "linked").symlink_to("../outside")
    member = DiskMember(root, root / "sub/day.json", "sub/day.json", 2, 0)
    beside = member.near("../users.json")
    assert beside is not None
    assert beside.path == "users.json"
    assert member.near("../linked/secret.json") is None


def test_a_name_that_is_no_utf8_is_shown_readably_and_still_opens(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9.json"
    with open(name, "wb") as stream:  # noqa: PTH123 - a name in bytes
        stream.write(b"[1]")
    found = Found(tmp_path)
    assert found.paths == ["caf\ufffd.json"]
    assert found.read("caf\ufffd.json") == b"[1]"


def test_a_path_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Found(tmp_path / "no")


# --- compressed files -------------------------------------------------------------------------------------------------


def test_gzip_and_zstandard_are_unfolded_on_the_fly(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    frames = zstandard.compress(b"x" * 3_000_000) + zstandard.compress(b"end")
    (tmp_path / "b.jsonl.zst").write_bytes(frames)
    (tmp_path / "c.json.zst").write_bytes(b"[not compressed]")
    found = Found(tmp_path)
    assert found.read("a.jsonl.gz") == b"one\ntwo\n"
    assert found.read("b.jsonl.zst") == b"x" * 3_000_000 + b"end"
    assert found.read("c.json.zst") == b"[not compressed]"


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.zip!/a.jsonl"])
def test_what_stands_before_a_cut_is_read(tmp_path, name):
    lines = b"".join(b"%d %s\n" % (number, os.urandom(40).hex().encode()) for number in range(9000))
    if name.endswith("gz"):
        whole = gzip.compress(lines)
    elif name.endswith("zst"):
        whole = zstandard.compress(lines)
    else:
        whole = zipped(tmp_path / "a.zip", [("a.jsonl", lines)]).read_bytes()
    (tmp_path / name.split("!")[0]).write_bytes(whole[: len(whole) * 3 // 4])
    members = {member.path: member for member in Found(tmp_path).members}
    with members[name].open() as stream:
        before = stream.read(len(lines))
        with pytest.raises(MemberError, match="cut"):
            stream.read(1)
    assert lines.startswith(before)
    assert len(before) > len(lines) // 2
    read = []
    with members[name].open() as stream, suppress(MemberError):
        read.extend(iter(stream.readline, b""))
    assert read == before.splitlines(keepends=True)[: before.count(b"\n")]


@pytest.mark.parametrize(
    ("name", "pack"), [("a.gz", gzip.compress), ("a.zst", zstandard.ZstdCompressor(write_checksum=True).compress)]
)
def test_a_cut_or_damaged_compressed_file_says_so(tmp_path, name, pack):
    whole = pack(os.urandom(100_000))
    (tmp_path / name).write_bytes(whole[:50_000])
    with pytest.raises(MemberError, match="cut"):
        Found(tmp_path).read(name)
    (tmp_path / name).write_bytes(whole[:20] + bytes(1000) + whole[1020:])
    with pytest.raises(MemberError, match=r"cut|damaged"):
        Found(tmp_path).read(name)


# --- ZIPs -------------------------------------------------------------------------------------------------------------


def test_entries_have_the_path_of_their_zip(tmp_path):
    zipped(tmp_path / "out.zip", [("z.json", b"[1]"), ("a/b.json", b"[2]")])
    found = Found(tmp_path)
    assert found.paths == ["out.zip!/a/b.json", "out.zip!/z.json"]
    assert found.read("out.zip!/z.json") == b"[1]"
    assert found.members[0].near("../z.json").path == "out.zip!/z.json"
    assert found.members[0].near("../../z.json") is None


def test_names_without_the_utf8_flag(tmp_path):
    """Python writes the flag for any name that is not ASCII; it is taken away from the bytes."""
    zipped(tmp_path / "a.zip", [("général/1.json", b"[]")])
    data = (tmp_path / "a.zip").read_bytes()
    local, central = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    clear = bytearray(data)
    clear[local + 7] &= ~0x08
    clear[central + 9] &= ~0x08
    (tmp_path / "a.zip").write_bytes(clear)
    utf8 = "é".encode()
    (tmp_path / "b.zip").write_bytes(bytes(clear).replace(utf8, b"\x82\x82"))
    assert Found(tmp_path).paths == ["a.zip!/général/1.json", "b.zip!/g\u00e9\u00e9n\u00e9\u00e9ral/1.json"]


@pytest.mark.parametrize(
    "name",
    [
        "../up.json",
        "a/../../up.json",
        "/root.json",
        "C:/x.json",
        "C:x.json",
        "..\\up.json",
        "\\\\server\\x.json",
        "C:\\x",
    ],
)
def test_unsafe_names_are_refused_and_the_others_stay(tmp_path, name):
    zipped(tmp_path / "a.zip", [(name, b"[]"), ("ok.json", b"[1]")])
    found = Found(tmp_path)
    assert found.paths == ["a.zip!/ok.json"]
    assert [(reason, expected) for _, reason, expected in found.skips] == [("unsafe name in a ZIP", False)]


def test_windows_separators_in_names(tmp_path):
    zipped(tmp_path / "a.zip", [("folder\\chats.json", b"[]")])
    assert Found(tmp_path).paths == ["a.zip!/folder/chats.json"]


def test_links_and_litter_in_a_zip(tmp_path):
    link = zipfile.ZipInfo("link.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    zipped(
        tmp_path / "a.zip", [(link, b"/etc/passwd"), ("__MACOSX/._a.json", b"x"), ("x/.DS_Store", b"x"), ("d/", b"")]
    )
    found = Found(tmp_path)
    assert found.paths == []
    assert found.skips == {
        ("a.zip!/link.json", "symbolic links are not followed", False),
        ("a.zip!/__MACOSX/._a.json", "hidden or system file", True),
        ("a.zip!/x/.DS_Store", "hidden or system file", True),
    }


def test_encrypted_entries_are_named(tmp_path):
    zipped(tmp_path / "a.zip", [("locked.json", b"[1]"), ("open.json", b"[2]")])
    data = bytearray((tmp_path / "a.zip").read_bytes())
    central = data.index(b"PK\x01\x02")
    data[6] |= 1
    data[central + 8] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    found = Found(tmp_path)
    assert found.paths == ["a.zip!/open.json"]
    assert found.skips == {("a.zip!/locked.json", "encrypted", False)}


def test_what_only_calls_itself_zip(tmp_path):
    (tmp_path / "page.zip").write_bytes(b"<html>login</html>")
    (tmp_path / "zero.zip").write_bytes(b"")
    zipped(tmp_path / "none.zip", [])
    assert Found(tmp_path).skips == {
        ("page.zip", "not a ZIP, whatever its name says", False),
        ("zero.zip", "empty file", False),
        ("none.zip", "empty ZIP", False),
    }


def test_damage_inside_an_entry_is_seen_when_it_is_read(tmp_path):
    zipped(tmp_path / "a.zip", [("a.json", b"[" + b"1," * 500 + b"1]"), ("b.json", b"[2]")], zipfile.ZIP_STORED)
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[100] ^= 0x20
    (tmp_path / "a.zip").write_bytes(data)
    found = Found(tmp_path)
    assert found.read("a.zip!/b.json") == b"[2]"
    with pytest.raises(MemberError, match="damaged"):
        found.read("a.zip!/a.json")


def test_zip_in_zip_one_level_deep(tmp_path):
    def packed(*entries):
        return zipped(io.BytesIO(), entries).getvalue()

    deepest = packed(("deep.json", b"[3]"))
    inner = packed(("chats.json", b"[2]"), ("deepest.zip", deepest))
    zipped(tmp_path / "outer.zip", [("Online Activity/inner.zip", inner), ("broken.zip", inner[:-30])])
    found = Found(tmp_path, scratch=tmp_path)
    assert found.paths == [f"outer.zip!/{name}.zip!/chats.json" for name in ("Online Activity/inner", "broken")]
    assert [found.read(path) for path in found.paths] == [b"[2]", b"[2]"]
    deeper = "a ZIP inside a ZIP inside a ZIP is not opened"
    cut = "truncated or damaged ZIP: its directory is missing, 2 of its files were found without it"
    assert found.skips == {
        ("outer.zip!/Online Activity/inner.zip!/deepest.zip", deeper, False),
        ("outer.zip!/broken.zip", cut, False),
        ("outer.zip!/broken.zip!/deepest.zip", deeper, False),
    }


def test_an_inner_zip_too_large_for_memory_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("palace_pipeline.exports.containers._SPOOL_BYTES", 100)
    scratch, exports = tmp_path / "scratch", tmp_path / "exports"
    scratch.mkdir()
    exports.mkdir()
    inner = zipped(io.BytesIO(), [("a.json", os.urandom(5000))], zipfile.ZIP_STORED).getvalue()
    zipped(exports / "outer.zip", [("inner.zip", inner)])
    found = Found(exports, scratch=scratch)
    assert len(found.read("outer.zip!/inner.zip!/a.json")) == 5000
    assert list(scratch.iterdir()) == []


def test_compressed_entries_in_a_zip(tmp_path):
    packed = zstandard.compress(b"line\n" * 1000)
    zipped(tmp_path / "a.zip", [("a.jsonl.zst", packed), ("b.jsonl.gz", gzip.compress(b"x")), ("c.gz", b"ab")])
    found = Found(tmp_path)
    assert found.read("a.zip!/a.jsonl.zst") == b"line\n" * 1000
    assert found.read("a.zip!/b.jsonl.gz") == b"x"
    assert found.read("a.zip!/c.gz") == b"ab"


def test_bombs_are_stopped_by_the_bytes_really_read(tmp_path):
    zipped(tmp_path / "a.zip", [("bomb.json", b" " * 4_000_000), ("ok.json", b"[1]"), ("words.json", WORDS)])
    small = Limits(ratio=100, ratio_from=1_000_000)
    found = Found(tmp_path, limits=small)
    for _ in range(2):
        with pytest.raises(MemberError, match="more than 100 times"):
            found.read("a.zip!/bomb.json")
    # A bomb takes nothing from its neighbours.
    assert found.read("a.zip!/ok.json") == b"[1]"
    assert found.read("a.zip!/words.json") == WORDS
    assert Found(tmp_path, limits=Limits(member=3_000_000)).read("a.zip!/ok.json") == b"[1]"
    with pytest.raises(MemberError, match="more than 3000000 bytes"):
        Found(tmp_path, limits=Limits(member=3_000_000)).read("a.zip!/bomb.json")


def test_repetitive_content_is_legal_and_reading_twice_costs_nothing(tmp_path):
    zipped(tmp_path / "a.zip", [("a.json", b"[" + b"1," * 500_000 + b"1]")])
    found = Found(tmp_path, limits=Limits(total=1_100_000))
    assert len(found.read("a.zip!/a.json")) == len(found.read("a.zip!/a.json")) == 1_000_003


def test_many_members_count_together(tmp_path):
    zipped(tmp_path / "a.zip", [(f"{n}.json", b" " * 100_000) for n in range(5)])
    found = Found(tmp_path, limits=Limits(total=250_000))
    assert len(found.read("a.zip!/0.json")) == len(found.read("a.zip!/1.json")) == 100_000
    with pytest.raises(MemberError, match="more than 250000 bytes"):
        found.read("a.zip!/2.json")


def test_a_zip_is_closed_with_its_last_member(tmp_path):
    zipped(tmp_path / "a.zip", [("a.json", b"[1]"), ("b.json", b"[2]")])
    found = Found(tmp_path)
    stream = found.members[0].archive.stream
    last = found.members.pop()
    del found
    gc.collect()
    assert not stream.closed
    with last.open() as content:
        assert content.read() == b"[2]"
    del last, content
    gc.collect()
    assert stream.closed


# --- what names say ---------------------------------------------------------------------------------------------------


SENSITIVE = [
    "user.json",
    "a/users.json",
    "org_users.json",
    "user_settings.json",
    "auth.json",
    "x/prod-mc-auth-mgmt-api.json",
    "prod-mc-billing.json",
    "server.pem",
    ".env",
    ".env.local",
    "credentials",
    "credentials.json",
    ".credentials.json",
    "id_rsa",
    "AUTH.JSON",
    "accounts.json",
    "api-token.json",
    "z.zip!/users.json",
]
HARMLESS = [
    "conversations.json",
    "billing/2026-03-14.json",
    "notes-about-tokens.md",
    "author.json",
    "users/a.json",
    "authentication.md",
    "environment.txt",
    "user-00.jsonl",
    "auth/chat.jsonl",
]


@pytest.mark.parametrize("path", SENSITIVE)
def test_account_and_key_files_are_sensitive(path):
    assert names.is_sensitive(path)


@pytest.mark.parametrize("path", HARMLESS)
def test_chats_with_such_words_are_not(path):
    assert not names.is_sensitive(path)


@pytest.mark.parametrize(
    ("path", "start"),
    [("a.PNG", b""), ("v.m4a", b""), ("file-abc", b"\xff\xd8\xff\xe0"), ("x", b"RIFF"), ("x", b"%PDF-1.7")],
)
def test_assets_by_name_and_by_content(path, start):
    assert names.is_asset(path, start)
    assert names.is_asset("ttl/prod-mc-asset-server/1/content")
    assert not names.is_asset("chats.json", b"[")


def test_the_root_itself_may_be_a_link(tmp_path):
    """The person named it."""
    real = tmp_path / "real"
    real.mkdir()
    (real / "a.json").write_bytes(b"[]")
    (tmp_path / "link").symlink_to(real)
    found = Found(Path(tmp_path / "link"))
    assert found.paths == ["a.json"]
    assert found.members[0].near("a.json") is not None
