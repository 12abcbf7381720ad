//! The table of secret patterns.

pub(super) struct SecretPattern {
    /// The kind shown in the redaction marker.
    pub kind: &'static str,
    /// The first group that matches is the secret; the rest of the match is kept. If the pattern has no groups, the
    /// whole match is the secret. In a pattern, `<name>` is replaced by the
    /// pattern called `name` in [`super::secret_names`].
    pub pattern: &'static str,
}

const fn row(kind: &'static str, pattern: &'static str) -> SecretPattern {
    SecretPattern { kind, pattern }
}

/// The patterns of all secrets. Patterns of more specific kinds come first and take precedence.
pub(super) const SECRET_PATTERNS: &[SecretPattern] = &[
    // A key without its end line matches up to the end of the text: losing text is better than keeping half a key.
    row(
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    row("private-key", r"(?:[A-Za-z0-9+/=]{16,}(?:\\[rn]|\s)*)+-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"),
    row("private-key", r"Private-Lines: [0-9]+\s+((?:[A-Za-z0-9+/=]{4,}\s*)+)"),
    row("age", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{16,}"),
    row("anthropic", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    row(
        "openai",
        concat!(
            r"(?-u:\b)sk-(?:(?:proj|svcacct|admin|live|test|lf|or|or-v1)-[A-Za-z0-9_-]{12,}",
            "|[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*|[A-Za-z0-9_-]{32,})",
        ),
    ),
    row("google", r"AIza[A-Za-z0-9_-]{30,}"),
    row("google", r"ya29\.[A-Za-z0-9_-]{16,}"),
    row("google", r"GOCSPX-[A-Za-z0-9_-]{16,}"),
    row("github", r"gh[pousr]_[A-Za-z0-9]{16,}"),
    row("github", r"github_pat_[A-Za-z0-9_]{16,}"),
    row("gitlab", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{16,}"),
    row("slack", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}"),
    row("slack", r"xapp-[0-9]-[A-Za-z0-9-]{8,}"),
    row(
        "webhook",
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)/([A-Za-z0-9/_-]+)",
    ),
    row("aws", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    row("npm", r"npm_[A-Za-z0-9]{30,}"),
    row("pypi", r"pypi-(?:[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*|[A-Za-z0-9_-]{50,})"),
    row("huggingface", r"hf_[A-Za-z0-9]{20,}"),
    row("digitalocean", r"do[opr]_v1_[A-Za-z0-9]{16,}"),
    row("sendgrid", r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    row("stripe", r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}"),
    row("jwt", r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}\.[A-Za-z0-9_-]{8,}"),
    row("groq", r"gsk_[A-Za-z0-9]{20,}"),
    row("xai", r"xai-[A-Za-z0-9]{20,}"),
    row("perplexity", r"pplx-[A-Za-z0-9]{20,}"),
    row("nvidia", r"nvapi-[A-Za-z0-9_-]{20,}"),
    row("replicate", r"(?-u:\b)r8_[A-Za-z0-9]{20,}"),
    row("docker", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}"),
    row("vault", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    row("atlassian", r"AT[A-Z]TT3[A-Za-z0-9_=-]{16,}"),
    row("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{16,}"),
    row("shopify", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}"),
    row("grafana", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{20,}"),
    row("sentry", r"sntry[su]_[A-Za-z0-9_+/=]{20,}"),
    row("supabase", r"sb(?:p|_secret)_[A-Za-z0-9_]{20,}"),
    row("tailscale", r"tskey-[a-z]+-[A-Za-z0-9-]{10,}"),
    row("fly", r"fm[12][ar]?_[A-Za-z0-9+/=]{20,}"),
    row("telegram", r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"),
    // This row precedes the patterns for quoted values, because a cookie may contain quotes.
    row(
        "header",
        r#""<header>:[ \t]*((?:\\.|[^"\\\r\n])+)|'<header>:[ \t]*([^'\r\n]+)|<header>:[ \t]*(["']?[^\s"'][^\r\n]*)"#,
    ),
    row("bearer", r"(?i:(?-u:\b)bearer)[ \t]+<random>"),
    row(
        "basic",
        concat!(
            r"(?i:(?-u:\b)basic)[ \t]+([A-Za-z0-9+/]{6,}={1,2}|[A-Za-z0-9+/]{3,}[0-9][A-Za-z0-9+/]{4,}",
            "|[A-Za-z0-9+/]*[a-z0-9][A-Z][A-Za-z0-9+/]*[a-z0-9][A-Z][A-Za-z0-9+/]*)",
        ),
    ),
    // A port and a path (`host:8080/a@b`) look like a password with a slash, so the part before the slash must not be a
    // number.
    row("url-password", r#"://[^\s/:\["]*:(?:([^\s/"]+)@|([0-9]*[^\s/0-9@"][^\s@"]*)@)"#),
    row("url-password", r#"://([^\s/:@\["?#]{16,})@"#),
    row(
        "signed-url",
        r#"[?&;](?i:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token))=([^\s&"'<>]+)"#,
    ),
    row("env", r#""[A-Za-z0-9_]*<env>=((?:\\.|[^"\\\r\n])+)"|'[A-Za-z0-9_]*<env>=([^'\r\n]+)'|<env>=<value>"#),
    row("env", r#"(?:KEY|TOKEN)S=(?:"([^"\n]+)"|'([^'\n]+)'|([0-9]*[A-Za-z_+/=$-][^\s"']*))"#),
    row("env", r"<env><is>(?:<quoted>|<random>)"),
    row("env", r"(?:set -[A-Za-z]*x[A-Za-z]*|setenv|ENV)[ \t]+[A-Za-z0-9_]*<env>[ \t]+<value>"),
    row("flag", r#"(?:^|[\s"'`,\[(])<flag>(?:=<value>|["'],?[ \t]*<quoted>|[ \t]+(?:<quoted>|([^\s"'`<-][^\s"'`]*)))"#),
    row(
        "field",
        r#""[A-Za-z0-9_]*<password>=((?:\\.|[^"\\\r\n])+)"|'[A-Za-z0-9_]*<password>=([^'\r\n]+)'|<password><is><value>"#,
    ),
    row("field", r"(?-u:\b)(?i:pwd|pass)=([^\s/~$;&.][^\s;&]*)"),
    row("field", r"<named><is><quoted>"),
    row("field", r#"<named>[\\"'`\]]*=<bare>"#),
    row("field", r"<named><is><random>"),
    row("netrc", r"(?-u:\b)(?:machine[ \t]+\S+|default)\s+login\s+\S+\s+password\s+(\S+)"),
    row(
        "user-password",
        r#"(?-u:\b)curl(?-u:\b)[^\n]*?[ \t](?:-u|--user|-U|--proxy-user)[ =]?["']?[^\s:"']+:([^\s"']+)"#,
    ),
    row("sshpass", r"(?-u:\b)sshpass[ \t]+-p[ \t]*<value>"),
    // `-pVALUE` contains the password. With `-p` alone, the program asks the user for the password. In other programs,
    // `-p` has other meanings.
    row(
        "database-password",
        r#"(?-u:\b)(?:mysql|mariadb)(?:admin|dump|import|show|check|binlog|pump|sh)?(?-u:\b)[^\n|;&]*?[ \t]-p(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'`,.;:)][^\s"'`]*))"#,
    ),
    row("twilio", r"(?-u:\b)SK[0-9a-f]{32}(?-u:\b)"),
    // The token itself looks like any other hash, so the pattern also requires the name `twilio` before it.
    row("twilio", r"(?i:twilio)[^\n]{0,60}?(?-u:\b)([0-9a-f]{32})(?-u:\b)"),
    // A rule in `secret_names` excludes ordinary words: `the password is wrong`.
    row(
        "prose",
        concat!(
            r"(?-u:\b)(?i:pass(?:word|wd|phrase|code))(?-u:\b)[^\n.:;=?!]{0,40}?[ \t](?i:is|was)",
            r#"(?:[ \t]+(?i:set[ \t]+to|now|still))?:?[ \t]+(?:<quoted>|([^\s"'`]*[^\s"'`.,;:!?)]))"#,
        ),
    ),
    row("prose", r"(?-u:\b)(?i:api[ _-]?key|secret|token)[ \t]+(?i:is|was):?[ \t]+(?:<quoted>|<random>)"),
];
