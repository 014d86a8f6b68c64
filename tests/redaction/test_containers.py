from __future__ import annotations

import pytest

from palace_pipeline.redaction.engine import RuleEngine
from tests.redaction.samples import base64_of, funnel, key_block, marker, token

ENGINE = RuleEngine()
FUNNEL = funnel()
WORD = "[A-Za-z0-9]{16}"


def _found(text: str) -> list[str]:
    spans = [s for s in ENGINE.scan([text])[0] if s.layer != "memory"]
    return sorted({text[s.start : s.end] for s in spans})


@pytest.mark.parametrize(
    "frame",
    [
        "postgres://app:{v}@db.internal:5432/prod",
        "redis://:{v}@10.0.0.5:6379/0",
        "see https://deploy:{v}@git.acme.dev/a.git",
        "curl -u bob:{v} https://ci.acme.dev/job",
        "Authorization: Bearer {v}{v}{v}",
        "Cookie: theme=dark; session={v}{v}",
        "Set-Cookie: sid={v}{v}; Path=/",
        "https://b.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig={v}{v}",
        "ALTER USER app WITH PASSWORD '{v}';",
        "CREATE USER 'a'@'%' IDENTIFIED BY '{v}';",
        "sshpass -p '{v}' ssh root@10.0.0.4",
        "mysql -h db -u root -p{v} app",
        "requirepass {v}",
        "machine api.acme.dev login bob password {v}",
        "db.internal:5432:app:svc:{v}",
        "Server=tcp:x,1433;Database=app;User ID=sa1;Password={v};Encrypt=True;",
        "jdbc:postgresql://db:5432/app?user=svc&password={v}&ssl=true",
    ],
)
def test_only_the_secret_part_goes(frame: str) -> None:
    value = token(WORD, frame)
    text = frame.format(v=value)
    count = text.count(value)
    assert _found(text) == [value * count]


def test_basic_header_and_docker_auth() -> None:
    pair = base64_of(f"svc:{token(WORD)}")
    assert _found(f"Authorization: Basic {pair}") == [pair]
    assert _found("Basic understanding of Kubernetes required.") == []
    assert pair in _found(f'{{"auths":{{"r.acme.dev":{{"auth":"{pair}"}}}}}}')


def test_the_values_of_a_cluster_secret() -> None:
    value = base64_of(token(WORD))
    text = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  config: {value}\n"
    assert value in _found(text)
    assert _found(text.replace("Secret", "ConfigMap")) == []


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:password@localhost/db",
        "postgres://postgres:postgres@localhost/test",
        "redis://localhost:6379/0",
        "mongodb+srv://<username>:<password>@cluster0.mongodb.net",
        "https://user@example.org/repo.git",
        "amqp://guest:guest@mq/",
        "mysql://root:${MYSQL_PW}@db/app",
        "Authorization: Bearer <token>",
        "Bearer of bad news: the build is red again.",
        "https://acme.dev/search?q=how+to&token=abc",
    ],
)
def test_examples_and_defaults_stay(text: str) -> None:
    assert _found(text) == []


@pytest.mark.parametrize("label", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("form", ["plain", "cut", "quoted", "numbered", "escaped", "crlf", "indented"])
def test_private_keys(label: str, form: str) -> None:
    block = key_block(label, seed=form)
    lines = block.split("\n")
    shown = {
        "plain": block,
        "cut": "\n".join(lines[:6]),
        "quoted": "\n".join("> " + line for line in lines),
        "numbered": "\n".join(f"{i:6}\t{line}" for i, line in enumerate(lines, 1)),
        "escaped": "\\n".join(lines),
        "crlf": "\r\n".join(lines),
        "indented": "\n".join("    " + line for line in lines),
    }[form]
    text = f"before\n{shown}\nafter this, nothing"
    kept = FUNNEL.redact_fields({"text": text}).texts["text"]
    assert kept.count("[REDACTED:private-key]") == 1
    assert not any(line in kept for line in lines[1:5])
    assert kept.startswith("before\n")
    assert kept.endswith("\nafter this, nothing")


def test_a_key_header_without_a_body_and_public_keys_stay() -> None:
    certificate = key_block("CERTIFICATE")
    for text in (f"Use {marker('BEGIN')} as the header and then the body.", certificate, key_block("PUBLIC KEY")):
        assert _found(text) == []
