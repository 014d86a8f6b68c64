# ruff: noqa: E501 - tables of examples, one a line, in many scripts
"""Personal data, and what looks like a secret and is none, for the truth set of redaction."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

from redaction_disguises import each
from redaction_source import Source

# --- personal data ----------------------------------------------------------------------------------------------------

PHONES = {
    "us": ("+1 415 555 {d4}", "(212) 736-{d4}", "212.736.{d4}", "1-800-736-{d4}"), "uk": ("+44 20 7946 0{d3}", "020 7946 0{d3}", "07700 900{d3}"), "de": ("+49 30 9018{d3}0", "030 9018{d3}0", "0171/39200{d2}"), "fr": ("+33 1 42 68 53 {d2}", "06 12 34 5{d1} {d2}"), "es": ("+34 612 34 5{d1} {d2}", "612 345 {d3}"), "it": ("+39 06 698{d5}", "348 123 {d4}"),
    "cn": ("+86 138 1234 {d4}", "138-1234-{d4}", "010-6552{d4}", "13812{d6}"), "jp": ("+81 3-3224-{d4}", "090-1234-{d4}", "03-3224-{d4}"), "kr": ("+82 2-2100-{d4}", "010-2345-{d4}"), "in": ("+91 98765 4{d4}", "98765-4{d4}"), "br": ("+55 11 98765-{d4}", "(11) 98765-{d4}"), "ru": ("+7 495 123-45-{d2}", "8 (916) 123-45-{d2}"), "au": ("+61 2 9374 {d4}", "0412 345 {d3}"),
    "mx": ("+52 55 5123 {d4}",), "nl": ("+31 20 555 {d4}", "06-1234{d4}"), "be": ("+32 2 512 {d2} {d2}",), "ch": ("+41 44 668 {d2} {d2}", "044 668 {d2} {d2}"), "at": ("+43 1 5337{d3}",), "se": ("+46 8 508 {d2} {d3}", "070-123 {d2} {d2}"), "no": ("+47 22 {d2} {d2} {d2}",), "dk": ("+45 33 {d2} {d2} {d2}",), "fi": ("+358 9 310 {d4}",), "pl": ("+48 22 {d3} {d2} {d2}", "501 {d3} {d3}"),
    "tr": ("+90 532 {d3} {d2} {d2}",), "za": ("+27 21 {d3} {d4}",), "ng": ("+234 803 {d3} {d4}",), "sg": ("+65 6123 {d4}",), "hk": ("+852 2123 {d4}",), "tw": ("+886 2 2345 {d4}", "0912-345-{d3}"), "il": ("+972 3-123-{d4}",), "ua": ("+380 44 {d3} {d2} {d2}",), "ar": ("+54 11 4321-{d4}",), "vn": ("+84 24 3825 {d4}",), "th": ("+66 2 123 {d4}",), "0049": ("0049 30 9018{d3}0",), "0086": ("0086-138-1234-{d4}",),
}  # fmt: skip
PHONE_LINES = (
    "call me at {s}",
    "Tel.: {s}",
    "phone: {s}",
    "我的手机号是{s}",
    "電話番号は{s}です",
    "mon numéro de téléphone est le {s}",
    "Telefon: {s}",
    "mi teléfono es {s}",
    "мой телефон {s}",
    "WhatsApp {s}",
    '{"phone": "{s}"}',
    "mobile {s}, evenings",
)
INTERNATIONAL = (*PHONE_LINES, "{s}", "reach her: {s}", "Bob <{s}>")


def _luhn(body: str) -> str:
    total = sum(sum(divmod(int(c) * (2 if i % 2 == 0 else 1), 10)) for i, c in enumerate(reversed(body)))
    return body + str(-total % 10)


def _iban(country: str, bban: str) -> str:
    number = "".join(str(int(c, 36)) for c in bban + country + "00")
    return f"{country}{98 - int(number) % 97:02d}{bban}"


def personal(source: Source) -> Iterator[tuple[str, str, str]]:
    """Kind, text and value."""
    for country, forms in PHONES.items():
        for form in forms:
            value = form
            for size in range(1, 7):
                while f"{{d{size}}}" in value:
                    value = value.replace(f"{{d{size}}}", source.digits(size), 1)
            line = source.rng.choice(INTERNATIONAL if value.startswith("+") else PHONE_LINES)
            yield f"phone-{country}", line.replace("{s}", value), value
    visa, amex = _luhn("4" + source.digits(14)), _luhn("37" + source.digits(12))
    for kind, value in (
        ("dots", each(visa, 4, ".")),
        ("spaces", each(visa, 4, " ")),
        ("plain", visa),
        ("amex", f"{amex[:4]} {amex[4:10]} {amex[10:]}"),
        ("nbsp", each(visa, 4, "\u00a0")),
        ("mir", _luhn("2200" + source.digits(11))),
        ("unionpay19", _luhn("621" + source.digits(15))),
        ("en-dash", each(visa, 4, "–")),
    ):
        yield (
            f"card-{kind}",
            source.pick(
                "card {s} exp 04/29", "paid with {s}", "卡号：{s}", '"pan":"{s}"', "{s}", "Kreditkarte {s}, CVC 123"
            ).replace("{s}", value),
            value,
        )
    user, host = source.shape("[a-z]{5}\\.[a-z]{6}"), source.shape("[a-z]{7}")
    mails = {
        "plain": f"{user}@{host}.io",
        "at-dot": f"{user.replace('.', ' (dot) ')} (at) {host} (dot) com",
        "brackets": f"{user}[at]{host}[dot]org",
        "upper": f"{user}@{host}.CO.UK".upper(),
        "plus": f"{user}+news@sub.{host}.dev",
        "unicode": f"jürgen.{user}@{host}.de",
        "idn": f"{user}@m\u00fcller-{host}.de",
        "percent": f"{user}%40{host}.com",
        "mailto": f"{user}@{host}.fr",
        "html": f"{user}&#64;{host}.net",
        "words": f"{user} at {host} dot com",
        "long-tld": f"{user}@{host}.technology",
        "digits": f"{source.digits(8)}@qq.com",
        "underscore": f"{user.replace('.', '_')}@{host}.co.jp",
    }
    for kind, value in mails.items():
        line = (
            "mailto:{s}"
            if kind == "mailto"
            else source.pick("write to {s}", "Mail: {s}", "邮箱是{s}。", "<{s}>", "From: Bob <{s}>", "{s}")
        )
        yield f"email-{kind}", line.replace("{s}", value), value
    for country, bban in (
        ("DE", source.digits(18)),
        ("FR", source.digits(10) + source.shape("[A-Z0-9]{11}") + source.digits(2)),
        ("ES", source.digits(20)),
        ("NL", "ABNA" + source.digits(10)),
        ("IT", "X" + source.digits(22)),
        ("CH", source.digits(17)),
        ("PL", source.digits(24)),
        ("SA", source.digits(20)),
        ("BR", source.digits(23) + "P1"),
        ("MT", "MALT" + source.digits(5) + source.alnum(18).upper()),
        ("NO", source.digits(11)),
    ):
        value = _iban(country, bban)
        for form in (value, each(value, 4, " "), value.lower(), each(value, 4, "-")):
            yield (
                f"iban-{country}",
                source.pick("IBAN {s}", "überweise an {s} danke", "{s}", '"iban": "{s}"').replace("{s}", form),
                form,
            )
    octets = f"{source.pick('93', '185', '145', '66')}.{source.rng.randint(1, 250)}.{source.rng.randint(1, 250)}.{source.rng.randint(1, 250)}"
    addresses = {
        "v4": octets,
        "v6-full": ":".join(["2a01", *(source.shape("[1-9a-f][0-9a-f]{3}") for _ in range(7))]),
        "v6-short": f"2a00:{source.hex(4)}::{source.shape('[1-9a-f]{3}')}",
        "v6-upper": f"2A03:{source.hex(4).upper()}:{source.hex(4).upper()}::1",
        "v6-mapped": f"::ffff:{octets}",
        "v4-port": octets,
        "v6-zone": f"2001:470:{source.hex(4)}:{source.shape('[1-9a-f]{3}')}::2",
    }
    for kind, value in addresses.items():
        line = (
            "connect {s}:8443 failed"
            if kind == "v4-port"
            else source.pick("client {s} connected", "from {s}", "ssh root@{s}", '"ip":"{s}"', "服务器IP：{s}")
            if kind != "v6-full"
            else "peer [{s}]:443"
        )
        yield f"ip-{kind}", line.replace("{s}", value), value
    ssn = f"{source.rng.randint(101, 660)}-{source.rng.randint(10, 99)}-{source.rng.randint(1000, 9999)}"
    yield "ssn", f"SSN {ssn}", ssn
    yield "ssn-spaced", f"social security number: {ssn.replace('-', ' ')}", ssn.replace("-", " ")


# --- look-alikes ------------------------------------------------------------------------------------------------------


def lookalikes(source: Source) -> Iterator[tuple[str, str]]:
    """Kind and text: nothing of it has to go."""
    h, a, d, b = source.hex, source.alnum, source.digits, source.base64
    word = source.pick("parser", "billing", "gateway", "renderer")
    lines: dict[str, tuple[str, ...]] = {
        "git": (f"commit {h(40)}\nAuthor: bot", f"{h(7)} fix {word}", f"git checkout {h(40)}", f"parent {h(40)}\ntree {h(40)}", f"* {h(12)} (HEAD) {word}", f"refs/pull/1/head@{{{h(40)}}}", f"cherry picked from commit {h(40)}", f"submodule {word} {h(40)}", f"- rev: {h(40)}", f"@@ -1,{d(2)} +1,{d(2)} @@ {word}"),
        "digest": (f"sha256-{b(32)}", f'integrity="sha384-{b(48)}"', f"checksum: {h(64)}", f"MD5 ({word}.iso) = {h(32)}", f"{h(40)} *{word}.zip", f"SHA1: {h(40).upper()}", f"digest: sha256:{h(64)}", f'"shasum": "{h(40)}"', f"Hash-Value: {h(128)}", f"file hash {h(64)} matches", f"content-md5: {b(16)}", f'hash = "{h(32)}"', f"fingerprint: {':'.join(h(2) for _ in range(16))}", f"sha512:{h(128)}", f"blake3 {h(64)}", f'  "sha256": "{h(64)}",', f"nix-base32: {source.shape('[0-9a-df-np-sv-z]{52}')}", f"Etag \"{h(32)}-2\""),
        "uuid": (f"id={source.uuid()}", f"/orders/{source.uuid()}/items", f"urn:uuid:{source.uuid()}", f"device {source.uuid().upper()} paired", f'"parent_id": "{source.uuid()}"', f"{{{source.uuid()}}}", f"GUID: {source.uuid()}", f"conversation {source.uuid()} archived", f"PARTUUID={source.uuid()}", f"tenant: {source.uuid()}"),
        "ids": (f"toolu_{a(24)}", f"call_{a(24)}", f"chatcmpl-{a(29)}", f"msg_{a(24)}", f"file-{a(24)}", f"asst_{a(24)}", f"resp_{h(48)}", f"evt_{a(24)}", f"cus_{a(14)}", f"run-{h(32)}", f"req_{a(24)}", f"ULID 01{source.shape('[0-9A-HJKMNP-TV-Z]{24}')}", f"trace {h(32)} span {h(16)}", f"jobId={d(10)}", f"arn:aws:sns:eu-west-1:{d(12)}:{word}", f"ami-0{h(16)}", f"projects/{word}-{d(6)}", f"G-{source.shape('[A-Z0-9]{10}')} analytics", f"doi:10.1{d(3)}/{word}.{d(6)}", f"toolu_vrtx_{a(24)}", f"gen-{d(10)}-{a(20)}", f"rs_{h(50)}", f"fc_{h(50)}", f"ws_{h(48)}", f"batch_{h(32)}", f"org-{a(24)}", f"proj_{a(24)}", f"price_1{a(23)}", f"pi_3{a(23)}", f"thread_{a(24)}", f"snap-0{h(16)}", f"srvtoolu_{a(24)}", f"video id dQ{a(9)}", f"slack ts 17{d(8)}.{d(6)}"),
        "lockfile": (f"    resolution: {{integrity: sha512-{b(64)}}}", f'  resolved "https://registry.yarnpkg.com/{word}/-/{word}-1.2.3.tgz#{h(40)}"', f'checksum = "{h(64)}"', f"{word} v1.2.3/go.mod h1:{b(32)}", f"    --hash=sha256:{h(64)} \\", f'hash = "sha256:{h(64)}"', f"    {word} (1.2.3)\n      sha256 {h(64)}", f"  '@scope/{word}@1.2.3(react@18.2.0)': {{}}", f'"url": "https://files.pythonhosted.org/packages/{h(2)}/{h(2)}/{h(60)}/{word}-1.0-py3-none-any.whl"'),
        "binary": (f"data:image/webp;base64,UklGR{a(200)}", f"url(data:font/woff2;base64,d09GMg{a(160)})", f'<img src="data:image/svg+xml;base64,{base64.b64encode(b"<svg xmlns=" + b"x" * 40 + b"></svg>").decode()}">', f"AAAA{a(80)}AAAA wasm blob", base64.b64encode(f"Dear team, the {word} release is moved to next Friday because of the holiday.".encode()).decode(), base64.b64encode(json.dumps({"page": 3, "sort": "name", "filter": word}).encode()).decode(), f'"nextCursor": "{base64.b64encode(b"{" + chr(34).encode() + b"offset" + chr(34).encode() + b":120,x:1}").decode()}"', f"000000{d(2)}  7f 45 4c 46 02 01 01 00  00 00 00 00 00 00 00 00  |.ELF............|", "b'\\x89PNG\\r\\n\\x1a\\n\\x00\\x00\\x00'", f"sourceMappingURL=data:application/json;base64,{base64.b64encode(b'{version:3,sources:[],names:[],mappings:AAAA}').decode()}"),
        "minified": ("!function(e,t){var n=t.key,r=e.token||null;return n&&r?n+r:void 0}(this,{key:1});", f"var a=b.length,c=d?e.f:g;for(;a--;)h[i[a]]=j.k(l,{d(3)});", "t.exports={cookieName:n.a,secretName:r.b,tokenType:i.c}", f".btn-{word}:hover>a::after{{color:#{h(6)};background:#{h(6)}80}}", f"@media(max-width:{d(3)}px){{.key{{margin:0 {d(1)}px}}}}", f"--md-sys-color-primary: rgb({d(2)} {d(2)} {d(2)});", "e=>e.password===t.confirmPassword", f'webpackChunk{word}=self.webpackChunk{word}||[]).push([[{d(3)}],{{{d(4)}:(e,t,n)=>{{}}}}])'),
        "numbers": (f"ISBN 978-3-16-{d(6)}-0", f"order #{d(12)}", f"tracking number 1Z{source.shape('[0-9A-Z]{16}')}", f"epoch {17}{d(11)}", f"at 52.{d(6)}, 13.{d(6)}", f"invoice 2026-{d(5)}", f"v{d(1)}.{d(2)}.{d(1)}-rc.{d(1)}", f"build 10.0.{d(5)}.{d(4)}", f"2026-01-0{source.rng.randint(1, 9)} 12:3{source.rng.randint(0, 9)}:{d(2)}.{d(6)}", f"total 1 {d(3)} {d(3)} bytes", f"SKU {source.shape('[A-Z]{3}-[0-9]{5}-[A-Z]{2}')}", f"EAN 40{d(11)}", f"port 8{d(3)}, pid {d(5)}", f"ratio {d(3)}:{d(3)}", f"ticket JIRA-{d(5)}", f"RFC {d(4)} section 4.{d(1)}.{d(1)}.{d(1)}", f"0x{h(16)} in libc.so.6", f"mac {':'.join(h(2) for _ in range(6))}", f"range 2019-2024, pages {d(3)}-{d(3)}", f"score 0.{d(16)}", f"Chrome/13{source.rng.randint(0, 9)}.0.{d(4)}.{d(2)}", f"user id {d(9)}", f"{d(8)} rows", f"CVE-2025-{d(5)}", f"PO number {d(10)}", f"partita {d(2)}/{d(2)}/2025", f"bytes 0-{d(6)}/{d(7)}", f"size={d(9)} mtime=17{d(8)}.{d(3)}", f"{d(4)} {d(4)} {d(4)} checks"),
        "config": ("password: ${DB_PASSWORD}", "password: ${DB_PASSWORD:-}", "api_key: !ENV ${API_KEY}", 'token = var.github_token', "secret: {{ .Values.auth.secret }}", "PASSWORD=$(openssl rand -hex 16)", "api-key: <your-api-key>", "token: <TOKEN>", "SECRET_KEY=changeme", "password: null", 'password = ""', "PASSWORD=", 'key: "value"', "secretName: tls-cert", "passwordSecretRef:\n  name: db\n  key: password", "tokenExpiry: 3600s", "auth: none", "credentialsId: 'deploy-bot'", "API_TOKEN=%API_TOKEN%", "$env:TOKEN = $token", "api_key=os.environ['API_KEY']", "secret=vault:secret/data/app#key", "token: ENC[PKCS7,...]", "password: '******'", "apiKey: 'YOUR_API_KEY_HERE'", "password_min_length: 12", "key_file: /etc/ssl/private/key.pem", "sshKeyPath = ~/.ssh/id_ed25519", 'password: {{ lookup("env", "PW") }}', "client_secret: @Microsoft.KeyVault(SecretUri=https://kv.vault.azure.net/)", "token: ${{ github.token }}", "secrets: inherit", "DB_PASSWORD: ${?DB_PASSWORD}", "POSTGRES_PASSWORD_FILE=/run/secrets/pg", "keyAlias=upload", 'authMode = "oauth2"', "session_timeout=1800", "password=<%= ENV['PW'] %>", 'privateKey: fs.readFileSync("key.pem")', "token_url: https://auth.example.org/token", "enable_auth: true", "key=ctrl+shift+p", "sort_key: created_at", "partition_key = customer_id", "cacheKey: user-profile-v2", "i18n.key=checkout.button.label", "access_key_id: ${{ vars.KEY_ID }}"),
        "code": ("def login(user: str, password: str) -> Token:", "const { token, user } = await login(email, password);", "if (!token) throw new AuthError('missing token');", "self.api_key = api_key or settings.API_KEY", "print(f'key={key} value={value}')", "for (const [key, value] of Object.entries(secrets)) {}", "token = tokens[index + 1]", "public static final String TOKEN_HEADER = \"X-Auth-Token\";", "password = prompt('Password: ')", "passwordField.setPlaceholder('Enter your password')", "assert_eq!(token.kind, TokenKind::Ident);", "String key = entry.getKey();", "let secret = std::env::var(\"SECRET\")?;", 'credentials = service_account.Credentials.from_service_account_file("sa.json")', "localStorage.getItem('authToken')", "secret = secrets.token_urlsafe(32)", "hash_password(password, salt)", "<label for='password'>Password</label>", 'expect(screen.getByLabelText("Password")).toBeVisible()', "api_key: Optional[str] = Field(default=None, alias='apiKey')", "type Secret = { name: string; value: string }", "cursor.execute('SELECT password FROM users WHERE id = %s', (uid,))", "CREATE TABLE t (password VARCHAR(255) NOT NULL, api_token CHAR(64))", "PasswordAuthentication no", "ssh-keygen -t ed25519 -C 'comment'", "keytool -list -keystore x.jks -storepass $PASS", "Map<String, SecretKey> keysByAlias", "token.split('.')[1]", "export default withAuth(SecretPage)", "key={`row-${item.id}`}", "dict(key1='value1', key2='value2')", "PASSWORD_HASHERS = ['django.contrib.auth.hashers.Argon2PasswordHasher']", "kwargs.setdefault('token', None)", "TOKEN_RE = re.compile(r'[A-Za-z0-9]{32}')", 'mock.patch("app.auth.get_token", return_value="token")', "authToken: string | undefined;", "const passwordSchema = z.string().min(8).max(72)", "login.password.placeholder=Ihr Passwort", "#define KEY_LEFTSHIFT 42", "case KeyEvent.VK_ENTER:", "secretsmanager:GetSecretValue", "os.getenv('HF_TOKEN', '')", 'raise ValueError("API key not found")', "sessionStorage.setItem(tokenKey, response.token)"),
        "prose": ("The password policy requires rotation every 90 days.", "Pass the token as a header, then retry.", "密码至少需要 8 位字符。", "请不要把密钥提交到仓库。", "忘记密码？点击这里重置。", "トークンの有効期限が切れました。", "Das Passwort muss mindestens 12 Zeichen lang sein.", "Le mot de passe doit contenir 8 caractères.", "La contraseña debe tener al menos 8 caracteres.", "Пароль должен содержать не менее 8 символов.", "비밀번호는 8자 이상이어야 합니다.", "The key to success is patience2win in the long run", "a secret santa party in 2025", "token ring networks from 1985", "He passed 3 keys over the table", "the session key: how it is derived", "My favorite key is C# minor", "password managers such as 1Password or KeePassXC", "API keys: see docs/security.md", "The bearer of this letter", "token limit 128k, context 200k", "the pass rate is 95.5%", "key: value pairs", "secret sauce v2", "license: MIT OR Apache-2.0", "Session 12: OAuth2.0 tokens", "password → see the vault", "the token was revoked in v1.2.3", "PIN code entry screen (4 digits)", "cookie banner accepted", "密码管理器推荐 1Password", "我在用 token 计费，大概 12k tokens", "key 的类型是 string", "password is required", "the password is incorrect", "password is: (hidden)", "mot de passe oublié ?", "contraseña incorrecta", "token is invalid or expired", "使用 token 认证 OAuth2", "密码是必填项", "密码是什么来着？", "пароль неверный", "the secret is stored in AWS Secrets Manager"),
        "i18n": ('"password": "Passwort",', '"auth.password.reset": "Passwort zurücksetzen",', '"token_label": "Access token",', '"enterPassword": "请输入密码",', "password=Mot de passe", 'password_hint: "Mindestens 8 Zeichen"', '"secret": "Geheimnis"', "msgid \"Password\"\nmsgstr \"Wachtwoord\"", '<string name="password">Contraseña</string>', '"apiKey": "API-Schlüssel"'),
        "public": (f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{source.shape('[A-Za-z0-9+/]{43}')} bob@laptop", "-" * 5 + f"BEGIN CERTIFICATE{'-' * 5}\nMIIC{source.shape('[A-Za-z0-9+/]{60}')}\n{source.shape('[A-Za-z0-9+/]{64}')}\n{'-' * 5}END CERTIFICATE{'-' * 5}", "-" * 5 + f"BEGIN PGP PUBLIC KEY BLOCK{'-' * 5}\n\nmQEN{source.shape('[A-Za-z0-9+/]{60}')}\n{'-' * 5}END PGP PUBLIC KEY BLOCK{'-' * 5}", f"PublicKey = {b(32)}", f"pk_live_{a(24)} is publishable", f"minisign public key: RW{a(54)}", f"age1{source.shape('[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{58}')}", f"DKIM p=MIGfMA0GCSqGSIb3DQEBAQUAA4GN{a(120)}", f"|1|{b(20)}|{b(20)} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{a(43)}", f"host key fingerprint is SHA256:{b(32).rstrip('=')}", f"pin-sha256=\"{b(32)}\"", f"nonce-{b(16)}", f"Sec-WebSocket-Key: {b(16)}", f'"public_key": "{h(64)}"', f"contract 0x{h(40)}", f"tx 0x{h(64)}"),
        "text-tricks": ("\x1b[1mDone\x1b[0m in \x1b[36m2.3s\x1b[0m", "naïve café — “quotes” and … dots", "ＦＵＬＬ　ＷＩＤＴＨ title", "a\u200bzero\u200bwidth\u200bword", "\\u4f60\\u597d world", "%E4%BD%A0%E5%A5%BD", "&lt;div&gt;&amp;nbsp;", "x = 'one' + 'two' + 'three'", "print('-' * 40)", "foo\\_bar\\_baz", "Привет, мир: ключевые слова", "𝐛𝐨𝐥𝐝 claim", "🔑 key emoji 🗝️", "S P A C E D title", "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'", f"[{', '.join(str(source.rng.randint(0, 255)) for _ in range(24))}]", f"0x{h(2)}, 0x{h(2)}, 0x{h(2)}, 0x{h(2)}, 0x{h(2)}, 0x{h(2)}", f"{' '.join(h(2) for _ in range(24))}", "=E2=80=99s mail =C3=A9t=C3=A9=", "\\x{263A} and \\101\\102\\103"),
        "personal-like": ("hello@example.com", "user@localhost", "git@gitlab.com:x/y.git", "@babel/core@7.24.0", "192.168.10.20", "10.1.2.3:8080", "version 5.15.0.91", "::1", "fe80::1c2d:3eff:fe4f:5a6b", "2001:db8::1", "12:34:56:78", "2024-10-12 to 2024-11-03", "call 911", "dial 112", "+1 for this idea", "x +44 y", "phone: none", "tel: TBD", "IBAN format: DE + 20 digits", "GB00 TEST 1234", "4111-1111-1111-1112", "1111 2222 3333 4444 sample", "SSN: 000-00-0000", "area code (415)", "3.14159265358979", "1,234,567,890", "10.1038/s41586-020-2649-2", "arXiv:2401.12345v2", "10:30-11:45", "255.255.255.0", "0.0.0.0/0", "224.0.0.1", "C++20 at 3.5 GHz", "[at] the meeting (dot) done", "me at home dot matrix", "1.2.840.113549.1.1.11", "A4:B5 cells", "std::chrono::system_clock", "fd00::1", "127.0.0.53"),
    }  # fmt: skip
    for kind, texts in lines.items():
        for text in texts:
            yield kind, text
