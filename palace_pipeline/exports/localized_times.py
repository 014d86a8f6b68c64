"""Times as Google writes them for people, in the language of the account: `14. März 2026, 19:30:00 MEZ` -> an instant.

The shapes are those of Unicode CLDR's "medium" date with a clock to the second and a short zone name, as they stand in
Takeout's `MyActivity.html` (seen in public parsers and issues for en, de, pt, es, ko; the other languages from CLDR 48,
checked 2026-11-29). A line counts only if it is a time and nothing else, so that words of a person are never one.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from palace_pipeline.exports.times import parse_instant

_LONGEST = 90


@dataclass(frozen=True, slots=True)
class WrittenTime:
    """`instant` in UTC, or the `local` time (`YYYY-MM-DDTHH:MM:SS`) where the zone is missing or not known.

    `unknown_zone`: the zone's name as written, if nobody can say what it is.
    """

    instant: datetime | None
    local: str | None
    unknown_zone: str | None = None


_MONTHS_WRITTEN = (
    """january jan januar janvier janv enero ene janeiro gennaio gen januari januára ledna stycznia sty ianuarie ian ocak oca
    январь января янв січень січня січ януари јануар ιανουαρίου ιαν jänner jän gener sausio jaanuar janvāris januára
    यनवरी जनवरी জানুয়ারী มกราคม ม.ค. ינואר يناير كانون""",
    """february feb februar février févr fév febrero fevereiro fev febbraio februari února lutego lut februarie şubat şub
    февраль февраля февр фев лютий лютого лют февруари фебруар φεβρουαρίου φεβ febrer febr vasario veebruar februāris
    februára फ़रवरी फरवरी กุมภาพันธ์ ก.พ. פברואר فبراير""",
    """march mar märz mär mrz mars marzo março marzec marca maart mrt marec března martie mart март марта мар березень березня
    бер март μαρτίου μαρ marts març kovo märts मार्च มีนาคม มี.ค. מרץ מרס مارس március márc""",
    """april apr avril avr abril abr aprile dubna kwietnia kwi aprilie nisan nis апрель апреля апр квітень квітня квіт кві
    април απριλίου απρ aprill aprīlis apríla अप्रैल เมษายน เม.ย. אפריל أبريل április ápr balandžio""",
    """may mai mayo maio maggio mag mei května maja maj mayıs май мая травень травня трав μαΐου μαϊου μαΐ maig gegužės
    maijs mája मई พฤษภาคม พ.ค. מאי مايو május máj""",
    """june jun juni juin junio junho giugno giu června czerwca cze iunie iun haziran haz июнь июня июн червень червня черв
    юни ιουνίου ιουν juny birželio juuni jūnijs júna जून มิถุนายน มิ.ย. יוני يونيو június jún""",
    """july jul juli juillet juil julio julho luglio lug července lipca lip iulie iul temmuz tem июль июля июл липень липня
    лип юли ιουλίου ιουλ juliol liepos juuli jūlijs júla जुलाई กรกฎาคม ก.ค. יולי يوليو július júl""",
    """august aug août agosto ago agustus agu augustus srpna sierpnia sie ağustos ağu август августа авг серпень серпня серп
    αυγούστου αυγ agost rugpjūčio augusti augusts augusta अगस्त สิงหาคม ส.ค. אוגוסט أغسطس augusztus ogos ogo ога""",
    """september sept sep septembre septiembre setembro set settembre sett září września wrz septembrie eylül eyl сентябрь
    сентября сент сен вересень вересня вер септември σεπτεμβρίου σεπ setembre rugsėjo septembris septembra सितंबर सितम्बर
    กันยายน ก.ย. ספטמבר سبتمبر szeptember szept""",
    """october oct oktober okt octobre octubre outubro out ottobre ott października paź octombrie ekim eki oktoober октябрь
    октября окт жовтень жовтня жовт октомври οκτωβρίου οκτ spalio oktobris októbra अक्टूबर अक्तूबर ตุลาคม ต.ค. אוקטובר
    أكتوبر október""",
    """november nov novembre noviembre novembro listopadu listopada lis noiembrie noi kasım kas ноябрь ноября нояб ноя
    листопад листопада лист ноември νοεμβρίου νοε νοέ lapkričio novembris novembra नवंबर नवम्बर พฤศจิกายน พ.ย. נובמבר
    نوفمبر""",
    """december dec dezember dez décembre déc diciembre dic dezembro dicembre desember des prosince grudnia gru decembrie
    aralık ara декабрь декабря дек грудень грудня груд декември δεκεμβρίου δεκ desembre gruodžio detsember decembris
    decembra दिसंबर दिसम्बर ธันวาคม ธ.ค. דצמבר ديسمبر dis""",
)
_BESIDE_WRITTEN = """
    de del di d of the at den der le la las los a à alle ore um uhr klo kl om h г р в о год года року u gada m ז
    mon monday tue tues tuesday wed wednesday thu thur thurs thursday fri friday sat saturday sun sunday
    montag dienstag mittwoch donnerstag freitag samstag sonntag mo di mi do fr sa so
    lun lundi lunes lunedì mardi martes martedì mer mercredi mercoledì jeu jeudi jueves giovedì ven vendredi venerdì
    viernes sam samedi sábado sabato dim dimanche domingo domenica segunda terça quarta quinta sexta feira
    maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
    """
_ZONES_WRITTEN = """
    UTC 0 GMT 0 Z 0 WET 0 WEZ 0 WEST 60 WESZ 60 BST 60 CET 60 MEZ 60 CEST 120 MESZ 120 EET 120 OEZ 120 EEST 180 OESZ 180
    SEČ 60 SELČ 120
    HNEC 60 HEEC 120 HAEC 120 MSK 180 МСК 180 TRT 180 SAST 120 CAT 120 EAT 180 WAT 60 IDT 180 GST 240 IRST 210 PKT 300
    NPT 345 BDT 360 MMT 390 ICT 420 WIB 420 WITA 480 WIT 540 HKT 480 SGT 480 MYT 480 PHT 480 PHST 480 AWST 480 JST 540
    KST 540 ACST 570 ACDT 630 AEST 600 AEDT 660 NZST 720 NZDT 780 HST -600 HDT -540 AKST -540 AKDT -480 PST -480 PDT -420
    MST -420 MDT -360 CDT -300 EST -300 EDT -240 ADT -180 NST -210 NDT -150 HNE -300 HAE -240 HNC -360 HAC -300 HNR -420
    HAR -360 HNP -480 HAP -420 BRT -180 BRST -120 ART -180 CLT -240 CLST -180 COT -300 PET -300 VET -240 BOT -240
    ECT -300 UYT -180 PYT -240 PYST -180 GFT -180 AMT -240
    """
_ZONE_PHRASES = {
    "中国标准时间": 480, "中國標準時間": 480, "北京时间": 480, "台北標準時間": 480, "香港標準時間": 480, "日本标准时间": 540,
    "日本標準時間": 540, "日本標準時": 540, "대한민국 표준시": 540, "한국 표준시": 540, "协调世界时": 0, "世界標準時間": 0,
    "格林尼治标准时间": 0, "格林威治標準時間": 0, "グリニッジ標準時": 0, "協定世界時": 0, "그리니치 표준시": 0,
    "mitteleuropäische zeit": 60, "mitteleuropäische normalzeit": 60, "mitteleuropäische sommerzeit": 120,
    "heure normale d’europe centrale": 60, "heure d’été d’europe centrale": 120, "москва, стандартное время": 180,
}  # fmt: skip
_MORNING = (
    "上午|午前|오전|凌晨|清晨|早上|早晨|a\\. ?m\\.|a\\.m\\.|am|sa|ص|π\\.μ\\.|πμ|पूर्वाह्न|öö|de\\.|pg|f\\.h\\.|vorm\\."
)
_AFTERNOON = "下午|午後|오후|晚上|晚间|晚間|傍晚|中午|p\\. ?m\\.|p\\.m\\.|pm|ch|م|μ\\.μ\\.|μμ|अपराह्न|ös|du\\.|ptg|e\\.h\\.|nachm\\."
_HALF = rf"(?P<am>{_MORNING})|(?P<pm>{_AFTERNOON})"
_CLOCKS = (
    r"(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2}))?(?!\d)",
    r"(?P<h>\d{1,2}) ?[时時點点시] ?(?P<m>\d{1,2}) ?[分분](?: ?(?P<s>\d{1,2}) ?[秒초])?",
    r"(?P<h>\d{1,2}) h (?P<m>\d{1,2}) min(?: (?P<s>\d{1,2}) s)?",
    r"(?<![\d.])(?P<h>\d{1,2})\.(?P<m>\d{2})\.(?P<s>\d{2})(?![\d.])",
)
_CLOCK = [
    re.compile(
        rf"(?:(?:{_HALF})[ ,]?)?(?<!\d){clock}(?: ?(?:{_HALF.replace('<am>', '<am2>').replace('<pm>', '<pm2>')})(?!\w))?"
    )
    for clock in _CLOCKS
]
_OFFSET = re.compile(r"[^\s\d+(\[-]{0,14}(?<!\d) ?(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2}))?(?![\d-])")
_NAME = re.compile(r"(?<!\w)[^\W\d_]{1,5}(?!\w)")
_YEAR_FIRST = re.compile(r"(\d{4}) ?[-/.年년] ?(\d{1,2}) ?[-/.月월] ?(\d{1,2}) ?[日號号일.]?")
_DAY_FIRST = re.compile(r"(\d{1,2}) ?[-/.] ?(\d{1,2}) ?[-/.] ?(\d{4})")
_DAY_THEN_WORD_MONTH = re.compile(r"(\d{1,2}) ?(?:thg|tháng|,) ?(\d{1,2}),? ?(?:năm )?(\d{4})")
_WEEKDAY_SIGNS = re.compile(
    r"[(（]?(?:星期|周|週)[一二三四五六日天][)）]?|[(（][月火水木金土日월화수목금토일][)）]|[月火水木金土日]曜日|[월화수목금토일]요일"
)
_BETWEEN_WORDS = re.compile(r"[\s\d,;،()\[\]/|·-]+")
_YEAR = re.compile(r"\d{4}")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_SPACES = re.compile(r"\s+")
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\u061c\ufeff]")


def _bare(word: str) -> str:
    """Lower case without accents and dots, so that `Févr.` and `fevr` are one."""
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in parts if not unicodedata.combining(c) and c != ".")


_MONTHS = {_bare(name): number for number, names in enumerate(_MONTHS_WRITTEN, 1) for name in names.split()}
_BESIDE = frozenset(_bare(word) for word in _BESIDE_WRITTEN.split())
_ZONE_WORDS = _ZONES_WRITTEN.split()
_ZONES = {name: int(minutes) for name, minutes in zip(_ZONE_WORDS[::2], _ZONE_WORDS[1::2], strict=True)}


@lru_cache(maxsize=4096)
def read_localized_time(text: str) -> WrittenTime | None:
    """The time that `text` is, or None if it is anything else (a word too many, no clock, no year, no such day)."""
    if len(text) > _LONGEST or _YEAR.search(text) is None:
        return None
    if (instant := parse_instant(text)) is not None and "-" in text:
        return WrittenTime(instant, None)
    line = _western(text)
    for clock in _CLOCK:
        for found in clock.finditer(line.casefold()):
            if (written := _read(line, found)) is not None:
                return written
    return None


def _western(text: str) -> str:
    """Digits, colons, minus signs and blanks of all scripts as those of ASCII; marks of direction left out."""
    text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).replace("\u2212", "-")
    text = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
    return _SPACES.sub(" ", text).strip(" ,")


def _read(line: str, clock: re.Match[str]) -> WrittenTime | None:
    if len(line.casefold()) != len(line):  # characters that grow in lower case would move all that follows
        line = line.casefold()
    rest, zone, offset = _zone(line[: clock.start()], line[clock.end() :])
    day = _day(rest)
    if day is None:
        return None
    hour = int(clock["h"])
    morning, afternoon = clock["am"] or clock["am2"], clock["pm"] or clock["pm2"]
    if afternoon and hour < 12 and not (afternoon == "中午" and hour >= 11):
        hour += 12
    elif morning and hour == 12:
        hour = 0
    try:
        local = datetime(*day, hour, int(clock["m"]), int(clock["s"] or 0))
    except ValueError:
        return None
    if offset is None and zone is not None:
        offset = _offset_of(zone, local, line)
    if offset is None:
        return WrittenTime(None, local.isoformat(timespec="seconds"), zone)
    try:
        return WrittenTime(local.replace(tzinfo=timezone(timedelta(minutes=offset))).astimezone(UTC), None)
    except (ValueError, OverflowError):
        return None


def _zone(before: str, after: str) -> tuple[str, str | None, int | None]:
    """(what is left for the date, name of the zone, minutes east of UTC)."""
    rest = f"{before} \0 {after}"
    lower = rest.casefold()
    for match in _OFFSET.finditer(lower):
        minutes = int(match["h"]) * 60 + int(match["m"] or 0)
        if minutes <= 15 * 60 and int(match["m"] or 0) < 60:
            left = rest[: match.start()] + " " + rest[match.end() :]
            return left, None, -minutes if match["sign"] == "-" else minutes
    for phrase, minutes in _ZONE_PHRASES.items():
        if phrase in lower:
            return lower.replace(phrase, " ", 1), None, minutes
    names = [match for match in _NAME.finditer(rest) if match[0].isupper() and _bare(match[0]) not in _MONTHS]
    known = [match for match in names if match[0] in _ZONES or match[0] in _AMBIGUOUS]
    for match in known or [match for match in names if match.start() > len(before) and _bare(match[0]) not in _BESIDE]:
        return rest[: match.start()] + " " + rest[match.end() :], match[0], None
    return rest, None, None


_AMBIGUOUS = ("CST", "IST", "AST")


def _offset_of(zone: str, local: datetime, line: str) -> int | None:
    """Minutes east of UTC of a zone by its short name; for names of several zones the language decides.

    CST is China's in a Chinese date; else North America's, which has it in winter only.
    """
    if zone == "CST":
        if "月" in line or "年" in line:
            return 480
        return -360 if local.month in (1, 2, 11, 12) or (local.month == 3 and local.day < 15) else None
    if zone == "IST":
        return 120 if re.search("[\u0590-\u05ff]", line) else 330
    if zone == "AST":
        return 180 if re.search("[\u0600-\u06ff]", line) else -240
    return _ZONES.get(zone)


def _day(rest: str) -> tuple[int, int, int] | None:
    """(year, month, day) if the text is a date and nothing else."""
    rest = _SPACES.sub(" ", _WEEKDAY_SIGNS.sub(" ", rest).replace("\0", " ")).strip(" ,.،·|-–—()[]")
    for shape, order in ((_YEAR_FIRST, (0, 1, 2)), (_DAY_FIRST, (2, 1, 0)), (_DAY_THEN_WORD_MONTH, (2, 1, 0))):
        if (match := shape.search(rest)) is not None and _is_beside(rest[: match.start()] + " " + rest[match.end() :]):
            numbers = [int(number) for number in match.groups()]
            year, month, day = (numbers[place] for place in order)
            return _plausible(year, month, day) or (_plausible(year, day, month) if shape is _DAY_FIRST else None)
    numbers = re.findall(r"\d+", rest)
    words = _words(rest)
    months = [word for word in words if word in _MONTHS]
    if len(numbers) != 2 or len(months) != 1 or not all(word in _MONTHS or word in _BESIDE for word in words):
        return None
    years = [number for number in numbers if len(number) == 4]
    days = [number for number in numbers if len(number) <= 2]
    if len(years) != 1 or len(days) != 1:
        return None
    return _plausible(int(years[0]), _MONTHS[months[0]], int(days[0]))


def _is_beside(rest: str) -> bool:
    return not re.search(r"\d", rest) and all(word in _BESIDE for word in _words(rest))


def _words(text: str) -> list[str]:
    """The words of a date; Hebrew writes "of March" as one word."""
    words = [word for part in _BETWEEN_WORDS.split(text) if (word := _bare(part))]
    return [word[1:] if word.startswith("ב") and word[1:] in _MONTHS else word for word in words]


def _plausible(year: int, month: int, day: int) -> tuple[int, int, int] | None:
    if 2530 <= year <= 2700:
        year -= 543  # Thai dates count from the Buddha
    try:
        datetime(year, month, day)
    except ValueError:
        return None
    return (year, month, day) if 1990 <= year < 2200 else None
