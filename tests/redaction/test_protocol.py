from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

from palace_pipeline.redaction.protocol import redact_lines, redact_text
from tests.redaction.samples import GITHUB, OPAQUE, funnel, token

FUNNEL = funnel()


def _answers(*records: object) -> list[dict[str, Any]]:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    out = io.StringIO()
    redact_lines([line + "\n" for line in lines], out, FUNNEL)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_text_record() -> None:
    value = token(GITHUB)
    (answer,) = _answers({"id": 7, "text": f"密钥 {value}!"})
    assert answer == {
        "id": 7,
        "text": "密钥 [REDACTED:github-pat]!",
        "findings": [{"kind": "github-pat", "start": 3, "end": 43}],
        "withheld": False,
    }


def test_a_conversation_record_names_fields_and_shares_its_memory() -> None:
    value = token(OPAQUE)
    record = {
        "id": "a",
        "conversation": {
            "title": f"about {value}",
            "messages": [{"speaker": "user", "text": f"MISTRAL_API_KEY={value}"}],
        },
    }
    (answer,) = _answers(record)
    assert value not in json.dumps(answer)
    assert [f["field"] for f in answer["findings"]] == ["title", "messages.0.text"]
    assert answer["conversation"]["messages"][0]["speaker"] == "user"


def test_lines_stand_alone_and_a_bad_one_is_answered_by_itself() -> None:
    value = token(OPAQUE)
    answers = _answers(
        {"id": 1, "text": f"API_KEY={value}"}, f"not json {value}", {"id": 3, "text": value}, {"id": 4}, [1]
    )
    assert value not in json.dumps(answers[:2])
    assert answers[1] == {"error": "line 2: JSONDecodeError", "findings": [], "withheld": True}
    assert answers[2]["text"] == value  # alone it is known by nothing
    assert answers[3]["id"] == 4
    assert answers[3]["withheld"]
    assert len(answers) == 5


def test_odd_characters_come_back_as_they_were() -> None:
    text = "nul \x00, lone \ud83d, crlf \r\n, esc \x1b[1m, wide Ａ"
    (answer,) = _answers({"id": 1, "text": text})
    assert answer["text"] == text


def test_plain_text_and_the_module_as_a_command() -> None:
    value = token(GITHUB)
    out = io.StringIO()
    assert redact_text(io.StringIO(f"a {value}\r\nb"), out, FUNNEL) == 0
    assert out.getvalue() == "a [REDACTED:github-pat]\r\nb"
    command = [sys.executable, "-m", "palace_pipeline.redaction.protocol", "--jsonl"]
    line = json.dumps({"id": "x", "text": f"a {value}"}).encode()
    done = subprocess.run(command, input=line, capture_output=True, check=True)
    assert json.loads(done.stdout)["text"] == "a [REDACTED:github-pat]"
