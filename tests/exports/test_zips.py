"""ZIPs as writers, crashes and attackers make them: every whole entry is read, nothing costs more than it is worth."""

import bz2
import io
import os
import struct
import tracemalloc
import zipfile
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import zip_entries
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.containers import members_of
from palace_pipeline.exports.streams import Limits, MemberError

MISSING = "truncated or damaged ZIP: its directory is missing"


class Opened:
    """A ZIP of some bytes: its paths, its contents, its skips."""

    def __init__(self, folder, data, **options):
        (folder / "a.zip").write_bytes(data)
        self.reports = []
        self.members = list(members_of(folder / "a.zip", self.report_for, **options))
        self.names = [member.path.removeprefix("a.zip!/") for member in self.members]

    def report_for(self, path):
        self.reports.append(Report(path))
        return self.reports[-1]

    @property
    def skips(self):
        return [(skip.where, skip.reason, skip.count) for report in self.reports for skip in report.skips]

    def read(self, name):
        with self.members[self.names.index(name)].open() as stream:
            return stream.read()

    def contents(self):
        """Name -> bytes, or what stands before damage and its reason."""
        found = {}
        for member, name in zip(self.members, self.names, strict=True):
            parts = []
            try:
                with member.open() as stream:
                    while data := stream.read(50):
                        parts.append(data)
                found[name] = b"".join(parts)
            except MemberError as error:
                found[name] = (b"".join(parts), str(error))
        return found


def packed(*entries, method=zipfile.ZIP_DEFLATED, streamed=False, comment=b""):
    buffer = Unseekable() if streamed else io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
        archive.comment = comment
    return buffer.getvalue()


class Unseekable(io.BytesIO):
    """Makes `zipfile` write lengths behind the data, as servers do that send a ZIP while they make it."""

    def seek(self, *_):
        raise io.UnsupportedOperation

    def tell(self):
        raise io.UnsupportedOperation

    def seekable(self):
        return False


def patched(data, **values):
    """The first entry's directory record with other values."""
    fields = {"flags": (8, "<H"), "method": (10, "<H"), "crc": (16, "<I"), "packed": (20, "<I"), "size": (24, "<I")}
    out, at = bytearray(data), data.index(b"PK\x01\x02")
    for name, value in values.items():
        place, kind = fields[name]
        struct.pack_into(kind, out, at + place, value)
    return bytes(out)


# --- whole ones -------------------------------------------------------------------------------------------------------

METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
FILES = st.dictionaries(st.from_regex(r"[a-zà-ö]{1,6}\.json", fullmatch=True), st.binary(max_size=400), max_size=5)


@settings(deadline=None, max_examples=60)
@given(files=FILES, method=st.sampled_from(METHODS), streamed=st.booleans())
def test_what_any_writer_packs_is_read(tmp_path_factory, files, method, streamed):
    data = packed(*files.items(), method=method, streamed=streamed, comment=b"PK\x05\x06 and more")
    opened = Opened(tmp_path_factory.mktemp("zip"), data)
    assert opened.contents() == files
    assert opened.names == sorted(files)


def test_long_content_of_every_method(tmp_path):
    text = b"".join(b"%d " % number for number in range(300_000))
    for method in METHODS:
        assert Opened(tmp_path, packed(("a.json", text), method=method)).read("a.json") == text


def test_bytes_before_and_behind_the_zip(tmp_path):
    data = packed(("a.json", b"[1]"), ("b.json", b"[2]"))
    opened = Opened(tmp_path, b"PK\x03\x04 a line of its own\n" + data + b"\n\n")
    assert opened.contents() == {"a.json": b"[1]", "b.json": b"[2]"}
    assert opened.skips == []


def test_zip64(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    data = packed(("a.json", b"[" + b"1," * 500 + b"1]"), ("b.json", b"[2]"))
    assert b"PK\x06\x06" in data
    opened = Opened(tmp_path, data)
    assert opened.names == ["a.json", "b.json"]
    assert len(opened.read("a.json")) == 1003
    assert opened.read("b.json") == b"[2]"
    without = Opened(tmp_path, data[: data.index(b"PK\x01\x02")])
    assert [len(content) for content in without.contents().values()] == [1003, 3]


def test_zstandard_in_a_zip(tmp_path):
    text = b"".join(b"%d " % number for number in range(100_000))
    stored = packed(("a.json", zstandard.compress(text)), method=zipfile.ZIP_STORED)
    good = patched(stored, method=93, crc=zlib.crc32(text), size=len(text))
    assert Opened(tmp_path, good).read("a.json") == text
    with pytest.raises(MemberError, match="damaged"):
        Opened(tmp_path, patched(stored, method=93, crc=1)).read("a.json")


@pytest.mark.parametrize(("method", "says"), [(9, "Deflate64.*unpack"), (97, "method 97 is not supported")])
def test_methods_that_are_not_read_are_named(tmp_path, method, says):
    opened = Opened(tmp_path, patched(packed(("a.json", b"[1]"), ("b.json", b"[2]")), method=method))
    assert opened.read("b.json") == b"[2]"
    with pytest.raises(MemberError, match=says):
        opened.read("a.json")


def test_a_name_in_unicode_beside_the_old_one(tmp_path):
    info = zipfile.ZipInfo("___.json")
    name = "潮汐.json".encode()
    info.extra = struct.pack("<HHBI", 0x7075, 5 + len(name), 1, zlib.crc32(b"___.json")) + name
    assert Opened(tmp_path, packed((info, b"[1]"))).contents() == {"潮汐.json": b"[1]"}


def test_a_name_that_only_claims_to_be_utf8(tmp_path):
    data = packed(("é.json", b"[1]")).replace("é".encode(), b"\x82\x82")
    assert Opened(tmp_path, data).contents() == {"éé.json": b"[1]"}


def test_a_name_that_stands_twice(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        data = packed(("a.json", b"[1]"), ("a.json", b"[2]"), ("a.json", b"[2]"), ("b", b"1"), ("b", b"2"))
    opened = Opened(tmp_path, data)
    assert opened.contents() == {"a.json": b"[1]", "a (2).json": b"[2]", "b": b"1", "b (2)": b"2"}
    assert opened.skips == [("a.zip!/a.json", "stands twice in the ZIP", 1)]
    assert opened.members[0].near("a.json").name == "a.json"


def test_other_entries_are_found_by_name(tmp_path):
    opened = Opened(tmp_path, packed(*((f"room/{number}.json", b"%d" % number) for number in range(50)), ("z", b"")))
    assert opened.members[3].near("7.json").open().read() == b"7"
    assert opened.members[3].near("../z").name == "z"
    assert opened.members[3].near("../zz") is None


# --- cut and damaged ones ---------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(files=FILES, method=st.sampled_from(METHODS[:2]), streamed=st.booleans(), keep=st.floats(0, 1))
def test_whole_entries_of_a_cut_zip_are_found(tmp_path_factory, files, method, streamed, keep):
    data = packed(*files.items(), method=method, streamed=streamed)
    cut = data[: round(keep * (len(data) - 1))]
    opened = Opened(tmp_path_factory.mktemp("zip"), cut)
    contents = opened.contents()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
    ends = {
        entry.filename: entry.header_offset + 30 + len(entry.filename.encode()) + entry.compress_size
        for entry in entries
        if not (streamed and method == zipfile.ZIP_STORED)  # nothing says where such an entry ends
    }
    for name, content in files.items():
        if name in ends and ends[name] <= len(cut):
            assert contents.pop(name) == content
    for name, content in contents.items():
        before, reason = content if isinstance(content, tuple) else (content, "cut")
        assert files[name].startswith(before)
        assert "cut" in reason or not before
    assert len(opened.skips) == 1


def test_a_cut_zip_is_named_with_what_was_found(tmp_path):
    text = os.urandom(3000).hex().encode()
    data = packed(("a.json", b"[1]"), ("b.json", text), streamed=True)
    opened = Opened(tmp_path, data[:-100])
    assert opened.contents() == {"a.json": b"[1]", "b.json": text}
    assert opened.skips == [("a.zip", f"{MISSING}, 2 of its files were found without it", 1)]
    opened = Opened(tmp_path, data[:2000])
    before, reason = opened.contents()["b.json"]
    assert text.startswith(before)
    assert len(before) > 3000
    assert reason == "its compressed data is cut"
    assert Opened(tmp_path, data[:20]).skips == [("a.zip", f"{MISSING}, nothing was taken", 1)]


def test_a_damaged_directory_is_not_believed(tmp_path):
    data = bytearray(packed(("a.json", b"[1]"), ("b.json", b"[2]")))
    data[data.rindex(b"PK\x01\x02")] = 0
    opened = Opened(tmp_path, data)
    assert opened.contents() == {"a.json": b"[1]", "b.json": b"[2]"}
    assert "its directory is damaged" in opened.skips[0][1]


def test_a_part_of_a_split_zip(tmp_path):
    data = bytearray(packed(("a.json", b"[1]")))
    struct.pack_into("<H", data, data.rindex(b"PK\x05\x06") + 4, 3)
    assert "join them first" in Opened(tmp_path, data).skips[0][1]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"packed": 50}, "cut"),
        ({"crc": 1}, "damaged"),
        ({"packed": 5000}, "those of another entry"),
        ({"flags": 1}, ""),
    ],
)
def test_a_directory_that_lies(tmp_path, values, says):
    text = os.urandom(200).hex().encode()
    opened = Opened(tmp_path, patched(packed(("a.json", text), ("b.json", b"[2]")), **values))
    assert opened.read("b.json") == b"[2]"
    if "flags" in values:
        assert opened.skips == [("a.zip!/a.json", "encrypted", 1)]
        return
    with pytest.raises(MemberError, match=says):
        opened.read("a.json")


def test_a_size_that_lies_does_not_matter(tmp_path):
    for size in (0, 5, 1 << 31):
        assert Opened(tmp_path, patched(packed(("a.json", b"[1, 2, 3]")), size=size)).read("a.json") == b"[1, 2, 3]"


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_any_damage_is_a_reason(tmp_path_factory, data):
    whole = bytearray(packed(("a.json", b"[1]" * 20), ("b.json", b"[2]" * 20)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    opened = Opened(tmp_path_factory.mktemp("zip"), whole)
    assert opened.contents() or opened.skips


# --- bombs ------------------------------------------------------------------------------------------------------------


def record(name, place, packed_size, crc, size):
    raw = name.encode()
    head = struct.pack(
        "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, crc, packed_size, size, len(raw), 0, 0, 0, 0, 0, place
    )
    return head + raw


def test_entries_that_share_their_bytes(tmp_path):
    """Every entry but the last runs through all that follow, each with a header of its own."""
    kernel = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflated = kernel.compress(b"0" * 1_000_000) + kernel.flush()
    crc = zlib.crc32(b"0" * 1_000_000)
    body, places = b"", []
    for number in range(20):
        places.append(len(body))
        name = b"%02d.json" % number
        body += struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, crc, len(deflated), 1_000_000, len(name), 0) + name
    body += deflated
    records = [
        record(f"{number:02}.json", place, len(body) - place - 37, crc, 1_000_000)
        for number, place in enumerate(places)
    ]
    directory = b"".join(records)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 20, 20, len(directory), len(body), 0)
    opened = Opened(tmp_path, body + directory + end)
    contents = opened.contents()
    assert contents.pop("19.json") == b"0" * 1_000_000
    assert set(contents.values()) == {(b"", "its bytes are those of another entry too (a ZIP bomb?)")}


def test_one_content_under_many_names(tmp_path):
    data = packed(("a.json", b"[1]"))
    at, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    one = data[at:end]
    many = one + one.replace(b"a.json", b"b.json") + one
    tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 3, 3, len(many), at, 0)
    opened = Opened(tmp_path, data[:at] + many + tail)
    assert opened.contents() == {"a.json": b"[1]", "b.json": (b"", "damaged entry of a ZIP")}
    assert opened.skips == [("a.zip!/a.json", "stands twice in the ZIP", 1)]


SMALL = Limits(ratio=100, ratio_from=1_000_000)


def test_bombs_in_a_zip_in_a_zip_count_from_the_outermost(tmp_path):
    """A thousand times a thousand: small for the inner ZIP, huge for the file that people have."""
    inner = packed(*((f"{number}.json", b" " * 900_000) for number in range(9)))
    good = os.urandom(20_000).hex().encode()
    outer = packed(("inner.zip", inner), ("good.json", good))
    opened = Opened(tmp_path, outer, limits=SMALL)
    contents = opened.contents()
    assert contents.pop("good.json") == good
    assert sum(isinstance(content, tuple) for content in contents.values()) >= 5


def test_the_more_bombs_the_less_is_unfolded_of_each(tmp_path):
    entries = [(f"{number:02}.json", b" " * 3_000_000) for number in range(20)]
    good = os.urandom(3000).hex().encode() * 10
    opened = Opened(tmp_path, packed(*entries, ("zz.json", good)), limits=SMALL)
    contents = opened.contents()
    assert contents.pop("zz.json") == good
    assert all("ZIP bomb" in reason for _, reason in contents.values())
    assert sum(len(before) for before, _ in contents.values()) < 7_000_000  # of 60


def test_a_bomb_without_a_directory(tmp_path):
    data = packed(("bomb.json", b" " * 5_000_000), ("ok.json", b"[1]"), streamed=True)
    opened = Opened(tmp_path, data[: data.index(b"PK\x01\x02")], limits=SMALL)
    assert opened.contents() == {"ok.json": b"[1]"}


@pytest.mark.slow
def test_repetitive_content_of_any_usual_size_is_legal(tmp_path):
    size = 300_000_000
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.json", "w") as out:
        out.write(b"[")
        for _ in range(size // 1_000_000):
            out.write(b"1," * 500_000)
        out.write(b"1]")
    assert (tmp_path / "a.zip").stat().st_size < size // 900
    (member,) = members_of(tmp_path / "a.zip", Report)
    read = 0
    with member.open() as stream:
        while data := stream.read(1 << 20):
            read += len(data)
    assert read == size + 3


def test_a_long_directory_takes_little_memory(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(20_000):
            archive.writestr(f"room-{number % 100:03}/message-{number:07}.json", b"[]")
    tracemalloc.start()
    count = sum(1 for _ in members_of(tmp_path / "a.zip", Report))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 20_000 * 350  # `zipfile` alone takes 600 for each


def test_endless_skips_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setattr("palace_pipeline.exports.containers._NAMED", 3)
    opened = Opened(tmp_path, packed(*((f"__MACOSX/{number}", b"") for number in range(10)), ("a", b"1")))
    assert opened.names == ["a"]
    reason = "hidden or system file"
    assert opened.skips == [*((f"a.zip!/__MACOSX/{number}", reason, 1) for number in range(3)), ("a.zip", reason, 7)]


def test_bzip2_ends_where_its_stream_ends(tmp_path):
    """Padding behind the stream is none of the content."""
    stored = packed(("a.json", bz2.compress(b"[1]") + b"\0" * 9), method=zipfile.ZIP_STORED)
    assert Opened(tmp_path, patched(stored, method=12, crc=zlib.crc32(b"[1]"))).read("a.json") == b"[1]"


def test_places_in_a_directory_that_is_read_in_pieces(tmp_path):
    """Records of the greatest length, so that a piece ends within one."""
    comment = b"c" * 65_000
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(60):
            info = zipfile.ZipInfo(f"{number:02}.json")
            info.comment = comment
            archive.writestr(info, b"%d" % number)
    opened = Opened(tmp_path, buffer.getvalue())
    assert opened.contents() == {f"{number:02}.json": b"%d" % number for number in range(60)}
    assert zip_entries._CENTRAL_HEADER.size == 46
