"""What WhatsApp itself writes into a chat, in its languages: media left out, files, deleted and edited messages, names.

Gathered from exports quoted in public issues and parsers of many countries, checked 2026-11-29. Where a phrase is not
here, its form decides: iOS puts U+200E before everything that it writes itself.
"""

from __future__ import annotations

import re

_LEFT_OUT = re.compile(
    r"omitted|omitid[oa]|ocult[oa]d?[oa]?|omess[oaie]|absente?s?|omise?s?|non incluse?|exclu|weggelassen|ausgeschlossen"
    r"|weggelaten|pominięt|vynech|kihagyva|udelad|utelämn|utelat|jätetty pois|poistettu|dihilangkan|tidak disertakan"
    r"|dikecualikan|dahil edilmedi|atland|omis[ăe]|omes[ae]|exclus|izostav|izpuščen|пропущен|опущен|без медиа|не включен"
    r"|вилучен|без медіа|медиафайл|параліп|παραλ[είή]|הושמט|השמט|استبعاد|حذف|محذوف|हटा|छोड़|नहीं|বাদ|省略|忽略|已略|除外"
    r"|含まれていません|생략|제외|ละเว้น|được bỏ qua|bỏ qua|đã bị loại|tinanggal|imeondolewa",
    re.IGNORECASE,
)
_KINDS = (
    (
        "sticker",
        r"sticker|стикер|стікер|贴图|貼圖|ステッカー|스티커|çıkartma|figurinha|figurita|adesiv|autocollant|naklejk|nálepk",
    ),
    ("gif", r"gif"),
    (
        "contact",
        r"contact|kontakt|contacto|contato|contatto|名片|联系人|連絡先|聯絡人|연락처|контакт|איש קשר|جهة اتصال",
    ),
    (
        "document",
        r"document|dokument|documento|文档|文件|檔案|ドキュメント|문서|belge|документ|asiakirja|מסמך|مستند|dokumen",
    ),
    (
        "video",
        r"video|vídeo|vidéo|видео|відео|视频|影片|視訊|動画|ビデオ|동영상|비디오|וידאו|סרטון|فيديو|वीडियो|วิดีโอ|wideo",
    ),
    (
        "audio",
        r"audio|áudio|аудио|аудіо|音频|音訊|語音|语音|音声|オーディオ|오디오|음성|\bses\b|voice|שמע|קול|صوت|ऑडियो|เสียง|ääni|ljud|lyd",
    ),
    (
        "image",
        r"image|imagen|imagem|immagin|bild|billede|bilde|afbeelding|foto|photo|изображени|зображенн|фото|图像|图片|圖像|圖片|照片"
        r"|画像|写真|사진|이미지|görüntü|resim|תמונה|صورة|gambar|zdjęci|obraz|obráz|kuva|imagine|εικόν|चित्र|छवि|तस्वीर|รูป|hình",
    ),
)
_KIND = [(kind, re.compile(words, re.IGNORECASE)) for kind, words in _KINDS]

_ATTACHED = re.compile(
    r"attached|angehängt|adjunto|anexado|anexo|joint|allegat[oi]|bijgevoegd|добавлен|прикреплен|додано|附件|附加|附檔|添付"
    r"|첨부|ekli|ekte|מצורף|صورف|مرفق|terlampir|załącz|přilož|csatol|bifogad|vedhæftet|vedlagt|liitetty|atașat|संलग्न|ไฟล์แนบ",
    re.IGNORECASE,
)
_EDITED = re.compile(
    r"edited|bearbeitet|editó|editad[oa]|modifié|modificat[oa]|bewerkt|изменен|відредаг|redigerad|redigeret|redigert"
    r"|edytowan|upraven|szerkeszt|düzenlen|נערכה|diedit|تعديل|संपादित|编辑|編輯|編集|수정|แก้ไข|chỉnh sửa|muokattu|editat",
    re.IGNORECASE,
)
_DELETED = frozenset(
    phrase.strip()
    for phrase in """
    this message was deleted|you deleted this message|message deleted|deleted this message
    diese nachricht wurde gelöscht|du hast diese nachricht gelöscht
    se eliminó este mensaje|eliminaste este mensaje|este mensaje fue eliminado|este mensaje se eliminó
    mensagem apagada|você apagou esta mensagem|essa mensagem foi apagada|esta mensagem foi apagada
    esta mensagem foi eliminada|eliminou esta mensagem|eliminaste esta mensagem
    ce message a été supprimé|vous avez supprimé ce message|ce message a été effacé
    questo messaggio è stato eliminato|hai eliminato questo messaggio
    dit bericht is verwijderd|je hebt dit bericht verwijderd|dit bericht werd verwijderd
    данное сообщение удалено|сообщение удалено|вы удалили данное сообщение|это сообщение удалено
    вы удалили это сообщение|это сообщение было удалено
    це повідомлення видалено|ви видалили це повідомлення
    bu mesaj silindi|bu mesajı sildiniz|bu mesajı sildin
    pesan ini telah dihapus|anda telah menghapus pesan ini|anda menghapus pesan ini
    ta wiadomość została usunięta|usunięto tę wiadomość|wiadomość usunięta
    tato zpráva byla smazána|tuto zprávu jste smazali|táto správa bola odstránená
    meddelandet raderades|du raderade det här meddelandet|denne besked blev slettet|du slettede denne besked
    denne meldingen ble slettet|du slettet denne meldingen|tämä viesti poistettiin|poistit tämän viestin
    ezt az üzenetet törölték|törölted ezt az üzenetet|acest mesaj a fost șters|ai șters acest mesaj
    αυτό το μήνυμα διαγράφηκε|διαγράψατε αυτό το μήνυμα
    הודעה זו נמחקה|ההודעה נמחקה|מחקת הודעה זו|מחקת את ההודעה הזו|הודעה זאת נמחקה
    تم حذف هذه الرسالة|لقد حذفت هذه الرسالة|حذفت هذه الرسالة|این پیام حذف شد|شما این پیام را حذف کردید
    यह मैसेज डिलीट किया गया|यह संदेश हटा दिया गया|आपने यह मैसेज डिलीट किया|यह मैसेज डिलीट कर दिया गया
    此消息已删除|您已删除这条消息|你已删除这条消息|你删除了这条消息|此訊息已刪除|這則訊息已被刪除|您已刪除此訊息|你已刪除這則訊息
    このメッセージは削除されました|このメッセージを削除しました|あなたはこのメッセージを削除しました
    삭제된 메시지입니다|이 메시지는 삭제되었습니다|이 메시지를 삭제했습니다
    ข้อความนี้ถูกลบ|คุณลบข้อความนี้|tin nhắn này đã bị xóa|bạn đã xóa tin nhắn này
    """.replace("\n", "|").split("|")
    if phrase.strip()
)
_CALL = re.compile(
    r"(?:missed |silenced |group )?(?:voice|video) call\b.{0,40}"
    r"|(?:verpasster |entgangener )?(?:sprach|video)anruf\b.{0,40}|(?:video)?llamada(?: de voz)? perdida.{0,40}"
    r"|chamada de (?:voz|vídeo)(?: perdida)?.{0,40}|appel (?:vocal|vidéo) manqué.{0,40}"
    r"|chiamata (?:vocale|video) persa.{0,40}|gemiste (?:spraak|video)oproep.{0,40}"
    r"|пропущенный (?:аудио|видео)звонок.{0,40}|未接(?:语音|视频|語音|視訊)(?:通话|通話).{0,20}|부재중 (?:음성|영상) 통화.{0,20}"
    r"|不在着信.{0,20}",
    re.IGNORECASE,
)
_WAITING = re.compile(
    r"waiting for this message|warten auf diese nachricht|esperando (?:este )?mensaje|等待此消息", re.IGNORECASE
)
_LOCATION = re.compile(
    r"[^\n:]{2,30}: ?https?://(?:maps\.google|www\.google\.[a-z.]+/maps|maps\.app|foursquare|goo\.gl/maps)\S*\Z"
)
_LIVE_LOCATION = re.compile(
    r"live location shared|live-standort geteilt|ubicación en tiempo real compartida", re.IGNORECASE
)


def media_kind(phrase: str) -> str | None:
    """`image`, `video`, … if a phrase says that media were left out (`media` if it does not say which), else None."""
    if len(phrase) > 60 or not _LEFT_OUT.search(phrase):
        return None
    return next((kind for kind, words in _KIND if words.search(phrase)), "media")


def says_attached(phrase: str) -> bool:
    """`file attached`, `Datei angehängt`, `附件`…"""
    return len(phrase) <= 40 and _ATTACHED.search(phrase) is not None


def says_edited(phrase: str) -> bool:
    """`This message was edited` and the like."""
    return len(phrase) <= 60 and _EDITED.search(phrase) is not None


def says_deleted(text: str) -> bool:
    """The whole text is what stands in place of a deleted message."""
    return text.casefold().rstrip(".。! ") in _DELETED


def says_call(text: str) -> bool:
    return _CALL.fullmatch(text) is not None


def says_waiting(text: str) -> bool:
    """In place of a message that had not arrived."""
    return len(text) < 120 and _WAITING.match(text) is not None


def is_location(text: str) -> bool:
    return _LOCATION.match(text) is not None


def says_live_location(text: str) -> bool:
    return _LIVE_LOCATION.fullmatch(text) is not None


def is_english(phrase: str) -> bool:
    """WhatsApp's own English, which tells how the phone writes dates."""
    return phrase.strip("<>").casefold() in ("media omitted", "image omitted", "video omitted", "audio omitted")


# --- what files are called --------------------------------------------------------------------------------------------

_COPY = re.compile(r"\s*\(\d{1,3}\)$")
_APP = r"(?:whats ?app|واتساب|واتس آب|וואטסאפ|व्हाट्सएप)"
_CALLED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:{_APP}[ -]+)?(?:chat|discussion|conversa|chat[ -]?verlauf)? ?[-–] (?P<name>.+)",
        rf"[与與和]\s?[“\"「]?(?P<name>.+?)[”\"」]?\s?的\s?{_APP}\s?(?:聊天|对话|對話|聊天记录|聊天紀錄|聊天記錄)",
        rf"{_APP}\s?[与與和]\s?[“\"「]?(?P<name>.+?)[”\"」]?\s?的(?:聊天|对话|對話|聊天记录|聊天紀錄)",
        rf"(?P<name>.+?)\s?との\s?{_APP}\s?(?:チャット|トーク)(?:履歴)?",
        rf"(?P<name>.+?)\s?님?과(?:의)?\s?{_APP}\s?(?:대화|채팅)",
        rf"{_APP}\s?(?:대화|채팅)\s?[-–:]?\s?(?P<name>.+)",
        rf"(?P<name>.+?) (?:ile|adlı kişiyle) {_APP} (?:sohbeti|konuşması)",
        rf"(?P<name>.+?) के साथ {_APP} (?:चैट|बातचीत)",
        rf"(?:[^\s\d-]+[ -]+){{0,3}}{_APP}(?:[ -][^\s\d-]+){{0,2}}?[ -]?:? "
        r"(?:with|mit|con|com|amb|avec|met|med|kanssa|с контактом|с|із|з|з контактом|dengan|z|ze|s|se|cu|me|sa|на|със|με τον/την|με"
        r"|עם|مع|با|กับ|với|kay|na) (?P<name>.+)",
        rf"{_APP}[^:]{{0,20}}: (?P<name>.+)",
    )
]


def is_whatsapp_name(name: str) -> bool:
    """Whether a file, folder or archive is called as WhatsApp calls its exports, in any language."""
    return name.casefold() in ("_chat", "_chat.txt") or re.search(_APP, name, re.IGNORECASE) is not None


def chat_name(name: str) -> str | None:
    """The name of the chat in the name of its file (without ending): `WhatsApp Chat with Harbour` -> `Harbour`."""
    name = _COPY.sub("", name.translate({0x200E: None, 0x200F: None}).strip())
    if not re.search(_APP, name, re.IGNORECASE):
        return None
    found = next((match["name"].strip() for pattern in _CALLED if (match := pattern.fullmatch(name))), None)
    return found or None
