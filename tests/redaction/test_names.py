from __future__ import annotations

import pytest

from palace_pipeline.redaction.foreign import foreign_names
from palace_pipeline.redaction.names import STEMS, Assigned, assigned, strength_of
from palace_pipeline.redaction.scanning import Literals
from palace_pipeline.redaction.views import flat
from tests.redaction.samples import BASE62, PASSWORD, token

_STEMS = Literals(STEMS)


def _assigned(text: str) -> list[Assigned]:
    data = flat(text)
    return list(assigned(data, sorted((start, end) for _, start, end in _STEMS.places(data.lower()))))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DB_PASSWORD", "password"),
        ("passwd", "password"),
        ("smtp_pass", "password"),
        ("PGPASSWORD", "password"),
        ("api_key", "strong"),
        ("SECRETACCESSKEY", "strong"),
        ("clientSecret", "strong"),
        ("AZURE_DEVOPS_PAT", "strong"),
        ("key", "weak"),
        ("MY_KEY", "weak"),
        ("session", "weak"),
        ("monkey", None),
        ("keyboard_shortcut", None),
        ("public_key", None),
        ("primaryKey", None),
        ("token_count", None),
        ("max_tokens_limit", None),
        ("MONGO_PASSWORD_FILE", None),
        ("client_id", None),
        ("tokenizer", None),
        ("passwordResetTokenExpiresAt", None),
        ("nextPageToken", None),
        ("pass_stmt", None),
    ],
)
def test_what_a_name_says(name: str, expected: str | None) -> None:
    assert strength_of(name) == expected


FORMS = [
    "{k}={v}",
    'export {k}="{v}"',
    '{{"{k}": "{v}"}}',
    "{k}: {v}",
    "os.environ['{k}'] = '{v}'",
    "{k} => {v}",
    '{k} := "{v}"',
    "-e {k}={v} \\",
    '"{{\\"{k}\\": \\"{v}\\"}}"',
    "<{k}>{v}</{k}>",
    "- name: {k}\n  value: {v}",
    '{{"name": "{k}", "value": "{v}"}}',
    'config.set("{k}", "{v}")',
    "--{k} {v}",
    "--{k}={v}",
    "ENV {k} {v}",
    "| {k} | {v} |",
    "**{k}:** `{v}`",
    "my {k} is {v} , can you set it up?",
    "{k}:\n  {v}\n",
    '<add key="{k}" value="{v}" />',
    'gh secret set {k} --body "{v}"',
    "配置{k}={v}已保存",
    "{k}是 {v}",
    "?x=1&{k}={v}&y=2",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "shape"), [("COHERE_API_KEY", BASE62), ("db_password", PASSWORD)])
def test_a_value_is_found_however_it_stands_beside_its_name(form: str, name: str, shape: str) -> None:
    value = token(shape, form)
    text = form.format(k=name, v=value)
    assert [text[f.start : f.end] for f in _assigned(text)] == [value]


@pytest.mark.parametrize(
    "text",
    [
        "A_PASSWORD=\nA_ENABLED=1",
        "password: string",
        "password = getpass.getpass()",
        "token = get_token(user_id)",
        'api_key = config["api_key"]',
        "key-value store",
        "tokens used: 12345",
        "password reset link",
        "password: ********",
        "MONGO_INITDB_ROOT_PASSWORD_FILE=/run/secrets/db_password",
        "if password != confirm_password:",
        "PASSWORD=${DB_PASS}",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "secretKeyRef:\n  name: db\n  key: password",
        "in addition you can pass `spec=True`",
        "public_key = rsa.generate_public_key(65537)",
        "The key insight: authentication is hard.",
        "password: required|min:8",
        'SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256")',
    ],
)
def test_code_and_prose_hold_no_secret(text: str) -> None:
    assert list(_assigned(text)) == []


@pytest.mark.parametrize(
    "said", ["密码是{v}，请改", "密码：{v}", "パスワードは {v} です", "비밀번호: {v}", "пароль: {v}", "口令为「{v}」"]
)
def test_names_in_other_scripts(said: str) -> None:
    value = token(PASSWORD, said)
    text = said.format(v=value)
    assert [text[f.start : f.end] for f in foreign_names(text, flat(text))] == [value]


@pytest.mark.parametrize(
    "text",
    ["密码长度至少为12位，必须包含A-Z和0-9", "令牌桶容量100", "密钥管理服务（KMS）的费用", "токен expired today"],
)
def test_prose_in_other_scripts(text: str) -> None:
    assert list(foreign_names(text, flat(text))) == []
