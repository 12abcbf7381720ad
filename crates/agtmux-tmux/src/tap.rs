//! Opens a pipe from a pane's output to a program, if the pane has no pipe yet.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::command::{Framing, TmuxCommand};

const PIPE_IN_USE: char = 't';

/// Opens a pipe if the pane has none. tmux checks for a pipe and opens the new one in the same command, so that agtmux
/// never replaces a pipe of the user.
pub(crate) fn open_pipe(framing: &Framing, pane: u32, argv: &[OsString]) -> Vec<TmuxCommand> {
    let target = format!("%{pane}");
    let taken = format!("display-message -p {}", framing.record(PIPE_IN_USE, &[]));
    // With `-I`, tmux notices the end of the program at once, and not only when the pane writes again. The program
    // types nothing into the pane, because its output is discarded.
    let open = [b"pipe-pane -IO -t ", target.as_bytes(), b" ", &quoted(&escape_formats(&exec_line(argv)))].concat();
    let choice = TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&target).arg("#{pane_pipe}");
    vec![choice.arg(taken).arg(OsString::from_vec(open))]
}

pub(crate) fn pipe_was_in_use(framing: &Framing, answer: &[u8]) -> bool {
    !framing.records(PIPE_IN_USE, answer).is_empty()
}

/// A line for `sh` that executes the program and discards its output.
pub(crate) fn exec_line(argv: &[OsString]) -> Vec<u8> {
    let words: Vec<Vec<u8>> = argv.iter().map(|word| quoted(word.as_bytes())).collect();
    [b"exec ".as_slice(), &words.join(&b' '), b" >/dev/null"].concat()
}

/// Quotes a word for `sh` and tmux.
pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = word.split(|byte| *byte == b'\'').collect();
    [b"'", &parts.join(br"'\''".as_slice())[..], b"'"].concat()
}

/// Doubles `#` and `%`, because tmux expands formats (`#`) and time formats (`%`) in the line.
pub(crate) fn escape_formats(line: &[u8]) -> Vec<u8> {
    line.iter().flat_map(|byte| if matches!(byte, b'#' | b'%') { vec![*byte; 2] } else { vec![*byte] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_and_formats_escaped() {
        let line = exec_line(&["/a b/it's".into(), "$(x)".into()]);
        assert_eq!(String::from_utf8_lossy(&line), r"exec '/a b/it'\''s' '$(x)' >/dev/null");
        assert_eq!(escape_formats(b"50% #{x}"), b"50%% ##{x}");
    }
}
