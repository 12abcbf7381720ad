use serde::Deserialize;

const SESSION: &str = "{session}";

/// The command that resumes an ended session of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResumeTemplate {
    /// The words of the command line; `{session}` stands for the session id.
    command: Vec<String>,
}

impl ResumeTemplate {
    /// The command line that resumes this session. None if the session id is not a plain word: agtmux types the command
    /// into a shell, which may interpret other characters.
    pub fn command_line(&self, session: &str) -> Option<String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let is_valid_length = !session.is_empty() && session.len() <= 128 && !session.starts_with('-');
        (is_valid_length && session.bytes().all(plain)).then(|| self.command.join(" ").replace(SESSION, session))
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
        ResumeTemplate { command: words.iter().map(|word| (*word).to_owned()).collect() }
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
