"""Tokens of vendors that no rule knows, and what looks like them."""

from __future__ import annotations

import pytest

from palace_pipeline.redaction.engine import RuleEngine
from tests.redaction.samples import token

ENGINE = RuleEngine()
HEX_ID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-9[0-9a-f]{3}-[0-9a-f]{12}"
UNKNOWN = {
    "short word, hex": "asat_[0-9a-f]{32}",
    "short word, capitals": "rpa_[A-Z0-9]{42}",
    "word for a secret": "esecret_[a-z0-9]{28}",
    "version in the prefix": "os_v2_app_[a-z2-7]{100}",
    "two hex parts": "zpka_[0-9a-f]{32}_[0-9a-f]{8}",
    "word, 24 mixed": "unkey_[A-Za-z0-9]{24}",
    "two words, a dash": "Mid-server-[A-Za-z0-9]{26}",
    "id and secret in hex": "[0-9a-f]{24}:[0-9a-f]{64}",
    "uuid and secret": HEX_ID + ":[0-9a-f]{32}",
    "account and secret": "[1-9][0-9]{15}\\|[A-Za-z0-9_-]{27}",
    "three parts": "cpk_[0-9a-f]{32}\\.[0-9a-f]{32}\\.[A-Za-z0-9]{32}",
    "api id": "KQAPI-" + HEX_ID,
    "groups": "KTN-[A-HJ-NP-Z2-9]{8}-[A-HJ-NP-Z2-9]{8}-[A-HJ-NP-Z2-9]{8}-[A-HJ-NP-Z2-9]{8}",
    "base32 behind a word": "ucat_[A-HJ-NP-Z2-9]{26}",
    "three parts, mixed": "pscl\\.[A-Za-z0-9_]{16}\\.[A-Za-z0-9_-]{48}",
    "base64 rest": "essu_[A-Za-z0-9+/]{76}==",
    "disk recovery": "[0-9]{6}-[0-9]{6}-[0-9]{6}-[0-9]{6}-[0-9]{6}-[0-9]{6}-[0-9]{6}-[0-9]{6}",
}
LIKE = {
    "ids": "(ses|prt|dpl|prj|evalrun|msgbatch)_[A-Za-z0-9]{26}",
    "sortable id": "zz_01[0-9a-hjkmnp-tv-z]{24}",
    "picture": "thumb_[0-9a-f]{32}\\.jpg",
    "branch": "nightly-[0-9a-f]{40}",
    "digest": "sha256=[A-Za-z0-9]{4}-[A-Za-z0-9]{38}",
    "two digests": "[0-9a-f]{40}:[0-9a-f]{40}",
    "uuid": "order-" + HEX_ID,
    "name": "ossl_check_X509_LOOKUP_sk_type",
    "tool call beside a word": "password of toolu_01[A-Za-z0-9]{22}",
    "request beside a word": "token of req-" + HEX_ID,
    "resource": "arn:aws:secretsmanager:eu-west-1:[0-9]{12}:secret:prod/db-[A-Za-z0-9]{6}",
    "sealed for a cluster": "password: AgB[A-Za-z0-9+/]{180}",
    "public key": '"kty":"RSA","use":"sig","kid":"[A-Za-z0-9_-]{20}","n":"[A-Za-z0-9_-]{340}","alg"',
    "numbers with thousands": "dial in, 1 250 000 - 1 [0-9]{3} 000",
    "cache key": "key: node-cache-Linux-npm-[0-9a-f]{64}",
}


def _left(text: str) -> str:
    for span in sorted(ENGINE.scan([text])[0], key=lambda span: -span.start):
        text = text[: span.start] + "\0" * (span.end - span.start) + text[span.end :]
    return text


@pytest.mark.parametrize("kind", UNKNOWN)
@pytest.mark.parametrize(
    "frame", ["{}", "it is {} now", "新的是{}，旧的作废", '<add value="{}"/>', "| prod | {} | yes |"]
)
def test_a_token_of_an_unknown_vendor_goes(kind: str, frame: str) -> None:
    missed = [seed for seed in range(10) if _left(frame.format(value := token(UNKNOWN[kind], seed))).count(value[-12:])]
    assert len(missed) <= 1, missed  # now and then random letters read like words


@pytest.mark.parametrize("kind", LIKE)
def test_what_looks_like_one_stays(kind: str) -> None:
    for seed in range(10):
        text = f"see {token(LIKE[kind], seed)} for this"
        assert _left(text) == text


@pytest.mark.parametrize(
    "frame",
    [
        "curl -su 'admin:{}' https://ci.acme.dev/api",
        "curl -u ':{}' https://ci.acme.dev/api",
        "cmdkey /generic:srv1 /user:bob /pass:{}",
        "xfreerdp /v:srv1 /u:bob /p:{} /size:1024x768",
        "net use Z: \\\\srv\\share /user:CORP\\bob {}",
        "snmpwalk -v3 -u bob -l authPriv -a SHA -A {} -x AES 10.0.0.1",
        'API_SECRET = (\n    "{}"\n)',
        "String API_SECRET =\n    '{}';",
        "<gatewayToken>\n    {}\n</gatewayToken>",
        "Authorization: {}",
        "az keyvault secret set --vault-name kv --name db --value '{}'",
        "lftp -u bob,{} ftp.acme.dev",
        "consul kv put app/db_password {}",
        "Key         Value\n---         -----\npassword    {}\n",
        "user=bob&pass={}&go=1",
        "127.0.0.1:6379> AUTH {}",
        'nmcli dev wifi connect home password "{}"',
        "+service,login,password\n+mail,bob,{}\n",
        '.basic_auth("bob", Some("{}"))',
        "zip -P {} a.zip b",
    ],
)
def test_a_value_in_its_place_goes(frame: str) -> None:
    value = token(
        "[A-Za-z0-9]{5}[0-9]{2}[A-Za-z]{8}!" if "/" in frame or "-" in frame else "[A-Za-z0-9]{26}[0-9]{2}", frame
    )
    assert value not in _left(frame.format(value))


@pytest.mark.parametrize("word", ["whitedove", "correcthorse", "zanzibarkid"])
def test_a_word_is_a_password_in_an_env_file(word: str) -> None:
    assert word not in _left(f"DB_HOST=db\nDB_PASSWORD={word}\n")
    assert word in _left(f"the password is {word} or so")


@pytest.mark.parametrize("value", ["required", "string", "prompt", "changeme", "yes", "stdin", "password"])
def test_a_word_that_says_how_a_password_is_given_is_none(value: str) -> None:
    text = f"A=1\nDB_PASSWORD={value}\n"
    assert _left(text) == text


@pytest.mark.parametrize("after", ["  (see above)", " (old)", "：，and", ":and", "」また", "|x"])
def test_a_key_behind_its_name_goes_whatever_follows(after: str) -> None:
    for seed in range(20):
        value = token("[A-Za-z0-9]{24,40}", f"{after}/{seed}") + "7"
        assert value not in _left(f"then api-key={value}{after}")


def test_literals_of_two_characters_and_keys_that_end_in_zeros() -> None:
    tail = token("[A-Z0-9]{7}")
    text = 'key = "DO00W3Z0" + "1' + tail[:2] + '" + "' + tail[2:] + '0000"'
    assert tail[2:] not in _left(text)
