"""Where an address of a message leads in an export."""

import pytest

from palace_pipeline.publish.links import Links, bare_links, picture_in

LINKS = Links({("chatgpt", "6634-a"): "2024-05-03-数据-1a2b3c4d.html"})


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\nscript:alert(1)",
        "vbscript:x",
        "data:text/html,<script>alert(1)</script>",
        "data:image/png;base64,AAAA",
        "file:///etc/passwd",
        "sandbox:/mnt/data/x.csv",
        "../../secret",
        "//evil.example/x",
        "http:///x",
        "",
        "https://example.org/?key=[REDACTED:api_key]",
        "https://example.org/?key=%5BREDACTED:api_key%5D",
    ],
)
def test_what_leads_nowhere(address: str) -> None:
    assert LINKS.of(address) is None


def test_the_web_and_mail() -> None:
    assert LINKS.of("https://example.org/a?b=c&d=e#f") == "https://example.org/a?b=c&d=e#f"
    assert LINKS.of("https://example.org/中 文\"'<>") == "https://example.org/%E4%B8%AD%20%E6%96%87%22'%3C%3E"
    assert LINKS.of("https://example.org/%E4%B8%AD") == "https://example.org/%E4%B8%AD"
    assert LINKS.of("mailto:anna@example.org") == "mailto:anna@example.org"


def test_a_chat_of_the_same_export_is_a_file_beside() -> None:
    beside = "2024-05-03-%E6%95%B0%E6%8D%AE-1a2b3c4d.html"
    assert LINKS.of("https://chatgpt.com/c/6634-a") == beside
    assert LINKS.of("https://chat.openai.com/c/6634-a?model=x") == beside
    assert LINKS.of("https://chatgpt.com/c/other") == "https://chatgpt.com/c/other"
    assert LINKS.of("https://claude.ai/chat/6634-a") == "https://claude.ai/chat/6634-a"


def test_pictures_that_bring_their_data() -> None:
    assert picture_in("data:image/png;base64,iVBORw0KGgo=") is not None
    for address in ("data:image/svg+xml;base64,PHN2Zz4=", "data:image/png;base64,a b", "https://example.org/a.png"):
        assert picture_in(address) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no address", []),
        ("see https://a.example/x.", ["https://a.example/x"]),
        ("(https://a.example/x_(y))", ["https://a.example/x_(y)"]),
        ("看https://a.example/x，再看", ["https://a.example/x"]),
        ("“https://a.example”", ["https://a.example"]),
        ("https://a.example/?q=1&r=2, HTTP://B.example/", ["https://a.example/?q=1&r=2", "HTTP://B.example/"]),
        ("https://a.example/[REDACTED:email]", ["https://a.example/[REDACTED:email]"]),
    ],
)
def test_bare_addresses(text: str, found: list[str]) -> None:
    pieces = bare_links(text)
    assert [piece for piece, address in pieces if address] == found
    assert "".join(piece for piece, _ in pieces) == text
