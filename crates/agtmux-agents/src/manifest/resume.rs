use agtmux_core::redact;
use serde::Deserialize;

/// The maximum length of an option's value, and the maximum number of arguments, that a resumed agent gets again.
const MAX_VALUE_BYTES: usize = 256;
const MAX_KEPT_WORDS: usize = 40;

/// Whether it is safe to store the value of an option and to type it, in quotes, into a shell. The value must be short
/// and not empty, must not look like an option, inline JSON or a secret, and must not contain control characters.
fn is_harmless(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= MAX_VALUE_BYTES
        && !value.starts_with(['-', '{', '['])
        && !value.chars().any(char::is_control)
        && redact::text(value) == value
}

const SESSION: &str = "{session}";

/// The command that resumes an ended session of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResumeTemplate {
    /// The words of the command line; `{session}` stands for the session id.
    command: Vec<String>,
    /// Options that take no value. A resumed agent gets these options again if it had them before.
    #[serde(default)]
    flags: Vec<String>,
    /// Options that take a value. A resumed agent gets these options and their values again.
    #[serde(default)]
    options: Vec<String>,
}

impl ResumeTemplate {
    /// The command line that resumes this session. None if the session id is not a plain word: agtmux types the command
    /// into a shell, which may interpret other characters.
    pub fn command_line(&self, session: &str) -> Option<String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let is_valid_length = !session.is_empty() && session.len() <= 128 && !session.starts_with('-');
        (is_valid_length && session.bytes().all(plain)).then(|| self.command.join(" ").replace(SESSION, session))
    }

    /// The arguments that a resumed agent gets again: only those in `flags` and `options`. Any other argument may be a
    /// prompt, a secret, or the choice of another session.
    pub(crate) fn kept_arguments(&self, arguments: &[Vec<u8>]) -> Vec<String> {
        let mut kept = Vec::new();
        let mut words = arguments.iter().map(|word| std::str::from_utf8(word).unwrap_or_default());
        while let Some(word) = words.next().filter(|word| *word != "--") {
            let (name, inline) = match word.split_once('=').filter(|(name, _)| name.starts_with("--")) {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let is_listed = |list: &[String]| list.iter().any(|listed| listed == name);
            if inline.is_none() && is_listed(&self.flags) {
                kept.push(name.to_owned());
            } else if is_listed(&self.options)
                && let Some(value) = inline.or_else(|| words.next()).filter(|value| is_harmless(value))
            {
                kept.extend([name.to_owned(), value.to_owned()]);
            }
        }
        kept.truncate(MAX_KEPT_WORDS);
        kept
    }

    /// Checks that no word needs quotes in any shell, and that exactly one word contains `{session}`.
    pub(super) fn problem(&self) -> Option<String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:@+".contains(&b);
        let is_plain = |word: &String| {
            let rest = word.replacen(SESSION, "", 1);
            !word.is_empty() && rest.bytes().all(plain)
        };
        let program = self.command.first().is_some_and(|word| !word.contains(SESSION) && !word.starts_with('-'));
        let session_count: usize = self.command.iter().map(|word| word.matches(SESSION).count()).sum();
        let good = program && session_count == 1 && self.command.iter().all(is_plain);
        let is_option = |word: &String| word.starts_with('-') && word.len() > 1 && word.bytes().all(plain);
        if !self.flags.iter().chain(&self.options).all(is_option) {
            return Some("'resume.flags' and 'resume.options' must list options, for example [\"--model\"]".into());
        }
        (!good).then(|| {
            "'resume.command' must be a program and plain words, one of them with '{session}', for example [\"x\", \"--resume\", \"{session}\"]"
                .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resume(words: &[&str]) -> ResumeTemplate {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        ResumeTemplate { command, flags: vec!["--yolo".into()], options: vec!["--model".into(), "-m".into()] }
    }

    #[test]
    fn listed_options_are_kept_and_everything_else_is_left_out() {
        let kept = |words: &[&str]| {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            resume(&["x", "{session}"]).kept_arguments(&words)
        };
        assert_eq!(kept(&["--model", "opus", "fix the bug", "--yolo"]), ["--model", "opus", "--yolo"]);
        assert_eq!(kept(&["--model=it's; rm -r /", "-m", "a b"]), ["--model", "it's; rm -r /", "-m", "a b"]);
        assert_eq!(kept(&["--resume", "abc", "-c", "--continue", "--other=1"]), [""; 0]);
        assert_eq!(kept(&["say", "--", "--yolo"]), [""; 0], "words after -- are a prompt");
        for hostile in ["", "-x", "a\nb", "a\u{1b}[A", "{\"key\": 1}", "sk-ant-api03-0123456789abcdefghijklmnop"] {
            assert_eq!(kept(&["--model", hostile, "--yolo"]), ["--yolo"], "{hostile:?}");
        }
        assert_eq!(kept(&["--yolo=1", "--model"]), [""; 0]);
    }

    #[test]
    fn only_plain_words_and_plain_ids_are_accepted() {
        let claude = resume(&["claude", "--resume", "{session}"]);
        assert_eq!(claude.problem(), None);
        assert_eq!(claude.command_line("ab-1_2").as_deref(), Some("claude --resume ab-1_2"));
        for bad in ["", "-x", "a b", "a;b", "$(x)", "a'b", "ä", "a\nb", &"a".repeat(129)] {
            assert_eq!(claude.command_line(bad), None, "{bad}");
        }
        for bad in [
            &[][..],
            &["x"],
            &["x", "a b{session}"],
            &["{session}"],
            &["x", "{session}", "{session}"],
            &["x;y", "{session}"],
        ] {
            assert!(resume(bad).problem().is_some(), "{bad:?}");
        }
    }
}
