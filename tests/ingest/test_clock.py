"""A clock that is wrong: nothing is read before this Palace was made, and days are put right when the clock is."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from palace_pipeline.ingest import ingest, run
from palace_pipeline.settings import load_settings
from palace_pipeline.store import home as home_module
from palace_pipeline.store.home import ClockWrong, Home
from tests.ingest.exports_for_tests import chat, export

FUTURE = datetime(2099, 1, 1, tzinfo=UTC)
NOW = datetime(2027, 3, 5, 12, tzinfo=UTC)
LATER = datetime(2027, 3, 9, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def at(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return now

    monkeypatch.setattr(run, "datetime", Clock)
    monkeypatch.setattr(home_module, "datetime", Clock)


def look(home: Home, path: Path) -> None:
    with home.writing():
        ingest(home, [path], batch="test")


def days(home: Home) -> dict[str, tuple[str, int, str | None]]:
    with home.ledger() as ledger:
        rows = ledger.rows("SELECT conversation_id, day, dated, undated_reason FROM conversations")
        return {row[0]: (row[1], row[2], row[3]) for row in rows}


@pytest.mark.parametrize("now", [datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 10, 31, tzinfo=UTC)])
def test_a_clock_of_before_palace_was_made_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: datetime
) -> None:
    source = export(tmp_path / "a.json", chat("a", "when?", "now"))
    at(monkeypatch, now)
    with pytest.raises(ClockWrong, match=f"{now.date()}.*Nothing was changed.*Set the clock"):
        look(home, source)
    assert not home.path.exists()


def test_a_chat_without_times_that_was_seen_in_2099_comes_back_to_the_day_the_clock_was_set_right(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = export(tmp_path / "a.json", chat("u", "when?", "nobody knows", start=None), chat("d", "dated", "yes"))
    at(monkeypatch, FUTURE)
    look(home, source)
    assert days(home) == {"u": ("2099-01-01", 0, "no time"), "d": ("2024-05-03", 1, None)}
    at(monkeypatch, NOW)
    look(home, source)
    assert days(home) == {"u": ("2027-03-05", 0, "no time"), "d": ("2024-05-03", 1, None)}
    at(monkeypatch, LATER)  # and stays
    look(home, source)
    assert days(home)["u"][0] == "2027-03-05"


def test_dates_that_were_in_the_future_for_a_clock_that_was_late_count_when_it_is_right(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day_of_the_chat = date(2027, 3, 8)
    start = datetime(2027, 3, 8, 10, tzinfo=UTC).timestamp()
    source = export(tmp_path / "a.json", chat("f", "tomorrow", "never dies", start=start), chat("d", "dated", "yes"))
    never = export(tmp_path / "b.json", chat("n", "in a hundred years", "yes", start=start + 100 * 366 * 86_400))
    at(monkeypatch, NOW)
    look(home, source)
    look(home, never)
    assert days(home)["f"] == ("2027-03-05", 0, "in the future")
    at(monkeypatch, LATER)
    look(home, source)
    assert days(home) == {
        "f": (day_of_the_chat.isoformat(), 1, None),
        "n": ("2027-03-05", 0, "in the future"),
        "d": ("2024-05-03", 1, None),
    }
