"""Gemini Apps in Google's My Activity: one activity -> rows, rows -> conversations, for the JSON and the HTML of it.

The source knows no conversations (only a few activities link theirs). What belongs together must not depend on what
else is in a file, since next month's export has newer activities and has lost old ones. So: activities of one UTC day
are one conversation, unless they name the chat they belong to; those without a time stand alone. An activity is known
by its second and its words, so that JSON and HTML of one account, and exports in two languages, meet.
Facts: public parsers of real exports (1,640, 1,452 and 2,061 records; a German HTML of 73 MB), checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from posixpath import basename
from urllib.parse import unquote

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.ids import derive_ids
from palace_pipeline.exports.text import clean_text
from palace_pipeline.model import Attachment, Citation, Conversation, Kind, Message, Role, short_hash

PROVIDER = "gemini"

_PROMPT_VERBS = (
    # Seen in real exports.
    *("Prompted with", "Prompted", "Asked Gemini", "Asked Bard", "Asked", "Said", "You said", "Branched", "Answered"),
    *("Eingegebener Prompt", "Fez uma pergunta", "Perguntou", "Preguntó"),
    # As other parsers and the product's pages name it, not seen in an export.
    *("Sent a prompt", "Prompt eingegeben", "Gefragt", "Gesendeter Prompt", "Sie haben gefragt"),
    *("Prompt saisi", "Invite saisie", "Requête saisie", "Requête envoyée", "Requête", "A demandé", "Question posée"),
    *("Preguntaste", "Has preguntado", "Petición enviada", "Petición", "Instrucción enviada", "Prompt introducido"),
    *("Você perguntou", "Comando enviado", "Comando inserido", "Prompt inserido", "Prompt enviado", "Solicitação"),
    *("Prompt inserito", "Prompt inviato", "Hai chiesto", "Richiesta inviata"),
    *("Ingevoerde prompt", "Prompt ingevoerd", "Gevraagd", "Angiven prompt", "Indtastet prompt", "Angitt prompt"),
    *("Wpisany prompt", "Prompt", "Zapytanie", "Zadaný prompt", "Výzva", "İstem", "Girilen istem", "Perintah"),
    *("Câu lệnh", "Đã nhập câu lệnh", "Запрос", "Введён запрос", "Введен запрос", "Отправлен запрос", "Вы спросили"),
    *(
        "Запит",
        "Введено запит",
        "プロンプト",
        "送信したメッセージ",
        "送信したプロンプト",
        "入力したプロンプト",
        "質問しました",
        "質問",
    ),
    *(
        "已发送提示",
        "发送了提示",
        "输入的提示",
        "输入了提示",
        "提示词",
        "提示",
        "已提问",
        "提问了",
        "提问",
        "询问了",
        "询问",
        "已询问",
    ),
    *("已傳送提示", "輸入的提示詞", "輸入的提示", "輸入提示", "提示詞", "已提問", "提問", "詢問", "已詢問"),
    *("입력한 프롬프트", "프롬프트 입력", "프롬프트", "질문", "المطالبة", "طلب", "הנחיה", "प्रॉम्प्ट", "พรอมต์"),
)
_OTHER_VERBS = (
    *("Created", "Used", "Gave", "Selected", "Added", "Shared", "Deleted", "Viewed", "Visited", "Searched", "Edited"),
    *(
        "Pinned",
        "Renamed",
        "Exported",
        "Updated",
        "Cleared",
        "Removed",
        "Rated",
        "Reported",
        "Opened",
        "Turned",
        "Canvas",
    ),
    *("Feedback", "Listened", "Started", "Saved", "Scheduled", "Imported", "Connected", "Disconnected", "Generated"),
    *(
        "Erstellt",
        "Verwendet",
        "Gemini Canvas erstellt",
        "Feedback gegeben",
        "Ausgewählt",
        "Criou",
        "Usou",
        "Deu feedback",
    ),
    *(
        "Selecionou",
        "Creó",
        "Usó",
        "Has creado",
        "Has usado",
        "Se ha creado",
        "Se ha usado",
        "Dio comentarios",
        "Création",
    ),
    *(
        "A créé",
        "A utilisé",
        "Utilisation",
        "Hai creato",
        "Hai usato",
        "Gemaakt",
        "Gebruikt",
        "Создано",
        "Использовано",
    ),
    *("创建了", "已创建", "使用了", "已使用", "選取了", "建立了", "已建立", "选择了", "提供了反馈", "생성", "사용"),
)
_OTHER_ENDINGS = (
    "を作成しました",
    "を使用しました",
    "を選択しました",
    "을 사용함",
    "를 사용함",
    "을 만듦",
    "를 만듦",
    "verwendet",
    "erstellt",
)
_CHARS = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff"
_BLANK = r"[\s\u00a0\u202f]"


def _verbs(verbs: Iterable[str]) -> re.Pattern[str]:
    """Any of the verbs (the longest that fits) at the start: a colon or a blank follows, or, in CJK, nothing."""
    written = "|".join(re.escape(verb) for verb in sorted(verbs, key=len, reverse=True))
    return re.compile(
        rf"(?P<verb>{written}){_BLANK}*(?:[:：]{_BLANK}*|{_BLANK}+|$|(?<=[{_CHARS}]))".replace(r"\ ", _BLANK),
        re.IGNORECASE,
    )


_PROMPT = _verbs(_PROMPT_VERBS)
_OTHER = _verbs(_OTHER_VERBS)
_UNKNOWN_VERB = re.compile(r"[^\W\d_][^\u00a0\n]{1,38}[:：]?\u00a0+(?=\S)")
_ATTACHED = re.compile(r"(?:^|\s+)Attached \d{1,3} files?\.?\s*$")
_CHAT_ADDRESS = re.compile(r"https://gemini\.google\.com/(?:u/\d+/)?app/([A-Za-z0-9_-]{6,80})(?![A-Za-z0-9_-])")
_MARKS = re.compile(r"[\W_]+")
_SHORTEST_NAME = 3


@dataclass(slots=True)
class Activity:
    """One activity as either form holds it. `title` with its verb; `answer` as text; times as far as they are known.

    `notes`: what the product says beside the title (which Gem was used); `addresses`: links beside title and answer.
    """

    title: str
    answer: str = ""
    created_at: datetime | None = None
    local_time: str | None = None
    product: str = ""
    files: list[Attachment] = field(default_factory=list[Attachment])
    answer_files: list[Attachment] = field(default_factory=list[Attachment])
    citations: list[Citation] = field(default_factory=list[Citation])
    notes: list[str] = field(default_factory=list[str])
    addresses: list[str] = field(default_factory=list[str])


def is_gemini(labels: Iterable[object]) -> bool:
    """Whether one of the product labels of an activity is Gemini's, in any language, or its old name's."""
    return any(isinstance(label, str) and re.search("gemini|(?:^|\\W)bard(?:$|\\W)", label.lower()) for label in labels)


def prompt_of(title: str) -> tuple[str, bool]:
    """(what the person typed, whether the verb before it is known). Without a known verb the whole title is kept.

    The HTML sets a no-break space behind the verb, whatever the language.
    """
    match = _PROMPT.match(title)
    if match is not None:
        return title[match.end() :].strip(), True
    if (match := _UNKNOWN_VERB.match(title)) is not None:
        return title[match.end() :].strip(), True
    return title.strip(), False


def is_other_kind(activity: Activity) -> bool:
    """Whether an activity is the use of the product (a canvas made, feedback given) and no prompt."""
    title = activity.title.strip()
    if _PROMPT.match(title):
        return False
    if _OTHER.match(title) or title.rstrip(".。").endswith(_OTHER_ENDINGS):
        return True
    product = activity.product.strip()
    rest = title.replace(product, "", 1) if len(product) >= _SHORTEST_NAME else title
    return rest != title and len(rest.strip()) <= 25 and not activity.answer and not activity.files


def rows_of(activity: Activity, report: Report, place: str) -> list[Message]:
    """The rows of an activity: the person's words, notes, the answer. Empty if it holds nothing that was said."""
    if is_other_kind(activity):
        if not activity.answer:
            report.skip("activity without a prompt", place, expected=True)
            return []
        said = "\n\n".join(filter(None, (activity.title.strip(), activity.answer)))
        return [_row(activity, "tool", said, "tool_result", activity.answer_files + activity.files)]
    prompt, known = prompt_of(activity.title)
    if not known and prompt:
        report.unknown["verb:unknown"] += 1
    if (match := _ATTACHED.search(prompt)) is not None:
        prompt = prompt[: match.start()].rstrip()
    rows: list[Message] = []
    if prompt or activity.files:
        kind: Kind = "text" if prompt else "attachment"
        rows.append(_row(activity, "user", prompt, kind, activity.files))
    for note in activity.notes:
        rows.append(_row(activity, "system", note, "event", []))
        rows[-1].hidden_reason = "note of the product"
    if activity.answer or activity.answer_files:
        kind = "text" if activity.answer else "image"
        rows.append(_row(activity, "assistant", activity.answer, kind, activity.answer_files))
        rows[-1].citations = activity.citations
    if not any(row.visible for row in rows):
        report.skip("activity without words", place, expected=True)
        return []
    key = _key(activity, prompt)
    for number, row in enumerate(rows):
        row.message_id = short_hash(key, row.role, str(number) if row.role == "system" else "")
    return rows


def _row(activity: Activity, role: Role, text: str, kind: Kind, files: list[Attachment]) -> Message:
    return Message("", role, clean_text(text), kind, activity.created_at, activity.local_time, attachment=files)


def _key(activity: Activity, prompt: str) -> str:
    """What an activity is known by: its second, and the letters of its prompt (layouts differ in blanks and marks)."""
    when = activity.created_at.replace(microsecond=0).isoformat() if activity.created_at else activity.local_time or ""
    said = prompt or activity.answer
    return f"{when}|{_MARKS.sub('', said[:2000].casefold())[:500]}"


def _conversation_id(activity: Activity, rows: list[Message]) -> str:
    for address in activity.addresses:
        if (match := _CHAT_ADDRESS.match(address)) is not None:
            return match[1]
    if activity.created_at is not None:
        return f"activity-{activity.created_at.astimezone(UTC).date().isoformat()}"
    if activity.local_time is not None:
        return f"activity-{activity.local_time[:10]}"
    return short_hash(PROVIDER, "activity", *(f"{row.role}:{row.text}" for row in rows))


def conversations_of(activities: Iterable[tuple[str, Activity]], report: Report) -> Iterator[Conversation]:
    """`(place, activity)` in the file's order (newest first, as a rule) -> conversations, a day at a time.

    A day whose activities do not stand together in the file comes in parts, which the merge joins.
    """
    run: list[list[Message]] = []
    run_id: str | None = None
    for place, activity in activities:
        rows = rows_of(activity, report, place)
        if not rows:
            continue
        conversation_id = _conversation_id(activity, rows)
        if run_id is not None and conversation_id != run_id:
            yield _joined(run_id, run)
            run = []
        run_id = conversation_id
        run.append(rows)
    if run_id is not None:
        yield _joined(run_id, run)


def _joined(conversation_id: str, run: list[list[Message]]) -> Conversation:
    run.reverse()
    run.sort(key=lambda rows: _moment(rows[0]))
    messages = [row for rows in run for row in rows]
    derive_ids(messages)
    return Conversation(PROVIDER, conversation_id, messages, order="time")


def _moment(row: Message) -> str:
    """Sortable; instants and local times of one day are not compared closely, nothing says how they stand."""
    return row.created_at.isoformat() if row.created_at else row.local_time or ""


def file_named(value: object) -> Attachment | None:
    """An attachment by the name that a local address has; None for addresses elsewhere and for what is no address."""
    if not isinstance(value, str) or re.match(r"[a-z][a-z0-9+.-]*:|//|#", value, re.IGNORECASE):
        return None
    name = clean_text(basename(unquote(value.split("?", 1)[0]))).strip()
    return Attachment(name=name, type=_kind_of(name)) if name else None


_KINDS = {
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "heic", "svg", "bmp"), "image"),
    **dict.fromkeys(("mp3", "wav", "m4a", "ogg", "opus", "aac", "flac"), "audio"),
    **dict.fromkeys(("mp4", "webm", "mov", "mkv", "avi"), "video"),
}


def _kind_of(name: str) -> str:
    return _KINDS.get(name.rpartition(".")[2].lower(), "file")


def add_file(files: list[Attachment], file: Attachment | None) -> None:
    """Add a file unless one of its name is there."""
    if file is not None and file not in files:
        files.append(file)
