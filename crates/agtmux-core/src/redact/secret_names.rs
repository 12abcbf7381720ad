//! Names of secrets, for patterns that recognise a secret by its name.

use std::sync::LazyLock;

use regex::Regex;

/// Shared parts of patterns. A pattern uses a part as `<name>`; a part may use the parts above it.
const PARTS: &[(&str, &str)] = &[
    ("password", r"(?i:pass(?:word|wd|phrase|code)[a-z0-9_.-]*|[a-z0-9][_-]pass)"),
    // `max_tokens`, `token_count` and `sort_key` are not secrets, so this part lists the names of secret keys.
    (
        "key",
        concat!(
            "(?i:(?:api|app|access|account|admin|auth|client|consumer|deploy|encryption|hmac|jwt|license|master|private",
            "|role|root|secret|service|shared|signing|ssh|storage|subscription|webhook)",
            "[_. -]?key(?:[_. -]?(?:id|data|value|pem))?)",
        ),
    ),
    ("named", r"(?i:token|secret[a-z0-9_.-]*|credential[a-z0-9_.-]*|(?-u:\b)_auth|authorization|cookies?|<key>)"),
    (
        "env",
        r"(?:(?:KEY|TOKEN)(?:_[A-Z0-9_]*|[0-9]+)?|(?:SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)[A-Z0-9_]*|_PASS|_AUTH)",
    ),
    (
        "header",
        concat!(
            "(?i:(?:proxy-)?authorization|(?:set-)?cookie2?|private-token|api-key",
            "|x-[a-z0-9-]*(?:key|token|secret|auth)[a-z0-9-]*)",
        ),
    ),
    ("flag", r"(?i:-{1,2}[a-z0-9._-]*(?:pass(?:word|wd|phrase|code)?|token|secret|bearer|credentials?|<key>))"),
    // The separator between name and value, including the quotes of JSON and of JSON inside JSON.
    ("is", r#"[\\"'`\]]*[ \t]*(?:=>|:=|={1,3}|:)[ \t]*"#),
    // A value in the escaped quotes of JSON inside JSON. An escaped quote inside such a value has three backslashes.
    (
        "escaped",
        concat!(
            r#"\\"((?:[^"\\]|\\{3}"|\\+[^"\\])+)|\\{2,}"((?:[^"\\]|\\+[^"\\])+)"#,
            r#"|\\'((?:[^'\\]|\\{3}'|\\+[^'\\])+)|\\{2,}'((?:[^'\\]|\\+[^'\\])+)"#,
        ),
    ),
    // A quoted value without a closing quote ends at the end of its line.
    ("quoted", r#"(?:<escaped>|"((?:\\(?s:.)|[^"\\])+)"|"((?:\\.|[^"\\\n])+)|'([^']+)'|'([^'\n]+)|`([^`]+)`)"#),
    ("word", r#"(?:\\.|[^\s"'`\\])(?:\\.|[^\s"'`\\]|["'][a-zA-Z0-9$])*"#),
    // A value may be a chain of assignments: `password = old = hunter2`.
    ("bare", r#"(<word>(?:[ \t]+=+[ \t]*["'`]?<word>)*)"#),
    ("value", "(?:<quoted>|<bare>)"),
    // A value unlike prose: with a digit, with mixed case inside a word, or very long.
    (
        "random",
        concat!(
            r#"((?:[^\s0-9"'`<({\[]*[0-9]|[a-zA-Z._~+/=-]*[a-z][A-Z]|[a-zA-Z._~+/=-]{24,})"#,
            r#"[^\s"'`,;)}\]]*)"#,
        ),
    ),
];

/// Replaces each `<name>` in a pattern with the part of this name.
pub(super) fn expand(pattern: &str) -> String {
    // The parts are replaced in reverse order, because a part may only use the parts above it.
    let parts = PARTS.iter().rev();
    parts.fold(pattern.to_owned(), |pattern, (name, part)| pattern.replace(&format!("<{name}>"), part))
}

/// Whether a JSON field of this name always holds a secret.
pub(super) fn is_secret(name: &str) -> bool {
    SECRET.is_match(name)
}

/// Whether a field of this name may hold several secrets. Numbers in such a field are counts and are not redacted.
pub(super) fn may_name_several_secrets(name: &str) -> bool {
    MANY.is_match(name)
}

/// Whether this argument is an option, such as `--token`, that is followed by a secret as the next argument.
pub(super) fn is_secret_flag(argument: &str) -> bool {
    FLAG.is_match(argument)
}

/// The name in `NAME=value`.
pub(super) fn variable_name(variable: &str) -> Option<&str> {
    let (name, _) = variable.split_once('=')?;
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && name.starts_with(|c: char| !c.is_ascii_digit())).then_some(name)
}

/// Ordinary words that may follow `the password is` in prose. They are not passwords.
const ORDINARY_WORDS: &[&str] = &[
    "a",
    "about",
    "accepted",
    "again",
    "all",
    "already",
    "also",
    "always",
    "an",
    "and",
    "as",
    "asked",
    "at",
    "bad",
    "being",
    "blank",
    "both",
    "by",
    "case",
    "case-sensitive",
    "correct",
    "different",
    "either",
    "empty",
    "fine",
    "for",
    "from",
    "good",
    "here",
    "hidden",
    "how",
    "if",
    "in",
    "incorrect",
    "invalid",
    "it",
    "kept",
    "known",
    "likely",
    "long",
    "missing",
    "my",
    "needed",
    "never",
    "no",
    "none",
    "not",
    "null",
    "ok",
    "okay",
    "old",
    "on",
    "one",
    "only",
    "optional",
    "or",
    "out",
    "over",
    "part",
    "private",
    "read",
    "right",
    "safe",
    "same",
    "secret",
    "secure",
    "sent",
    "set",
    "shared",
    "short",
    "shown",
    "strong",
    "that",
    "the",
    "there",
    "this",
    "to",
    "too",
    "under",
    "undefined",
    "unknown",
    "unset",
    "used",
    "valid",
    "visible",
    "weak",
    "what",
    "when",
    "where",
    "with",
    "without",
    "wrong",
    "yours",
];

/// Whether this is a word of prose and not a password.
pub(super) fn is_ordinary_word(word: &str) -> bool {
    let word = word.to_lowercase();
    let has_ending = |ending: &str| word.len() > ending.len() + 2 && word.ends_with(ending);
    let is_alphabetic = word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    is_alphabetic && (ORDINARY_WORDS.contains(&word.as_str()) || ["ed", "ing", "ly"].into_iter().any(has_ending))
}

static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"^(?:[\w .$@:/-]*(?:<password>|<named>|<header>|(?i:cookies|jwt|bearer))|(?i:_?auth|basic_?auth|pass)|\w*<env>)$",
    )
});
static MANY: LazyLock<Regex> = LazyLock::new(|| compile(r"^(?:[\w .$@:/-]*(?i:token|<key>)(?i:s)|\w*_KEYS)$"));
static FLAG: LazyLock<Regex> = LazyLock::new(|| compile("^<flag>$"));

pub(super) fn prepare() {
    for pattern in [&SECRET, &MANY, &FLAG] {
        LazyLock::force(pattern);
    }
}

fn compile(pattern: &str) -> Regex {
    Regex::new(&expand(pattern)).expect("a test compiles every pattern")
}
