//! Finds the part of a secret that can be hidden without hiding shell code.
//!
//! A dialog must show all code that an approval would run. A pattern for a value does not know the syntax of a shell,
//! so its match may contain code (`API_TOKEN=$(curl … | sh)`) or the name of a command (`sudo --askpass rm`).

use std::ops::Range;

/// Characters that can start, join or redirect commands. Such a character and all text after it stay visible.
const CODE_CHARACTERS: [char; 11] = ['$', '(', ')', ';', '|', '&', '<', '>', '`', '\n', '\r'];

/// Words that may stand before the secret in the value of a header, as in `Authorization: Bearer …`.
const SCHEMES: [&str; 5] = ["basic", "bearer", "digest", "negotiate", "token"];

/// If a blank separates a value from its name, the value may be a command. Such a value is hidden only if it has at
/// least this length.
const MIN_SEPARATE_LEN: usize = 12;

/// The minimum length of a word that counts as part of a private key. A shorter word may be the name of a file.
const MIN_KEY_WORD_LEN: usize = 40;

/// The parts of a match that contain only literal text.
pub(super) fn literal_parts(text: &str, secret: Range<usize>, kind: &str) -> Vec<Range<usize>> {
    if kind == "private-key" {
        return key_words(text, secret);
    }
    let words = first_words(&text[secret.clone()]);
    let part = secret.start..secret.start + words;
    let hidden = &text[part.clone()];
    // The patterns of all other kinds contain the name of a program, a file or a header, so their value can only be an
    // argument and not a command.
    let can_be_command = matches!(kind, "env" | "flag" | "field")
        && (is_path(hidden) || (is_separate(&text[..secret.start]) && !is_random(hidden)));
    if hidden.is_empty() || can_be_command { Vec::new() } else { vec![part] }
}

/// The length of the first word, up to the first of `CODE_CHARACTERS`. A header scheme (`Bearer`) and the next word
/// count as one word.
fn first_words(secret: &str) -> usize {
    let literal = secret.find(CODE_CHARACTERS).unwrap_or(secret.len());
    let literal = &secret[..literal];
    let first = literal.find(char::is_whitespace).unwrap_or(literal.len());
    if !SCHEMES.iter().any(|scheme| literal[..first].eq_ignore_ascii_case(scheme)) {
        return first;
    }
    let second = first + literal[first..].find(|c: char| !c.is_whitespace()).unwrap_or(literal.len() - first);
    second + literal[second..].find(char::is_whitespace).unwrap_or(literal.len() - second)
}

/// Whether a shell would read the value as a separate word, as in `--askpass rm` or `PASSWORD= rm`. False for `password
/// = x` and `password: x`, because these are not shell syntax.
fn is_separate(before: &str) -> bool {
    let before = before.trim_end_matches(['"', '\'', '\\']);
    let named = before.trim_end();
    named.len() < before.len() && !named.ends_with(':') && !named.trim_end_matches(['=', '>', ':']).ends_with(' ')
}

/// Whether the value may name a program, as in `RESTIC_PASSWORD_COMMAND=./fetch`.
fn is_path(value: &str) -> bool {
    value.starts_with(['/', '.', '~'])
}

fn is_random(word: &str) -> bool {
    let has = |fits: fn(char) -> bool| word.chars().any(fits);
    word.len() >= MIN_SEPARATE_LEN
        && has(|c| c.is_ascii_digit())
        && has(|c| c.is_alphabetic())
        && !has(|c| c == '/' || c == '.')
}

/// The words of a private key. A match may extend to the end of the text, so words that do not look like a key stay
/// visible.
fn key_words(text: &str, secret: Range<usize>) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let is_key = |word: &str| {
        let has = |fits: fn(&u8) -> bool| word.bytes().any(|byte| fits(&byte));
        word.len() >= MIN_KEY_WORD_LEN
            && !word.starts_with('/')
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_uppercase)
    };
    let mut words = Vec::new();
    let mut from = secret.start;
    for word in text[secret].split(|c| !is_part(c)) {
        // A literal `\n` separates the lines of a key inside a string.
        let skipped = usize::from(from > 0 && word.starts_with(['n', 'r']) && text[..from].ends_with('\\'));
        if is_key(&word[skipped..]) {
            words.push(from + skipped..from + word.len());
        }
        from += word.len();
        from += text[from..].chars().next().map_or(0, char::len_utf8);
    }
    words
}
