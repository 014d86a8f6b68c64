# ruff: noqa: E501 - tables of examples, one a line, in many scripts
"""A truth set for redaction, drawn from a seed: secrets and personal data as they are pasted, disguised, and look-alikes.

    python benchmarks/redaction_corpus.py --seed 5 > corpus.jsonl

Rows are `{"id", "group", "kind", "text", "secret", "plain"}`; `secret` is what has to go (null: nothing has), `plain` the
same without its disguise. Groups: vendors (known by the token), names (known by the name beside it), containers, prose,
disguises, personal, echo (claimed in one line, bare in the next), look-alikes. Nothing here is made from the rules of the
engine, and no token stands in this file: shapes are drawn when it runs. Never commit the output.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import sys
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from palace_pipeline.redaction.shapes import draw


@dataclass(frozen=True)
class Row:
    id: str
    group: str
    kind: str
    text: str
    secret: str | None
    plain: str | None = None


class Source:
    """Seeded random values."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)

    def shape(self, pattern: str) -> str:
        return draw(pattern, self.rng)

    def hex(self, size: int) -> str:
        return self.shape(f"[0-9a-f]{{{size}}}")

    def alnum(self, size: int) -> str:
        return self.shape(f"[A-Za-z0-9]{{{size}}}")

    def digits(self, size: int) -> str:
        return self.shape(f"[0-9]{{{size}}}")

    def base64(self, size: int) -> str:
        return base64.b64encode(self.rng.randbytes(size)).decode()

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)


# --- known by the token itself ----------------------------------------------------------------------------------------

VENDORS = {
    "e2b": "e2b_[0-9a-f]{40}", "browserbase": "bb_live_[A-Za-z0-9_-]{27}", "daytona": "dtn_[0-9a-f]{64}",
    "xata": "xau_[A-Za-z0-9]{40}", "inngest": "signkey-prod-[0-9a-f]{64}", "triggerdev": "tr_prod_[A-Za-z0-9]{24}",
    "helicone": "sk-helicone-[a-z0-9]{7}-[a-z0-9]{7}-[a-z0-9]{7}-[a-z0-9]{7}", "mem0": "m0-[A-Za-z0-9]{40}",
    "cartesia": "sk_car_[A-Za-z0-9]{22}", "polar": "polar_oat_[A-Za-z0-9]{43}",
    "paddle": "pdl_live_apikey_01[a-z0-9]{24}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}", "cal": "cal_live_[0-9a-f]{32}",
    "honeybadger": "hbp_[A-Za-z0-9]{36}", "openvsx": "ovsxat_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
    "dbt": "dbtc_[A-Za-z0-9_-]{44}", "retool": "retool_01[a-z0-9]{24}", "trello": "ATTA[0-9a-f]{64}[0-9A-F]{8}",
    "asana": "2/[0-9]{16}/[0-9]{16}:[0-9a-f]{32}", "gcs-hmac": "GOOG1E[A-Z0-9]{55}", "exoscale": "EXO[0-9a-f]{24}",
    "upcloud": "ucat_[A-Z0-9]{26}", "hf-oauth": "hf_oauth_[A-Za-z0-9]{60}", "kaggle": "KGAT_[0-9a-f]{32}",
    "bitwarden": "0\\.[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-9[0-9a-f]{3}-[0-9a-f]{12}\\.[A-Za-z0-9]{30}:[A-Za-z0-9+/]{22}==",
    "coralogix": "cxtp_[A-Za-z0-9]{30}", "vk": "vk1\\.a\\.[A-Za-z0-9_-]{180}", "statsig": "secret-[A-Za-z0-9]{43}",
    "unleash": "\\*:production\\.[0-9a-f]{56}", "baidu": "bce-v3/ALTAK-[A-Za-z0-9]{21}/[0-9a-f]{40}",
    "ably": "[A-Za-z0-9_]{6}\\.[A-Za-z0-9_]{6}:[A-Za-z0-9_-]{43}", "cursor": "crsr_[0-9a-f]{64}",
    "elastic-essu": "essu_[A-Za-z0-9+/]{76}==", "siliconflow": "sk-[a-z]{48}", "moonshot": "sk-[A-Za-z0-9]{48}",
    "fireworks": "fw_[A-Za-z0-9]{22}", "voyage": "pa-[A-Za-z0-9_-]{43}", "jina": "jina_[0-9a-f]{32}[A-Za-z0-9_-]{28}",
    "nvidia": "nvapi-[A-Za-z0-9_-]{64}", "cerebras": "csk-[a-z0-9]{48}", "clerk": "sk_test_[A-Za-z0-9]{42}",
    "convex": "prod:happy-otter-123\\|[A-Za-z0-9+/]{96}==", "gitlab-ci-job": "glcbt-64_[A-Za-z0-9_-]{20}",
    "teleport-join": "tctl_[0-9a-f]{32}", "roboflow": "rf_[A-Za-z0-9]{36}", "liveblocks": "sk_prod_[A-Za-z0-9_-]{64}",
    "acme-sdk": "acme_sdk_v2_[A-Za-z0-9]{36}", "foo-token": "zq7_tok_[a-z0-9]{40}", "camel-key": "zlk[A-Z0-9]{4}-[A-Za-z0-9]{44}",
    "pusher": "pscl\\.[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{48}", "short-prefix": "qx_[A-Za-z0-9]{40}",
    "azure-acr": "[A-Za-z0-9+/]{42}\\+ACR[A-Za-z0-9]{6}", "heroku-oauth": "HRKU-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
    "solana-key": "[1-9A-HJ-NP-Za-km-z]{88}", "mailersend": "mlsn\\.[0-9a-f]{64}", "rootly": "rootly_[0-9a-f]{64}",
    "replit": "rpl_[A-Za-z0-9]{48}", "slack-wf": "xwfp-[0-9]{12}-[A-Za-z0-9]{40}", "sq-oauth": "sq0atp-[A-Za-z0-9_-]{22}",
    "ghs-jwt": "ghs_[0-9]{8}_eyJ[A-Za-z0-9_-]{30}\\.eyJ[A-Za-z0-9_-]{80}\\.[A-Za-z0-9_-]{86}", "jwe": "eyJhbGciOiJSU0EtT0FFUC[A-Za-z0-9_-]{30}\\.[A-Za-z0-9_-]{60}\\.[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{60}\\.[A-Za-z0-9_-]{22}",
}  # fmt: skip
BARE = (
    "{s}", "I rotated it, the new one is {s} (staging only)", "got a 403 with {s} in the header", "* {s}",
    "新的是{s}，旧的作废", "сейчас используем {s}, не публикуй", "`{s}`", "init('{s}', region='eu')", "<{s}>",
    "| staging | {s} | 2026-01 |", "2026-02-03T10:11:12Z DEBUG auth ok ({s})", '{"v":["{s}"]}', "//{s}", "curl https://x.example.org/?q={s}",
)  # fmt: skip

# --- known by the name beside it --------------------------------------------------------------------------------------

VALUES = {
    "hex32": "[0-9a-f]{32}", "hex64": "[0-9a-f]{64}", "b62-24": "[A-Za-z0-9]{24}", "b62-40": "[A-Za-z0-9]{40}",
    "url43": "[A-Za-z0-9_-]{43}", "b64": "[A-Za-z0-9+/]{43}=", "lower20": "[a-z0-9]{20}", "upper16": "[A-Z2-7]{16}",
    "dotted": "[A-Za-z0-9]{12}\\.[A-Za-z0-9]{24}", "dashed": "[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
}  # fmt: skip
WORDS = {
    "word-digits": "(Sommer|Winter|Dragon|Monkey|Liverpool)[0-9]{4}!", "mixed": "[A-Za-z]{3}[0-9]{2}[!@#%&*]{1}[A-Za-z0-9]{5}",
    "long": "[A-Za-z0-9!@#%^&*_+-]{18}", "letters": "[a-z]{3}[A-Z]{3}[a-z]{4}", "leet": "P@55w[0-9]rd[0-9]{2}x",
    "phrase-dash": "(correct|brave|silver)-(horse|walrus|kettle)-(battery|mango|canyon)-[0-9]{2}", "digits": "[0-9]{8}",
}  # fmt: skip
TOKEN_NAMES = (
    "api_key", "X-Api-Key", "apikey", "API Key", "accessToken", "ACCESS_TOKEN", "client-secret", "clientSecret", "authToken",
    "STRIPE__SECRET_KEY", "spring.cloud.secret-key", "app.security.jwt.secret", "signingSecret", "webhook_secret",
    "Encryption-Key", "private_token", "oauth_token_secret", "consumerSecret", "SECRET_KEY_BASE", "bot_token", "refreshToken",
    "id_token", "AZURE_CLIENT_SECRET", "sasToken", "AccountKey", "SharedAccessKey", "x-functions-key", "subscription-key",
    "Ocp-Apim-Subscription-Key", "deploy_key", "licenseKey", "storageKey", "hmac_key", "session_secret", "cookieSecret",
    "admin-token", "root_token", "unseal_key", "ENC_KEY", "MASTER_KEY", "integration_key", "routing_key", "api_secret", "appSecret",
    "CLE_API", "clave_api", "chave_api", "api_schluessel", "geheimnis", "jeton", "secreto", "API-Schlüssel", "clé secrète",
    "密钥", "访问令牌", "应用密钥", "シークレットキー", "API 키", "секретный ключ", "токен доступа",
)  # fmt: skip
PASSWORD_NAMES = (
    "password", "PASSWORD", "passwd", "db_pass", "DB_PWD", "userPassword", "smtp.password", "spring.datasource.password",
    "MYSQL_ROOT_PASSWORD", "ansible_become_pass", "keystore-password", "storepass", "keyPassphrase", "wifi_psk", "wpa_passphrase",
    "rootpw", "bindpw", "LDAP_BIND_PW", "admin_pw", "loginPassword", "New Password", "passphrase", "passcode", "PIN",
    "Passwort", "Kennwort", "mot de passe", "motdepasse", "contraseña", "contrasena", "clave", "senha", "wachtwoord", "hasło",
    "lösenord", "parola", "şifre", "пароль", "密码", "登录密码", "口令", "パスワード", "비밀번호", "mật khẩu", "كلمة المرور",
)  # fmt: skip
NAMED = (
    "{k}={s}", "{k}: {s}", '"{k}": "{s}"', "'{k}' => '{s}',", '{k} = "{s}"', "{k}:{s}", "{k} : {s}", "- {k}: {s}", "**{k}**: {s}", "{k}\n{s}",
    "* {k} – {s}", "{k} = '{s}' # do not share", "| {k} | {s} |", "{k} is {s}", "{k}→{s}", "new {k}: `{s}`", "(({k} {s}))", "{k}：{s}",
)  # fmt: skip

# --- containers -------------------------------------------------------------------------------------------------------
# {p} a password, {t} a token, {h} 32 hex, {b} base64 of a password, {u} a UUID; the first of them is the secret.

CONTAINERS = {
    "yaml-nested": "database:\n  primary:\n    host: db1\n    user: app\n    password: {p}\n    port: 5432\n",
    "yaml-list": "users:\n  - name: bob\n    credentials:\n      token: {t}\n",
    "yaml-block": "api:\n  secret: |\n    {t}\n  region: eu\n",
    "yaml-folded": "api_token: >-\n  {t}\nregion: eu\n",
    "toml": '[auth]\nuser = "svc"\ntoken = "{t}"\n',
    "ini": "[client]\nuser=root\npassword={p}\nhost=localhost\n",
    "env-comment": "# production\nexport SMTP_PASS='{p}' # set by ops\nSMTP_PORT=587\n",
    "compose-list": "    environment:\n      - POSTGRES_USER=app\n      - POSTGRES_PASSWORD={p}\n",
    "compose-map": "    environment:\n      MINIO_ROOT_PASSWORD: {p}\n      MINIO_ROOT_USER: minio\n",
    "k8s-env": "        env:\n        - name: SESSION_SECRET\n          value: {t}\n",
    "k8s-secret": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ntype: Opaque\ndata:\n  pw: {b}\n",
    "k8s-stringdata": "kind: Secret\napiVersion: v1\nstringData:\n  admin: {p}\n",
    "terraform": 'resource "aws_db_instance" "x" {\n  username = "app"\n  password = "{p}"\n}\n',
    "tfvars": 'db_admin_password   = "{p}"\n',
    "helm-set": "helm upgrade x ./chart --set auth.rootPassword={p} --set image.tag=1.2.3",
    "actions-env": "      - run: ./deploy.sh\n        env:\n          DEPLOY_TOKEN: {t}\n",
    "heredoc": "cat > .env <<'EOT'\nAPI_SECRET={t}\nEOT\n",
    "curl-header": "curl -s -H 'X-Auth-Token: {t}' https://api.example.org/v2/servers",
    "curl-data": "curl -d 'grant_type=password&username=bob&password={p}' https://login.example.org/token",
    "curl-json": 'curl -XPOST -d \'{"user":"bob","password":"{p}"}\' https://x.example.org/login',
    "httpie": "http POST api.example.org/login username=bob password={p}",
    "httpie-auth": "http -a bob:{p} https://api.example.org/me",
    "wget": "wget --user=bob --password='{p}' https://files.example.org/a.tgz",
    "sql-create": "CREATE USER 'app'@'%' IDENTIFIED WITH mysql_native_password BY '{p}';",
    "sql-alter": "ALTER ROLE app WITH LOGIN ENCRYPTED PASSWORD '{p}' VALID UNTIL '2027-01-01';",
    "sql-server": "CREATE LOGIN app WITH PASSWORD = N'{p}', CHECK_POLICY = OFF;",
    "sql-insert": "INSERT INTO users (email, password, role) VALUES ('x', '{p}', 'admin');",
    "powershell": '$pw = ConvertTo-SecureString -String "{p}" -AsPlainText -Force',
    "powershell-cred": "$cred = New-Object PSCredential('bob', (ConvertTo-SecureString '{p}' -AsPlainText -Force))",
    "powershell-env": '[Environment]::SetEnvironmentVariable("API_TOKEN", "{t}", "User")',
    "registry": '[HKEY_CURRENT_USER\\Software\\X]\n"Password"="{p}"\n"Port"=dword:00000016\n',
    "xml-element": "<server><id>releases</id><username>ci</username><password>{p}</password></server>",
    "xml-attribute": '<connection user="sa" password="{p}" timeout="30"/>',
    "xml-entry": '<entry key="api.secret">{t}</entry>',
    "spring-bean": '<property name="password" value="{p}"/>',
    "plist": "<key>APIKey</key>\n<string>{t}</string>\n",
    "properties": "javax.net.ssl.keyStorePassword = {p}\n",
    "json-in-json": '{"body":"{\\"login\\":\\"bob\\",\\"password\\":\\"{p}\\"}"}',
    "json-in-json-twice": '{"log":"{\\"body\\":\\"{\\\\\\"api_key\\\\\\":\\\\\\"{t}\\\\\\"}\\"}"}',
    "json-named": '{"name": "client_secret", "type": "text", "value": "{t}"}',
    "json-value-first": '{"value": "{t}", "name": "API_TOKEN"}',
    "json-array": '["--token", "{t}", "--verbose"]',
    "markdown-table": "| Service | User | Password |\n|---|---|---|\n| grafana | admin | {p} |\n",
    "markdown-table-cn": "| 系统 | 账号 | 密码 |\n| --- | --- | --- |\n| 测试环境 | test01 | {p} |\n",
    "csv": "name,username,password\nmail,bob,{p}\nvpn,bob,none\n",
    "csv-chrome": 'name,url,username,password,note\nx.example.org,https://x.example.org/,bob,"{p}",\n',
    "tsv": "host\tuser\tpassword\nweb1\tdeploy\t{p}\n",
    "http-request": "GET /v1/me HTTP/1.1\r\nHost: api.example.org\r\nX-Api-Key: {t}\r\nAccept: */*\r\n",
    "http-proxy": "Proxy-Authorization: Basic {b2}\r\n",
    "http-token": "Authorization: Token token={t}",
    "http-plain": "authorization: {t}",
    "http-digest-cookie": "set-cookie: connect.sid=s%3A{t}.{t2}; Path=/; HttpOnly",
    "har": '{"headers":[{"name":"Authorization","value":"Bearer {t}"},{"name":"Accept","value":"*/*"}]}',
    "har-cookie": '{"cookies":[{"name":"session","value":"{t}","path":"/"}]}',
    "log": "2026-01-02 03:04:05,678 INFO c.e.Auth - login ok user=bob token={t} ip=10.0.0.1",
    "logfmt": 'level=info msg="token refreshed" access_token="{t}" took=12ms',
    "trace-python": "requests.exceptions.HTTPError: 401 for url: https://api.example.org/v1?api_key={t}&units=si",
    "trace-java": "java.sql.SQLException: Access denied (url=jdbc:mysql://db/app?user=app&password={p}&useSSL=false)",
    "trace-args": "    connect(host='db', user='app', password='{p}')\nTimeoutError: timed out",
    "url-fragment": "https://app.example.org/callback#access_token={t}&token_type=bearer&expires_in=3600",
    "url-path": "https://hooks.example.org/services/incoming/{t}",
    "presigned-gcs": "https://storage.googleapis.com/b/o?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Signature={h64}{h64}",
    "cloudfront": "https://d111.cloudfront.net/x.mp4?Expires=1767225600&Signature={u43}~{u43}__&Key-Pair-Id=K2JCJMDEHXQW5F",
    "dsn-amqp": "amqps://svc:{p0}@mq.internal.example.org:5671/%2f", "dsn-smtp": "smtp://mailer:{p0}@smtp.example.org:587",
    "dsn-ldap": "ldap://cn=admin,dc=x:{p0}@ldap.example.org", "dsn-mssql": "mssql+pyodbc://sa:{p0}@db/app?driver=ODBC+Driver+18",
    "dsn-clickhouse": "clickhouse://default:{p0}@ch.example.org:9440/logs?secure=true", "dsn-no-user": "rediss://:{p0}@cache.example.org:6380",
    "dsn-ftp": "sftp://deploy:{p0}@files.example.org/var/www", "dsn-proxy": "export https_proxy=http://bob:{p0}@proxy.corp:3128",
    "jdbc-oracle": "jdbc:oracle:thin:app/{p0}@//db.corp:1521/ORCL", "jdbc-sqlserver": "jdbc:sqlserver://db:1433;databaseName=x;user=sa;password={p};encrypt=true",
    "odbc": "Driver={ODBC Driver 18 for SQL Server};Server=db;UID=sa;PWD={p};", "adonet": "Data Source=db;Initial Catalog=x;User Id=app;Password={p};",
    "pg-kv": "host=db port=5432 dbname=x user=app password={p} sslmode=require", "servicebus": "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={t44}",
    "cosmos": "AccountEndpoint=https://x.documents.azure.com:443/;AccountKey={t86};", "appinsights-like": "InstrumentationKey={u};IngestionEndpoint=https://x",
    "netrc": "machine api.example.org\n  login bob\n  password {p}\n", "pgpass": "db.example.org:5432:*:app:{p0}", "my-cnf": "[mysqldump]\npassword = \"{p}\"\n",
    "git-remote": "origin\thttps://oauth2:{t}@git.example.org/team/app.git (fetch)", "git-remote-token": "https://{t40}@git.example.org/x.git",
    "git-extraheader": "git -c http.extraHeader='Authorization: Bearer {t}' fetch", "npmrc": "//npm.example.org/:_authToken={u}", "npmrc-password": "//npm.example.org/:_password={b}",
    "pypirc": "[pypi]\nusername = bob\npassword = {p}\n", "pip-index": "pip install --index-url https://bob:{p0}@pypi.example.org/simple x", "docker-config": '{"auths":{"r.example.org":{"auth":"{b2}"}}}',
    "docker-login": "docker login -u bob -p {p} r.example.org", "teams-webhook": "https://x.webhook.office.com/webhookb2/{u}@{u}/IncomingWebhook/{*h}/{u}",
    "teams-flow": "https://prod-12.westeurope.logic.azure.com:443/workflows/{h}/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers&sv=1.0&sig={*u43}",
    "gchat": "https://chat.googleapis.com/v1/spaces/AAAA/messages?key=abc&token={u43}", "discord-hook": "https://canary.discord.com/api/v10/webhooks/{d19}/{*u68}",
    "mattermost": "https://chat.example.org/hooks/{l26}", "ifttt": "https://maker.ifttt.com/trigger/x/with/key/{u43}", "telegram-url": "https://api.telegram.org/bot{d10}:AAH{*u32}/getMe",
    "otpauth": "otpauth://totp/X:bob@corp?secret={otp}&issuer=X", "totp-label": "TOTP secret: {otp}", "2fa": "two-factor setup key {otp4}",
    "mnemonic": "my seed phrase: {words}", "mnemonic-cn": "助记词：{words}", "recovery": "Recovery codes:\n{rc}\n", "backup-code": "GitHub recovery codes\n{rc}\n",
    "license": "License key: {lic}", "wifi": "WIFI:T:WPA;S:home;P:{p};;", "wpa-conf": 'network={\n  ssid="home"\n  psk="{p}"\n}', "pin": "PIN: {d6}", "cvv": "card ok, CVV {d3}",
    "ssh-askpass": "sshpass -p {p} scp a bob@10.0.0.4:/tmp", "ssh-expect": 'send "{p}\\r"', "mysql-flag": "mysqldump -uroot -p{p0} app > x.sql", "redis-auth": "redis-cli -a {p} ping",
    "psql-env": "PGPASSWORD={p} psql -h db -U app", "openssl-pass": "openssl enc -d -aes-256-cbc -in x -pass pass:{p}", "zip": "7z x a.7z -p{p}", "az": "az login --service-principal -u {u} -p {*t} --tenant x",
    "ansible-vars": "ansible_ssh_pass: '{p}'\nansible_user: root\n", "ansible-extra": "ansible-playbook x.yml -e 'vault_pw={p}'", "chpasswd": "echo 'root:{p}' | chpasswd", "passwd-stdin": "echo '{p}' | passwd --stdin root",
    "htpasswd": "htpasswd -cb .htpasswd bob {p}", "shadow": "root:$6$saltsalt${sh86}:19000:0:99999:7:::", "kubectl": "kubectl create secret generic x --from-literal=password={p}",
    "kubectl-docker": "kubectl create secret docker-registry x --docker-username=bob --docker-password={p}", "aws-configure": "aws configure set aws_secret_access_key {t40}",
    "gh-secret": "gh secret set DEPLOY_KEY -b'{t}'", "vault-put": "vault kv put secret/app password={p}", "gcloud": "printf '{p}' | gcloud secrets create db-pass --data-file=-", "ruby-hash": "{ :password => '{p}', :user => 'x' }",
    "php-define": "define('DB_PASSWORD', '{p}');", "php-array": "'password' => env('DB_PASSWORD', '{p}'),", "go-struct": 'Config{User: "x", Password: "{p}"}', "java-setter": 'ds.setPassword("{p}");', "java-driver": 'DriverManager.getConnection(url, "app", "{p}");',
    "csharp": 'var c = new NetworkCredential("bob", "{p}");', "rust": 'let api_token: &str = "{t}";', "swift": 'static let apiKey: String = "{t}"', "kotlin": 'buildConfigField("String", "API_KEY", "\\"{t}\\"")', "python-tuple": "auth=('bob', '{p}')",
    "python-dict": "conf['smtp']['password'] = '{p}'", "python-default": 'os.environ.get("API_SECRET", "{t}")', "js-headers": "headers: { 'x-api-key': '{t}' }", "js-or": 'const k = process.env.API_KEY || "{t}";', "ts-opt": "new Client({ accessToken: '{t}' })",
    "jenkins": "withEnv(['TOKEN={t}']) { sh 'x' }", "dockerfile": "ENV API_TOKEN {t}", "docker-run": "docker run -e MYSQL_PASSWORD={p} -d x", "systemd": 'Environment="DB_PASSWORD={p}"', "nginx": 'proxy_set_header Authorization "Bearer {t}";',
    "wireguard": "[Peer]\nPresharedKey = {b32}\nAllowedIPs = 10.0.0.2/32\n", "wireguard-private": "[Interface]\nPrivateKey = {b32}\n", "ipsec": '%any : PSK "{p}"', "snmp": "rocommunity {p}", "cisco": "username bob privilege 15 secret 5 $1$abcd${c22}",
    "cisco-type7": "enable password 7 {H18}", "rclone": "[remote]\ntype = sftp\npass = {u43}\n", "s3cfg": "access_key = x\nsecret_key = {t40}\n", "boto": "aws_secret_access_key={t40}", "minio": "mc alias set x https://s3.example.org admin {p}",
    "gpg-batch": "Passphrase: {p}\n%commit", "chat-login": "Login: bob\nPassword: {p}", "chat-slash": "user/pass: bob/{p}", "chat-colon": "creds are admin:{p}", "mail": "Your temporary password is: {p}\nPlease change it.", "keepass": "Title: mail\nUser Name: bob\nPassword: {p}\nURL: x",
    "graphql": 'mutation { login(email: "x", password: "{p}") { ok } }', "form": 'Content-Disposition: form-data; name="password"\r\n\r\n{p}\r\n', "html-input": '<input type="hidden" name="csrf_secret" value="{t}">', "qr": "otpauth-migration://offline?data={b64u}",
    "pem-oneline": "key: -----BEGIN {pk}-----{b64l}-----END {pk}-----", "pem-string": '"-----BEGIN {pk}-----\\n{b64l}\\n{b64l}\\n-----END {pk}-----\\n"', "jwk": '{"kty":"RSA","e":"AQAB","n":"x","d":"{u300}"}', "jwk-oct": '{"kty":"oct","kid":"1","k":"{u43}"}', "putty": "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{b48}\nPrivate-MAC: {h64}\n",
}  # fmt: skip

PROSE = {
    "en": ("the password is {p}, change it after login", "log in as bob with {p}", "use {p} as the password", "set the root password to {p} please", "my wifi password: {p}", "try password {p}", "I changed my pass from hunter to {p}",
           "here's the token: {t}", "the API key should be {t}", "paste this token: {t}", "bearer {t}", "with the secret of {t} it works", "Pass: {p}", "pw {p}", "the pin is {d6}", "password (staging): {p}", "password for admin is {p}", "password changed to {p}"),
    "zh": ("密码改成了{p}，别告诉别人", "数据库密码是 {p}", "把密码设为{p}", "初始密码：{p}", "用户名 admin 密码 {p}", "账号bob，密码{p}", "密码为“{p}”", "我的密钥是{t}", "这个 token 是 {t}", "令牌换成 {t} 了", "api key 用 {t}", "口令: {p}", "验证密钥填 {t}", "服务器密码还是{p}没变"),
    "ja": ("パスワードは{p}です", "パスワードを「{p}」に変更しました", "APIキーは {t} です", "トークン：{t}", "暗証番号は{d6}です", "初期パスワード {p} でログイン"),
    "de": ("das Passwort lautet {p}", "Passwort ist jetzt {p}", "Zugangsdaten: bob / {p}", "mein Kennwort: {p}", "der API-Schlüssel ist {t}", "Das neue Passwort für den Server: {p}", "Zugangscode {p}"),
    "fr": ("le mot de passe est {p}", "mot de passe : {p}", "voici la clé API : {t}", "le jeton est {t}", "mdp : {p}", "j'ai mis {p} comme mot de passe"),
    "es": ("la contraseña es {p}", "contraseña: {p}", "mi clave es {p}", "la clave de API es {t}", "el token es {t}", "usuario bob contraseña {p}"),
    "ru": ("пароль: {p}", "пароль {p}", "мой пароль — {p}", "ключ API: {t}", "токен такой: {t}", "логин bob пароль {p}", "поменял пароль на {p}"),
    "ko": ("비밀번호는 {p} 입니다", "비번: {p}", "토큰은 {t} 입니다", "API 키: {t}"),
    "pt-it-nl": ("a senha é {p}", "senha: {p}", "la password è {p}", "het wachtwoord is {p}", "a chave da API é {t}"),
}  # fmt: skip


def fill(source: Source, template: str) -> tuple[str, str]:
    """The template with its holes filled; the first hole's value is the secret, or the one marked `*`."""
    pw = source.pick("word-digits", "mixed", "long", "leet")
    values: dict[str, Callable[[], str]] = {
        "p": lambda: source.shape(WORDS[pw]), "p0": lambda: source.shape("[A-Za-z0-9]{6}[0-9]{2}[A-Za-z]{4}"), "t": lambda: source.shape(VALUES[source.pick("hex32", "b62-24", "b62-40", "url43", "lower20")]),
        "t2": lambda: source.alnum(43), "h": lambda: source.hex(32), "h64": lambda: source.hex(64), "H18": lambda: source.shape("[0-9A-F]{18}"), "t40": lambda: source.alnum(40), "t44": lambda: source.base64(32), "t86": lambda: source.base64(64),
        "b": lambda: base64.b64encode(source.shape(WORDS["long"]).encode()).decode(), "b2": lambda: base64.b64encode(f"bob:{source.alnum(12)}".encode()).decode(), "b32": lambda: source.base64(32), "b48": lambda: source.base64(48), "u": source.uuid,
        "u43": lambda: source.shape("[A-Za-z0-9_-]{43}"), "u68": lambda: source.shape("[A-Za-z0-9_-]{68}"), "u32": lambda: source.shape("[A-Za-z0-9_-]{32}"), "u300": lambda: source.shape("[A-Za-z0-9_-]{300}"), "d19": lambda: "1" + source.digits(18), "d10": lambda: "7" + source.digits(9),
        "d6": lambda: source.digits(6), "d3": lambda: source.digits(3), "l26": lambda: source.shape("[a-z0-9]{26}"), "otp": lambda: source.shape("[A-Z2-7]{32}"), "otp4": lambda: " ".join(source.shape("[a-z2-7]{4}") for _ in range(8)), "words": lambda: " ".join(source.rng.sample(MNEMONIC, 12)),
        "rc": lambda: "\n".join(f"{source.shape('[a-z0-9]{5}')}-{source.shape('[a-z0-9]{5}')}" for _ in range(8)), "lic": lambda: "-".join(source.shape("[A-Z0-9]{5}") for _ in range(5)), "sh86": lambda: source.shape("[A-Za-z0-9./]{86}"), "c22": lambda: source.shape("[A-Za-z0-9./]{22}"),
        "b64u": lambda: urllib.parse.quote(source.base64(60), safe=""), "b64l": lambda: source.shape("[A-Za-z0-9+/]{64}"),
    }  # fmt: skip
    secret = ""

    def put(hole: re.Match[str]) -> str:
        nonlocal secret
        if hole[2] not in values:
            return hole[0]
        value = values[hole[2]]()
        if hole[1] or not secret:
            secret = value
        return value

    out = re.sub(r"\{(\*?)([a-zA-Z0-9]+)\}", put, template)
    return out.replace("{pk}", "RSA PRIVATE" + " KEY"), secret


MNEMONIC = [
    "abandon",
    "ability",
    "about",
    "absent",
    "absorb",
    "abstract",
    "access",
    "account",
    "achieve",
    "acoustic",
    "acquire",
    "actress",
    "adapt",
    "address",
    "advance",
    "anchor",
    "ancient",
    "apple",
    "april",
    "arrow",
    "attend",
    "autumn",
    "balance",
    "banana",
    "battle",
    "beach",
    "blanket",
    "bridge",
    "bronze",
    "butter",
    "cactus",
    "canoe",
    "canyon",
    "castle",
    "cereal",
    "cloth",
    "coconut",
    "cradle",
    "dolphin",
    "eagle",
    "fabric",
    "garlic",
    "harvest",
    "island",
    "jungle",
    "kitten",
    "lemon",
    "magnet",
]

# --- disguises --------------------------------------------------------------------------------------------------------

_CYRILLIC = str.maketrans("aceopxyACEHKMOPTXB", "асеорхуАСЕНКМОРТХВ")
_GREEK = str.maketrans("ABEZHIKMNOPTYXov", "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧον")


def _each(text: str, size: int, joint: str) -> str:
    return joint.join(text[i : i + size] for i in range(0, len(text), size))


def _circled(text: str) -> str:
    return "".join(
        chr(0x24B6 + ord(c) - 65) if "A" <= c <= "Z" else chr(0x24D0 + ord(c) - 97) if "a" <= c <= "z" else c
        for c in text
    )


def _superscript(text: str) -> str:
    return text.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _mathematical(text: str) -> str:
    bases = (0x1D400, 0x1D41A, 0x1D7CE)
    return "".join(
        chr(bases[0] + ord(c) - 65)
        if "A" <= c <= "Z"
        else chr(bases[1] + ord(c) - 97)
        if "a" <= c <= "z"
        else chr(bases[2] + ord(c) - 48)
        if c.isdigit() and c.isascii()
        else c
        for c in text
    )


def _dump(text: str) -> str:
    data = text.encode()
    return "\n".join(
        f"{at:08x}  {data[at : at + 16].hex(' ')}  |{''.join(chr(b) for b in data[at : at + 16])}|"
        for at in range(0, len(data), 16)
    )


DISGUISES: dict[str, Callable[[str], str]] = {
    "spaces-between": lambda s: " ".join(s), "dashes-none": lambda s: _each(s, 4, " "), "zero-width-joiner": lambda s: "\u200d".join(s), "word-joiner": lambda s: _each(s, 3, "\u2060"), "bom-inside": lambda s: _each(s, 7, "\ufeff"),
    "rtl-mark": lambda s: s[:4] + "\u200f" + s[4:9] + "\u202e" + s[9:], "soft-hyphen": lambda s: _each(s, 5, "\u00ad"), "tag-characters": lambda s: s[:6] + "\U000e0041" + s[6:], "variation": lambda s: _each(s, 2, "\ufe0f"), "combining": lambda s: s[:5] + "\u0336" + s[5:10] + "\u0332" + s[10:],
    "fullwidth-all": lambda s: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s), "fullwidth-digits": lambda s: s.translate(str.maketrans("0123456789", "０１２３４５６７８９")), "mathematical": _mathematical, "circled": _circled, "superscript": _superscript,
    "cyrillic-all": lambda s: s.translate(_CYRILLIC), "greek-all": lambda s: s.translate(_GREEK), "html-decimal": lambda s: "".join(f"&#{ord(c)};" for c in s), "html-hex-padded": lambda s: "".join(f"&#x{ord(c):04X};" for c in s), "html-named": lambda s: s.replace("_", "&lowbar;").replace("-", "&hyphen;").replace(".", "&period;").replace("/", "&sol;"),
    "quoted-printable": lambda s: "".join(f"={ord(c):02X}" for c in s[:8]) + s[8:], "quoted-printable-soft": lambda s: s[:12] + "=\n" + s[12:], "percent-all": lambda s: "".join(f"%{ord(c):02x}" for c in s), "percent-twice": lambda s: urllib.parse.quote("".join(f"%{ord(c):02X}" for c in s[:4]), safe="") + s[4:],
    "u8-escape": lambda s: "".join(f"\\U{ord(c):08x}" for c in s[:5]) + s[5:], "u-brace": lambda s: "".join(f"\\u{{{ord(c):x}}}" for c in s), "x-brace": lambda s: "".join(f"\\x{{{ord(c):02x}}}" for c in s), "x-all": lambda s: "".join(f"\\x{ord(c):02x}" for c in s), "octal": lambda s: "".join(f"\\{ord(c):03o}" for c in s), "css-escape": lambda s: f"\\{ord(s[0]):x} " + s[1:],
    "md-bold-inside": lambda s: s[:6] + "**" + s[6:12] + "**" + s[12:], "md-italic-inside": lambda s: s[:6] + "*" + s[6:], "md-code-inside": lambda s: s[:8] + "`" + s[8:] + "`", "html-span-inside": lambda s: s[:7] + '<span class="hl">' + s[7:13] + "</span>" + s[13:], "wbr": lambda s: _each(s, 10, "<wbr>"), "br": lambda s: _each(s, max(12, len(s) // 2 + 1), "<br>"), "ansi-inside": lambda s: s[:6] + "\x1b[1;33m" + s[6:] + "\x1b[0m",
    "wrap-16": lambda s: _each(s, 16, "\n"), "wrap-indent": lambda s: _each(s, 20, "\n      "), "wrap-comment": lambda s: _each(s, 20, "\n// "), "wrap-log": lambda s: _each(s, 20, "\n2026-01-02 03:04:05 INFO "), "wrap-email": lambda s: _each(s, 20, "\n> "), "wrap-backslash": lambda s: _each(s, 20, "\\\n"), "wrap-table": lambda s: _each(s, 20, " |\n| "),
    "concat-plus": lambda s: _each(s, 14, '" + "'), "concat-implicit": lambda s: _each(s, 14, '" "'), "concat-lines": lambda s: _each(s, 14, '"\n    "'), "concat-dot": lambda s: _each(s, 14, "' . '"), "concat-amp": lambda s: _each(s, 14, '" & "'), "concat-comma-join": lambda s: '"".join(["' + _each(s, 14, '", "') + '"])', "concat-array": lambda s: "['" + _each(s, 14, "', '") + "'].join('')", "format": lambda s: f'"{s[:12]}{{}}".format("{s[12:]}")', "printf": lambda s: f"\"{s[:12]}%s\" % '{s[12:]}'", "template": lambda s: "`" + s[:12] + "${'" + s[12:] + "'}`", "shell-adjacent": lambda s: s[:12] + '""' + s[12:], "concat-var": lambda s: f'"{s[:12]}"\nk += "{s[12:]}"', "strcat": lambda s: f"CONCAT('{s[:12]}', '{s[12:]}')", "lua": lambda s: _each(s, 14, '" .. "'), "c-adjacent-r": lambda s: _each(s, 14, "' + r'"),
    "base64": lambda s: base64.b64encode(s.encode()).decode(), "base64url": lambda s: base64.urlsafe_b64encode(s.encode()).decode().rstrip("="), "base64-twice": lambda s: base64.b64encode(base64.b64encode(s.encode())).decode(), "base64-wrapped": lambda s: _each(base64.b64encode(f'{{"config": "plain text before", "k": "{s}", "z": "and some after it"}}'.encode()).decode(), 76, "\n"),
    "hex": lambda s: s.encode().hex(), "hex-spaced": lambda s: s.encode().hex(" "), "hex-0x": lambda s: ", ".join(f"0x{b:02x}" for b in s.encode()), "hexdump": _dump, "base32": lambda s: base64.b32encode(s.encode()).decode(), "reversed": lambda s: s[::-1], "bytes-list": lambda s: ", ".join(str(b) for b in s.encode()), "char-list": lambda s: "['" + "', '".join(s) + "']", "utf16-base64": lambda s: base64.b64encode(s.encode("utf-16-le")).decode(),
    "json-thrice": lambda s: json.dumps(json.dumps(json.dumps({"k": s}))), "yaml-quoted-break": lambda s: '"' + s[:15] + "\\\n   " + s[15:] + '"', "nul-inside": lambda s: s[:9] + "\0" + s[9:], "tab-inside": lambda s: s[:15] + "\t" + s[15:], "crlf-wrap": lambda s: _each(s, 24, "\r\n"), "ellipsis-none": lambda s: f"({s})...", "unicode-dash": lambda s: s.replace("-", "\u2011").replace("_", "\uff3f"), "url-in-md": lambda s: f"[x](https://e.example.org/{s})", "exclaim": lambda s: f"!!{s}!!",
}  # fmt: skip
DISGUISED = {
    "github": "ghp_[A-Za-z0-9]{36}", "openai": "sk-proj-[A-Za-z0-9_-]{74}T3BlbkFJ[A-Za-z0-9_-]{74}", "aws": "AKIA[A-Z2-7]{16}", "google": "AIza[0-9A-Za-z_-]{35}", "slack": "xoxb-[0-9]{12}-[0-9]{13}-[A-Za-z0-9]{24}", "stripe": "sk_live_51[A-Za-z0-9]{97}", "gitlab": "glpat-[A-Za-z0-9_-]{20}",
    "huggingface": "hf_[A-Za-z]{34}", "digitalocean": "dop_v1_[0-9a-f]{64}", "sendgrid": "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}", "e2b": "e2b_[0-9a-f]{40}", "npm": "npm_[A-Za-z0-9]{36}",
}  # fmt: skip
DISGUISE_LINES = ("key = {s}", "token: {s}", "x {s} y", "the secret:\n{s}\n")

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
        ("dots", _each(visa, 4, ".")),
        ("spaces", _each(visa, 4, " ")),
        ("plain", visa),
        ("amex", f"{amex[:4]} {amex[4:10]} {amex[10:]}"),
        ("nbsp", _each(visa, 4, "\u00a0")),
        ("mir", _luhn("2200" + source.digits(11))),
        ("unionpay19", _luhn("621" + source.digits(15))),
        ("en-dash", _each(visa, 4, "–")),
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
        for form in (value, _each(value, 4, " "), value.lower(), _each(value, 4, "-")):
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


# --- the set ----------------------------------------------------------------------------------------------------------


def rows(seed: int | str) -> Iterator[Row]:
    """Every row of the set; the same seed gives the same rows."""
    number = 0

    def row(group: str, kind: str, text: str, secret: str | None, plain: str | None = None) -> Row:
        nonlocal number
        number += 1
        return Row(f"{group}-{number}", group, kind, text, secret, plain)

    source = Source(f"{seed}/vendors")
    for name, shape in VENDORS.items():
        for line in source.rng.sample(BARE, 4):
            token = source.shape(shape)
            yield row("vendors", name, line.replace("{s}", token), token)
    source = Source(f"{seed}/names")
    for names, values in ((TOKEN_NAMES, VALUES), (PASSWORD_NAMES, WORDS)):
        for name in names:
            for line in source.rng.sample(NAMED, 4):
                kind = source.rng.choice([*values])
                value = source.digits(6) if name == "PIN" else source.shape(values[kind])
                yield row("names", name, line.replace("{k}", name).replace("{s}", value), value)
    source = Source(f"{seed}/containers")
    for name, template in CONTAINERS.items():
        for around in ("{s}", "here is what I have:\n\n{s}\n\nit fails, why?"):
            text, secret = fill(source, template)
            yield row("containers", name, around.replace("{s}", text), secret)
    source = Source(f"{seed}/prose")
    for language, templates in PROSE.items():
        for template in templates:
            for _ in range(2):
                text, secret = fill(source, template)
                yield row("prose", language, text, secret)
    source = Source(f"{seed}/disguises")
    for name, disguise in DISGUISES.items():
        for shape in DISGUISED.values():
            token = source.shape(shape)
            shown = disguise(token)
            if shown != token:
                must = token if token in shown else shown
                yield row("disguises", name, source.pick(*DISGUISE_LINES).replace("{s}", shown), must, token)
    source = Source(f"{seed}/personal")
    for _ in range(2):
        for kind, text, value in personal(source):
            yield row("personal", kind, text, value)
    source = Source(f"{seed}/echo")
    for kind, (claim, echo) in {
        "url": ("postgres://app:{s}@db/x", "then I typed {s}"),
        "named": ("DB_PASSWORD={s}", "with {s} it works"),
        "prose": ("the password is {s}", "psql asked, I gave {s}"),
        "percent": ("password: {s}", "?p={q}"),
        "escaped": ("token={s}", '{"v":"{s}"}'),
        "cn": ("密码是{s}", "我试了{s}不行"),
        "upper": ("api_key={s}", "the log shows {s}!"),
        "base64": ("secret: {s}", "blob {e}"),
    }.items():
        for _ in range(6):
            value = (
                source.shape("[A-Za-z0-9]{5}[!@#%+/]{1}[A-Za-z0-9]{8}[0-9]{2}")
                if kind in ("named", "percent", "prose")
                else source.alnum(24)
            )
            shown = {
                "{q}": urllib.parse.quote(value, safe=""),
                "{e}": base64.b64encode(f"value is {value} ok".encode()).decode(),
            }
            line = echo.replace("{s}", value)
            for hole, form in shown.items():
                line = line.replace(hole, form)
            said = next((form for hole, form in shown.items() if hole in echo), value)
            yield row("echo", kind, f"{line}\nearlier: {claim.replace('{s}', value)}", said, value)
    source = Source(f"{seed}/look-alikes")
    for _ in range(3):
        for kind, text in lookalikes(source):
            yield row("look-alikes", kind, text, None)


def caught(row: Row, out: str, spans: Iterable[tuple[int, int]]) -> bool:
    """Is no piece of 60% of the secret left, shown or plain, and is four fifths of it masked where it stands
    (three fifths of a disguise, which has signs around the secret)?"""
    assert row.secret is not None
    for form in {row.secret, row.plain or row.secret}:
        size = -(-len(form) * 6 // 10)
        if any(form[i : i + size] in out for i in range(len(form) - size + 1)):
            return False
    at = row.text.index(row.secret)
    masked = {place for start, end in spans for place in range(max(start, at), min(end, at + len(row.secret)))}
    return len(masked) >= (0.6 if row.group == "disguises" else 0.8) * len(row.secret)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the truth set as JSON lines.")
    parser.add_argument("--seed", default="1")
    for made in rows(parser.parse_args().seed):
        print(json.dumps(asdict(made)))


if __name__ == "__main__":
    main()
