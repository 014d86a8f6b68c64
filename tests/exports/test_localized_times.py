"""Times as Google writes them in the languages of the world."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.localized_times import read_localized_time

INSTANTS = {
    "Mar 14, 2026, 6:30:00\u202fPM UTC": "2026-03-14T18:30:00",
    "Mar 14, 2026, 9:05:00\u00a0AM GMT+01:00": "2026-03-14T08:05:00",
    "Jan 2, 2025, 3:04:05 PM EDT": "2025-01-02T19:04:05",
    "Jan 2, 2025, 3:04:05 PM GMT+5": "2025-01-02T10:04:05",
    "Jan 2, 2025, 3:04:05 PM GMT+05:30": "2025-01-02T09:34:05",
    "Jan 2, 2025, 3:04:05 PM GMT\u22123:30": "2025-01-02T18:34:05",
    "Jan 2, 2025, 12:04:05 AM PST": "2025-01-02T08:04:05",
    "Jan 2, 2025, 12:04:05 PM PST": "2025-01-02T20:04:05",
    "14 Mar 2026, 7:30:00 pm AEDT": "2026-03-14T08:30:00",
    "14/03/2026, 19:30:00 GMT": "2026-03-14T19:30:00",
    "14.03.2026, 19:30:00 MEZ": "2026-03-14T18:30:00",
    "14. März 2026 um 19:30:00 MESZ": "2026-03-14T17:30:00",
    "14 févr. 2026, 19:30:00 UTC+1": "2026-02-14T18:30:00",
    "14 août 2026 à 19:30:00 UTC+2": "2026-08-14T17:30:00",
    "14 mars 2026, 19 h 30 min 05 s HAE": "2026-03-14T23:30:05",
    "17 de fev. de 2026, 14:51:53 BRT": "2026-02-17T17:51:53",
    "17 de feb. de 2026, 15:08:20 CET": "2026-02-17T14:08:20",
    "14 oct. 2026, 7:30:00 p. m. GMT-5": "2026-10-15T00:30:00",
    "17 set 2026, 15:08:20 CEST": "2026-09-17T13:08:20",
    "14 mrt 2026, 19:30:00 CET": "2026-03-14T18:30:00",
    "14 мар. 2026 г., 19:30:00 GMT+3": "2026-03-14T16:30:00",
    "14 марта 2026 г. в 19:30:00 МСК": "2026-03-14T16:30:00",
    "14 бер. 2026 р., 19:30:00 EET": "2026-03-14T17:30:00",
    "14 paź 2026, 19:30:00 CEST": "2026-10-14T17:30:00",
    "14. 3. 2026 19:30:00 SEČ": "2026-03-14T18:30:00",
    "14 Mar 2026 19:30:00 GMT+3": "2026-03-14T16:30:00",
    "2026. márc. 14. 19:30:00 CET": "2026-03-14T18:30:00",
    "14. mar. 2026 19.30.00 CET": "2026-03-14T18:30:00",
    "14.3.2026 klo 19.30.00 EET": "2026-03-14T17:30:00",
    "14 Μαρ 2026, 6:30:00 μ.μ. EET": "2026-03-14T16:30:00",
    "14 Mar 2026, 19.30.00 WIB": "2026-03-14T12:30:00",
    "19:30:00 14 thg 3, 2026 GMT+7": "2026-03-14T12:30:00",
    "14 มี.ค. 2569 19:30:00 GMT+7": "2026-03-14T12:30:00",
    "14 मार्च 2026, 7:30:00 pm IST": "2026-03-14T14:00:00",
    "14 במרץ 2026, 19:30:00 IST": "2026-03-14T17:30:00",
    "١٤‏/٠٣‏/٢٠٢٦، ٧:٣٠:٠٠ م غرينتش+٣": "2026-03-14T16:30:00",
    "2026年3月14日 19:30:00 GMT+8": "2026-03-14T11:30:00",
    "2026年3月14日 下午7:30:00 CST": "2026-03-14T11:30:00",
    "2026年3月14日 上午12:05:00 GMT+08:00": "2026-03-13T16:05:00",
    "2026年3月14日星期六 中国标准时间 19:30:00": "2026-03-14T11:30:00",
    "2026年3月14日 下午7:30:00 [GMT+8]": "2026-03-14T11:30:00",
    "2026/03/14 19:30:00 JST": "2026-03-14T10:30:00",
    "2026年3月14日土曜日 19時30分00秒 日本標準時": "2026-03-14T10:30:00",
    "2026. 5. 28. 오전 1:30:00 KST": "2026-05-27T16:30:00",
    "2026-03-14 19:30:00 CET": "2026-03-14T18:30:00",
    "2026-03-14T19:30:00.250Z": "2026-03-14T19:30:00.250000",
    "Dec 14, 2026, 6:30:00 PM CST": "2026-12-15T00:30:00",
}


@pytest.mark.parametrize("text", INSTANTS)
def test_instants(text):
    written = read_localized_time(text)
    assert written is not None
    assert written.instant == datetime.fromisoformat(INSTANTS[text]).replace(tzinfo=UTC)
    assert (written.local, written.unknown_zone) == (None, None)


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("Jul 14, 2026, 6:30:00 PM CST", "CST"),  # North America has CDT then
        ("Jul 14, 2026, 6:30:00 PM XYZT", "XYZT"),
        ("Jul 14, 2026, 6:30:00 PM", None),
    ],
)
def test_a_zone_that_nobody_knows_leaves_a_local_time(text, zone):
    written = read_localized_time(text)
    assert written is not None
    assert (written.instant, written.local, written.unknown_zone) == (None, "2026-07-14T18:30:00", zone)


@pytest.mark.parametrize(
    "text",
    [
        *("", "潮", "Mar 14, 2026", "18:30:00", "Meeting on Mar 14, 2026, 6:30:00 PM UTC", "1.2.3"),
        *("Mar 44, 2026, 6:30:00 PM UTC", "Mar 14, 2026, 26:30:00 UTC", "Mai 14, 1066, 6:30:00 UTC"),
        *("at 18:30:00 on 14.03.2026 I left", "2026年3月14日我在 19:30:00 出发", "9" * 89, "x" * 500),
    ],
)
def test_words_of_a_person_are_no_time(text):
    assert read_localized_time(text) is None


@given(
    st.datetimes(datetime(1990, 1, 2), datetime(2199, 12, 30)).map(lambda moment: moment.replace(microsecond=0)),
    st.integers(-12, 14),
    st.sampled_from([0, 30, 45]),
    st.sampled_from(["{h12}:{m:02}:{s:02}\u202f{half}", "{h:02}:{m:02}:{s:02}"]),
    st.sampled_from(
        ["{month} {d}, {y}, {clock} {zone}", "{d}. {month} {y}, {clock} {zone}", "{y}年{n}月{d}日 {clock} {zone}"]
    ),
)
def test_every_moment_in_every_zone_comes_back(moment, hours, minutes, clock, shape):
    offset = timedelta(hours=hours, minutes=minutes if hours >= 0 else -minutes)
    zone = f"GMT{'-' if hours < 0 else '+'}{abs(hours)}" + (f":{minutes:02}" if minutes else "")
    local = moment + offset
    clock = clock.format(
        h12=local.hour % 12 or 12, h=local.hour, m=local.minute, s=local.second, half="PM" if local.hour > 11 else "AM"
    )
    text = shape.format(month=f"{local:%b}", n=local.month, d=local.day, y=local.year, clock=clock, zone=zone)
    written = read_localized_time(text)
    assert written is not None
    assert written.instant == moment.replace(tzinfo=UTC)


@given(st.text(alphabet="0123456789:./-, APMGTUCmarz年月日\u202f+\0", max_size=60))
def test_anything_is_a_time_or_none(text):
    written = read_localized_time(text)
    assert written is None or (written.instant is None) != (written.local is None)
