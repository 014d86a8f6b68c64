# ruff: noqa: E501 - tables of examples, one a line, in many scripts
"""Secrets as they are pasted, for the truth set of redaction: by the token itself, by the name beside it, in containers, in prose."""

from __future__ import annotations

import base64
import re
import urllib.parse
from collections.abc import Callable

from redaction_source import Source

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
