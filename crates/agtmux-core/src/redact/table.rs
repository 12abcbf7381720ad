//! The table of secret patterns.

pub(super) struct SecretPattern {
    /// The kind shown in the redaction marker.
    pub kind: &'static str,
    /// The first matching group is the secret; the rest of the match is kept. Without groups the whole match is the
    /// secret. `<part>` refers to a part in [`super::secret_names`].
    pub pattern: &'static str,
    /// Examples with the secret in ‹›, checked by a test. The test removes each `·`, which hides the examples from
    /// secret scanners.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests read it"))]
    pub examples: &'static [&'static str],
}

const fn row(kind: &'static str, pattern: &'static str, examples: &'static [&'static str]) -> SecretPattern {
    SecretPattern { kind, pattern, examples }
}

/// In order of precedence: more specific kinds first.
pub(super) const SECRET_PATTERNS: &[SecretPattern] = &[
    // A key without its end line matches up to the end of the text: losing text is better than keeping half a key.
    row(
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
        &[
            "a ‹-----BEGIN· PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\n-----END· PRIVATE KEY-----› b",
            "‹-----BEGIN· OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEA\\n-----END· OPENSSH PRIVATE KEY-----›\\n",
            "cut: ‹-----BEGIN· EC PRIVATE KEY-----\nMHcCAQEEIIGHk7 \n and so on›",
            "‹-----BEGIN· PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n-----END· PGP PRIVATE KEY BLOCK-----› end",
        ],
    ),
    row(
        "private-key",
        r"(?:[A-Za-z0-9+/=]{16,}(?:\\[rn]|\s)*)+-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
        &["scrolled: ‹MIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIB==\n-----END· PRIVATE KEY-----› $"],
    ),
    row(
        "private-key",
        r"Private-Lines: [0-9]+\s+((?:[A-Za-z0-9+/=]{4,}\s*)+)",
        &["Private-Lines: 2\n‹AAAAgQDF3f·0xqkCkmh6\nmLqR7YgS==›"],
    ),
    row("age", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{16,}", &["# ‹AGE-SECRET-·KEY-1QQPQ0LZ4Y9VXSU5TJ8R7K›"]),
    row(
        "anthropic",
        r"sk-ant-[A-Za-z0-9_-]{8,}",
        &["x ‹sk-ant-·api03-AbCd_Ef-0123456789› y", "‹sk-ant-·oat01-abcdefgh›"],
    ),
    row(
        "openai",
        concat!(
            r"(?-u:\b)sk-(?:(?:proj|svcacct|admin|live|test|lf|or|or-v1)-[A-Za-z0-9_-]{12,}",
            "|[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*|[A-Za-z0-9_-]{32,})",
        ),
        &[
            "key ‹sk-·proj-AbC-dEf_0123456789› .",
            "(‹sk-·abcdefghijklmnop0123456789ABCDEF›)",
            "‹sk-·or-v1-0123456789abcdef›",
        ],
    ),
    row("google", r"AIza[A-Za-z0-9_-]{30,}", &["?key=‹AIza·SyA-0123456789_abcdefghijklmnopqrst›&v=1"]),
    row("google", r"ya29\.[A-Za-z0-9_-]{16,}", &["‹ya29.·a0AfH6SMBx_0123456789-abc› ok"]),
    row("google", r"GOCSPX-[A-Za-z0-9_-]{16,}", &["id ‹GOCSPX-·0123456789abcdefghij›"]),
    row(
        "github",
        r"gh[pousr]_[A-Za-z0-9]{16,}",
        &[
            "‹ghp_·0123456789abcdefghijABCDEFGHIJ012345›",
            "a ‹gho_·0123456789abcdefghij› b",
            "‹ghu_·0123456789abcdefghij›",
            "‹ghs_·0123456789abcdefghij›.",
            "‹ghr_·0123456789abcdefghij›",
        ],
    ),
    row("github", r"github_pat_[A-Za-z0-9_]{16,}", &["pat ‹github_pat_·11ABCDEFG0123456789_abcdef› end"]),
    row(
        "gitlab",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{16,}",
        &["‹glpat-·0123456789_abcdefghi› x", "‹glrt-·t1_0123456789abcdefg›"],
    ),
    row(
        "slack",
        r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}",
        &[
            "‹xoxb-·123456789012-abcdefABCDEF› x",
            "‹xoxp-·1234-5678-abcd›",
            "‹xoxe.xoxp-·1-abcdefgh›",
            "‹xoxa-·2-abcdefg›",
            "‹xoxr-·12345678›",
            "‹xoxs-·12345678›",
        ],
    ),
    row("slack", r"xapp-[0-9]-[A-Za-z0-9-]{8,}", &["‹xapp-·1-A0123456789-0123-abcdef› ok"]),
    row(
        "webhook",
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)/([A-Za-z0-9/_-]+)",
        &[
            "https://hooks.slack.com/services/‹T00000000/·B00000000/abcdefgh› !",
            "https://discord.com/api/webhooks/‹123/·a-b_c›",
        ],
    ),
    row("aws", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", &["id ‹AKIA·IOSFODNN7EXAMPLE› .", "‹ASIA·IOSFODNN7EXAMPLE›"]),
    row("npm", r"npm_[A-Za-z0-9]{30,}", &["//registry: ‹npm_·0123456789abcdefghijABCDEFGHIJ012345›"]),
    row(
        "pypi",
        r"pypi-(?:[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*|[A-Za-z0-9_-]{50,})",
        &["-u x ‹pypi-·AgEIcHlwaS5vcmcCJDAxMjM0-56› y"],
    ),
    row("huggingface", r"hf_[A-Za-z0-9]{20,}", &["‹hf_·abcdefghijklmnopqrstuvwxyzABCDEFGH›,"]),
    row("digitalocean", r"do[opr]_v1_[A-Za-z0-9]{16,}", &["‹dop_v1_·0123456789abcdef0123456789abcdef› x"]),
    row(
        "sendgrid",
        r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        &["‹SG.·0123456789abcdefghijkl.0123456789abcdefghijkl_-› x"],
    ),
    row(
        "stripe",
        r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}",
        &["‹sk_·live_0123456789abcdefghijABCD› x", "‹rk_·live_0123456789abcdefghij›", "‹whsec_·0123456789abcdefghij›"],
    ),
    row(
        "jwt",
        r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}\.[A-Za-z0-9_-]{8,}",
        &["‹eyJ·hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl_-› x"],
    ),
    row("groq", r"gsk_[A-Za-z0-9]{20,}", &["‹gsk_·0123456789abcdefghijABCD› x"]),
    row("xai", r"xai-[A-Za-z0-9]{20,}", &["‹xai-·0123456789abcdefghijABCD› x"]),
    row("perplexity", r"pplx-[A-Za-z0-9]{20,}", &["‹pplx-·0123456789abcdefghijABCD› x"]),
    row("nvidia", r"nvapi-[A-Za-z0-9_-]{20,}", &["‹nvapi-·0123456789_abcdefghij-ABCD› x"]),
    row("replicate", r"(?-u:\b)r8_[A-Za-z0-9]{20,}", &["‹r8_·0123456789abcdefghijABCD› x"]),
    row("docker", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}", &["‹dckr_pat_·0123456789abcdef-ghij› x"]),
    row("vault", r"hv[sbr]\.[A-Za-z0-9_-]{20,}", &["‹hvs.·0123456789abcdefghijABCD› x"]),
    row("atlassian", r"AT[A-Z]TT3[A-Za-z0-9_=-]{16,}", &["‹ATATT3·xFfGF00123456789_-=ABCD› x"]),
    row("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{16,}", &["‹lin_api_·0123456789abcdefghij› x"]),
    row("shopify", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}", &["‹shpat_·0123456789abcdef0123456789abcdef› x"]),
    row("grafana", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{20,}", &["‹glsa_·0123456789abcdefghij_0123abcd› x"]),
    row("sentry", r"sntry[su]_[A-Za-z0-9_+/=]{20,}", &["‹sntrys_·0123456789abcdefghij_0123abcd› x"]),
    row("supabase", r"sb(?:p|_secret)_[A-Za-z0-9_]{20,}", &["‹sbp_·0123456789abcdef0123456789abcdef› x"]),
    row("tailscale", r"tskey-[a-z]+-[A-Za-z0-9-]{10,}", &["‹tskey-·auth-k0123CNTRL-0123456789abc› x"]),
    row("fly", r"fm[12][ar]?_[A-Za-z0-9+/=]{20,}", &["FlyV1 ‹fm2_·lJPECAAAAAAAAAAAAAAAAAAA==› x"]),
    row(
        "telegram",
        r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}",
        &["bot ‹123456789:·AAabcdefghijklmnopqrstuvwxyz01234567›"],
    ),
    // This row precedes the patterns for quoted values, because a cookie may contain quotes.
    row(
        "header",
        r#""<header>:[ \t]*((?:\\.|[^"\\\r\n])+)|'<header>:[ \t]*([^'\r\n]+)|<header>:[ \t]*(["']?[^\s"'][^\r\n]*)"#,
        &[
            "GET /\nAuthorization: ‹Negotiate abc def›\nHost: x",
            "Cookie: ‹a=\"b c\"; d=e›\r\nHost: x",
            "set-cookie: ‹sid=abc; Path=/; HttpOnly›",
            "x-api-key: ‹some thing›\n",
            "curl -H 'X-API-Key: ‹some thing›' -H \"Authorization: ‹Basic abc›\" https://host/",
        ],
    ),
    row(
        "bearer",
        r"(?i:(?-u:\b)bearer)[ \t]+<random>",
        &["with Bearer ‹abc123.def-456_~+/=› at", "bearer ‹abcdefGhijkl›", "Bearer ‹abcdefghijklmnopqrstuvwxyz›"],
    ),
    row(
        "basic",
        concat!(
            r"(?i:(?-u:\b)basic)[ \t]+([A-Za-z0-9+/]{6,}={1,2}|[A-Za-z0-9+/]{3,}[0-9][A-Za-z0-9+/]{4,}",
            "|[A-Za-z0-9+/]*[a-z0-9][A-Z][A-Za-z0-9+/]*[a-z0-9][A-Z][A-Za-z0-9+/]*)",
        ),
        &["Basic ‹dXNlcjpwYXNz› x", "basic ‹dXNlcjpwYXNzdw==› x"],
    ),
    // A port and a path (`host:8080/a@b`) look like a password with a slash, so the part before the slash must not be a
    // number.
    row(
        "url-password",
        r#"://[^\s/:\["]*:(?:([^\s/"]+)@|([0-9]*[^\s/0-9@"][^\s@"]*)@)"#,
        &[
            "postgres://bob:‹hunter2›@db.host:5432/x",
            "redis://:‹p@ss:w0rd›@cache/0",
            "amqp://u:‹pa/ss›@h/v",
            "https://me@corp.com:‹x›@host/ a@b",
        ],
    ),
    row("url-password", r#"://([^\s/:@\["?#]{16,})@"#, &["git clone https://‹0123456789abcdef0123›@github.com/a/b"]),
    row(
        "signed-url",
        r#"[?&;](?i:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token))=([^\s&"'<>]+)"#,
        &["https://h/?sv=1&sig=‹abc%2Bdef%3D›&se=2", "?X-Amz-Signature=‹0a1b2c›"],
    ),
    row(
        "env",
        r#""[A-Za-z0-9_]*<env>=((?:\\.|[^"\\\r\n])+)"|'[A-Za-z0-9_]*<env>=([^'\r\n]+)'|<env>=<value>"#,
        &[
            "GITHUB_TOKEN=‹abc› make",
            "export DB_PASSWORD=\"‹a b \\\" c›\" && x",
            "API_KEY='‹it is›' MY_SECRET_2=‹x› AWS_SECRET_ACCESS_KEY=‹a/b+c=›\nPATH=/bin",
            "docker run -e \"MY_PASSWD=‹a \\\"b c›\" -e 'GOOGLE_CREDENTIALS=‹{\"a\": 1}›' -e X=1",
            "SMTP_PASS=‹a\\ b› TOKEN=\"‹two\nlines›\" KEY='‹cut off›",
        ],
    ),
    row(
        "env",
        r#"(?:KEY|TOKEN)S=(?:"([^"\n]+)"|'([^'\n]+)'|([0-9]*[A-Za-z_+/=$-][^\s"']*))"#,
        &["API_KEYS=‹a,b› x", "TOKENS='‹a b›'"],
    ),
    row(
        "env",
        r"<env><is>(?:<quoted>|<random>)",
        &["  DEPLOY_KEY: ‹abc1›\n", "\"X_KEY\": \"‹abc›\", 1", "$env:X_KEY = '‹abc›'"],
    ),
    row(
        "env",
        r"(?:set -[A-Za-z]*x[A-Za-z]*|setenv|ENV)[ \t]+[A-Za-z0-9_]*<env>[ \t]+<value>",
        &["set -gx API_TOKEN ‹abc›\necho x", "setenv X_KEY ‹abc›", "ENV DB_PASSWORD ‹abc›\nRUN x"],
    ),
    row(
        "flag",
        r#"(?:^|[\s"'`,\[(])<flag>(?:=<value>|["'],?[ \t]*<quoted>|[ \t]+(?:<quoted>|([^\s"'`<-][^\s"'`]*)))"#,
        &[
            "cli --password ‹hunter› --user x",
            "cli --token=‹abc› y",
            "cli --api-key '‹a b›' y",
            "terraform -token=‹abc›",
            "[\"--client-secret\", \"‹a b›\", \"x\"]",
        ],
    ),
    row(
        "field",
        r#""[A-Za-z0-9_]*<password>=((?:\\.|[^"\\\r\n])+)"|'[A-Za-z0-9_]*<password>=([^'\r\n]+)'|<password><is><value>"#,
        &[
            "{\"password\": \"‹a b \\\" c›\", \"x\": 1}",
            "{\\\"db_password\\\":\\\"‹a b›\\\",\\\"x\\\":1}",
            r#"{\"password\":\"‹it's \\\"a b\\\" c›\",\"x\":1}"#,
            "password: ‹hunter›\nuser: x",
            "passwd = ‹hunter› x",
            "'user_password=‹a b›' x",
            "config['passphrase'] = '‹a b›'",
        ],
    ),
    row("field", r"(?-u:\b)(?i:pwd|pass)=([^\s/~$;&.][^\s;&]*)", &["Server=x;Uid=y;Pwd=‹abc›;Z=1"]),
    row(
        "field",
        r"<named><is><quoted>",
        &[
            "\"access_token\":\"‹abc def›\",",
            "clientSecret = '‹abc›'",
            "apiKey: \"‹abc›\",",
            "\"Authorization\": \"‹x y›\",",
        ],
    ),
    row(
        "field",
        r#"<named>[\\"'`\]]*=<bare>"#,
        &["/cb?access_token=‹abc› x", "AccountKey=‹a/b==› x", "//npm.host/:_auth=‹abc›"],
    ),
    row(
        "field",
        r"<named><is><random>",
        &["token: ‹ab!c1!d›, x", "aws_secret_access_key = ‹abc/d1+e›", "client-key-data: ‹LS0tLS1CRUdJTg==›\n"],
    ),
    row(
        "netrc",
        r"(?-u:\b)(?:machine[ \t]+\S+|default)\s+login\s+\S+\s+password\s+(\S+)",
        &["machine h login u password ‹abc›\n"],
    ),
    row(
        "user-password",
        r#"(?-u:\b)curl(?-u:\b)[^\n]*?[ \t](?:-u|--user|-U|--proxy-user)[ =]?["']?[^\s:"']+:([^\s"']+)"#,
        &["curl -s -u bob:‹hunter2› https://host/", "curl --user 'bob:‹x›' h"],
    ),
    row("sshpass", r"(?-u:\b)sshpass[ \t]+-p[ \t]*<value>", &["sshpass -p ‹hunter› ssh h", "sshpass -p'‹a b›' ssh h"]),
];
