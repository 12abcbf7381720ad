//! The texts to send: small and large, plain and awkward, all different.

/// How the agent is expected to handle the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// As a prompt: the model receives it.
    Prompt,
    /// Many agents run text after `!` as a shell command; the test checks the screen.
    Bang,
    /// Many agents run text after `/` as their own command; the test checks the screen.
    Slash,
}

#[derive(Debug, Clone)]
pub(crate) struct SampleText {
    pub(crate) text: String,
    pub(crate) kind: TextKind,
}

/// The number of kinds. Later texts repeat the kinds with other sizes.
pub(crate) const SAMPLE_KINDS: usize = 15;

/// The text with this number.
pub(crate) fn sample(number: usize) -> SampleText {
    let turn = number / SAMPLE_KINDS;
    let mut kind = TextKind::Prompt;
    let text = match number % SAMPLE_KINDS {
        0 => format!("q{number:03}?"),
        1 => format!("please look at file number {number} and tell me in one sentence what it is for"),
        2 => format!("a statement of number {number} that ends like one in C;"),
        3 => format!("number {number} ends with the sign that escapes the next one \\"),
        4 => format!(
            "{number} 日本語の文章を読んでください。\n絵文字 🦀👩‍👩‍👧‍👦🇯🇵 と e\u{301}a\u{308}o\u{302} n\u{303} 한국어\nдобрый день"
        ),
        5 => format!("--flag={number} -x - begins with a dash, as options do"),
        6 => numbered_lines(number, 12 + turn, 60),
        7 => {
            kind = TextKind::Bang;
            format!("!echo bang$((1000+{number}))")
        }
        8 => {
            kind = TextKind::Slash;
            format!("/nosuchcommand{number} with words behind it")
        }
        9 => numbered_lines(number, 400 - turn * 7, 47),
        10 => long_line(number, 3000 + turn * 137),
        11 => format!("what? is number {number}? why?? who? ??? and (which?) how?"),
        12 => numbered_lines(number, 60 + turn * 5, 66),
        13 => long_line(number, 20_000 - turn * 311),
        _ => {
            format!("number {number}\n\n  an indented line\n    and more:  two  blanks\n\n\nthe end of number {number}")
        }
    };
    SampleText { text, kind }
}

/// Whether the model received the text unchanged, except for the changes that the agent itself makes. Pasting with tmux
/// alone has shown which changes these are.
pub(crate) fn arrived_unchanged(agent: &str, part: &str, text: &str) -> bool {
    match agent {
        // Claude Code composes combining characters.
        "claude" => part == COMPOSED.iter().fold(text.to_owned(), |text, (loose, one)| text.replace(loose, one)),
        // Copilot puts the current time in front of the text.
        "copilot" => part.split_once("</current_datetime>").is_some_and(|(_, rest)| rest.trim() == text),
        // opencode adds a blank after a collapsed paste.
        "opencode" => part == text || part.strip_suffix(' ') == Some(text),
        // aider appends a reminder of its rules.
        "aider" => part.strip_prefix(text).is_some_and(|rest| rest.starts_with("\n\n# *SEARCH/REPLACE block* Rules:")),
        _ => part == text,
    }
}

const COMPOSED: [(&str, &str); 4] = [("e\u{301}", "é"), ("a\u{308}", "ä"), ("o\u{302}", "ô"), ("n\u{303}", "ñ")];

/// `count` lines of about `length` bytes.
fn numbered_lines(number: usize, count: usize, length: usize) -> String {
    let line = |n: usize| {
        let mut line = format!("line {n} of text {number}:");
        let mut word = n * 31 + number;
        while line.len() < length {
            word = (word * 7919 + 13) % 9973;
            line += &format!(" w{word}");
        }
        line.truncate(length);
        line.trim_end().to_owned()
    };
    (1..=count).map(line).collect::<Vec<_>>().join("\n")
}

/// One line of about `length` bytes.
fn long_line(number: usize, length: usize) -> String {
    let mut text = format!("text {number} in one line:");
    let mut word = number + 17;
    while text.len() < length {
        word = (word * 7919 + 13) % 99_991;
        text += &format!(" v{word}");
    }
    text.truncate(length.max(1));
    text.trim_end().to_owned() + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sample_texts_differ() {
        let all: std::collections::HashSet<String> = (0..400).map(|number| sample(number).text).collect();
        assert_eq!(all.len(), 400);
    }

    #[test]
    fn sample_texts_have_the_documented_sizes() {
        let sizes: Vec<usize> = (0..SAMPLE_KINDS).map(|number| sample(number).text.len()).collect();
        assert_eq!(sizes.iter().min(), Some(&5));
        assert!(sizes.iter().max().is_some_and(|most| (20_000..20_200).contains(most)), "{sizes:?}");
        assert_eq!(sample(9).text.lines().count(), 400);
    }
}
