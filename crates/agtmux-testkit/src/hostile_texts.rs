//! Hostile texts. They contain newlines, commands, tmux formats and escape sequences.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// No text contains a slash or NUL, so each text can be a file name. A program that executes a text by mistake creates
/// the file `$MARK`.
pub const HOSTILE_TEXTS: [&[u8]; 25] = [
    b"new\nline",
    b"a\n%9 FAKE\n2:%93",
    b"tab\there",
    b"carriage\rreturn",
    b"not \xff\xfe\x80 valid",
    b"cut \xe6\x97",
    b"#(touch $MARK)",
    b"#{E:#(touch $MARK)}",
    b"#{session_name} #S #[fg=red]",
    b"$(touch $MARK)",
    b"`touch $MARK`",
    b"; touch $MARK ;",
    b"' ; touch $MARK ; '",
    b"\" ; run-shell 'touch $MARK' ; \"",
    "right to left \u{202e}evil\u{2066}".as_bytes(),
    "nothing\u{200b}to\u{feff}see".as_bytes(),
    b"clear \x1b[2J\x1b[31mred",
    b"clip \x1b]52;c;aGVsbG8=\x07 board",
    "eight bits \u{9b}2J\u{9d}0;x\u{9c}".as_bytes(),
    b"bell \x07 backspace \x08 delete \x7f",
    b"-x",
    b"dots.and:colons",
    b"%9",
    b"{\"json\":[1]}<script>",
    "日本語 ✳ ümläut".as_bytes(),
];

/// Escapes a `;` at the end of the text, because tmux would read it as a command separator.
pub fn tmux_argument(text: &[u8]) -> OsString {
    match text.strip_suffix(b";") {
        Some(rest) => OsString::from_vec([rest, b"\\;"].concat()),
        None => OsStr::from_bytes(text).to_owned(),
    }
}

/// Like [`tmux_argument`], but also escapes `#`. Use this for arguments in which tmux expands formats.
pub fn tmux_argument_escaped(text: &[u8]) -> OsString {
    let doubled: Vec<u8> = text.iter().flat_map(|b| if *b == b'#' { vec![b'#'; 2] } else { vec![*b] }).collect();
    tmux_argument(&doubled)
}

/// Checks that the output contains no control characters. Newlines are allowed, and so are colours if `on_terminal`.
#[track_caller]
pub fn assert_terminal_safe(printed: &[u8], on_terminal: bool) {
    let text = std::str::from_utf8(printed).unwrap_or_else(|_| panic!("not UTF-8: {}", printed.escape_ascii()));
    let plain = if on_terminal { without_colours(text).replace("\r\n", "\n") } else { text.to_owned() };
    let bad = plain.chars().find(|c| *c != '\n' && acts_on_terminal(*c));
    assert_eq!(bad, None, "in {plain:?}");
}

fn acts_on_terminal(c: char) -> bool {
    let invisible =
        ['\u{200b}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2060}'..='\u{206f}', '\u{feff}'..='\u{feff}'];
    c.is_control() || invisible.iter().any(|range| range.contains(&c))
}

/// Removes `ESC [ digits m`, the only sequences that agtmux prints.
fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match rest.strip_prefix('m') {
            Some(after) => out.push_str(after),
            None => out.push_str(&format!("\x1b[{piece}")),
        }
    }
    out
}
