//! Captures several panes in one tmux call.

use crate::command::{Framing, TmuxCommand};
use crate::listing::{parse_id, parse_number};

/// The content of one pane. Texts are bytes, because their encoding is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The pid of the server that answered. Another server can have panes with the same ids.
    pub server_pid: u32,
    pub pane: u32,
    pub pane_pid: u32,
    /// Whether the alternate screen is active. In this mode, the program draws the whole screen, and tmux keeps no
    /// history.
    pub full_screen: bool,
    pub title: Vec<u8>,
    pub screen: Vec<u8>,
}

/// The screen of one pane, with its size and its cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneScreenCapture {
    /// The pid of the server that answered.
    pub server_pid: u32,
    pub pane_pid: u32,
    pub full_screen: bool,
    pub width: u32,
    pub height: u32,
    /// The column and the row of the cursor. `None` if the program hides the cursor.
    pub cursor: Option<(u32, u32)>,
    pub title: Vec<u8>,
    pub screen: Vec<u8>,
}

const SCREEN_FIELDS: &str =
    "pid pane_id pane_pid alternate_on pane_width pane_height cursor_flag cursor_x cursor_y pane_title";

const FIELDS: &str = "pid pane_id pane_pid alternate_on pane_title";

/// The maximum size of one capture. It is larger than any screen, and enough for ten thousand lines of history.
const MAX_SCREEN_BYTES: usize = 8 << 20;

/// The commands that capture these panes. If a pane is gone, tmux stops there: it prints only the panes before that
/// one.
pub(crate) fn capture_commands(framing: &Framing, panes: &[u32]) -> Vec<TmuxCommand> {
    let one = |pane: &u32| {
        // If the pane is in copy mode, this command still captures the program's own screen. `-e` adds colours, which
        // distinguish hints from typed text.
        let capture = TmuxCommand::new("capture-pane").arg("-p").arg("-e").arg("-t").arg(format!("%{pane}"));
        framing.section(*pane, FIELDS, capture)
    };
    panes.iter().flat_map(one).collect()
}

/// The commands that capture the screen of one pane and at most `lines` lines of its history. Rows that belong to one
/// wrapped line are joined.
pub(crate) fn history_commands(framing: &Framing, pane: u32, lines: u32, colours: bool) -> Vec<TmuxCommand> {
    let capture = TmuxCommand::new("capture-pane").arg("-p").arg("-J").arg("-S").arg(format!("-{lines}"));
    let capture = if colours { capture.arg("-e") } else { capture };
    framing.section(pane, FIELDS, capture.arg("-t").arg(format!("%{pane}"))).to_vec()
}

/// The commands that capture the screen of one pane with its colours, its size and its cursor.
pub(crate) fn screen_commands(framing: &Framing, pane: u32) -> Vec<TmuxCommand> {
    // Without `-N`, tmux drops coloured spaces at the end of a row.
    let capture = TmuxCommand::new("capture-pane").arg("-p").arg("-e").arg("-N").arg("-t").arg(format!("%{pane}"));
    framing.section(pane, SCREEN_FIELDS, capture).to_vec()
}

/// Parses the output of [`screen_commands`]. `None` if it is incomplete or of another pane.
pub(crate) fn parse_screen(framing: &Framing, pane: u32, answer: &[u8]) -> Option<PaneScreenCapture> {
    let (fields, body) = framing.sections(answer).next()?;
    let [server_pid, id, pane_pid, alternate, width, height, shown, column, row, title] = fields[..] else {
        return None;
    };
    let cursor = parse_number(column).zip(parse_number(row)).filter(|_| shown != b"0");
    Some(PaneScreenCapture {
        server_pid: parse_number(server_pid)?,
        pane_pid: parse_number(pane_pid).filter(|_| parse_id(b'%', id) == Some(pane))?,
        full_screen: alternate == b"1",
        width: parse_number(width)?,
        height: parse_number(height)?,
        cursor,
        title: title[..title.len().min(4096)].to_vec(),
        screen: body[..body.len().min(MAX_SCREEN_BYTES)].to_vec(),
    })
}

/// Parses the captures in the output of tmux. An incomplete capture is skipped.
pub(crate) fn parse(framing: &Framing, answer: &[u8]) -> Vec<Capture> {
    framing.sections(answer).filter_map(|(fields, body)| parse_section(&fields, body)).collect()
}

fn parse_section(fields: &[&[u8]], body: &[u8]) -> Option<Capture> {
    let &[server_pid, pane, pane_pid, alternate, title] = fields else { return None };
    Some(Capture {
        server_pid: parse_number(server_pid)?,
        pane: parse_id(b'%', pane)?,
        pane_pid: parse_number(pane_pid)?,
        full_screen: alternate == b"1",
        title: title[..title.len().min(4096)].to_vec(),
        screen: body[..body.len().min(MAX_SCREEN_BYTES)].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{SECTION_END, SECTION_HEAD};
    use proptest::prelude::*;

    fn answer(framing: &Framing, pane: &str, title: &str, screen: &str) -> String {
        let head = framing.record(SECTION_HEAD, &["9", pane, "42", "0", title]);
        format!("{head}\n{screen}\n{}\n", framing.record(SECTION_END, &[]))
    }

    #[test]
    fn captures_of_several_panes_are_separated() {
        let framing = Framing::fresh();
        let text = answer(&framing, "%1", "one", "a\nb") + &answer(&framing, "%2", "two", "");
        let captures = parse(&framing, text.as_bytes());
        let seen: Vec<_> = captures.iter().map(|c| (c.pane, c.title.as_slice(), c.screen.as_slice())).collect();
        assert_eq!(seen, [(1, &b"one"[..], &b"a\nb\n"[..]), (2, b"two", b"\n")]);
    }

    #[test]
    fn an_incomplete_capture_is_ignored() {
        let framing = Framing::fresh();
        let whole = answer(&framing, "%1", "one", "a");
        let text = whole.clone() + &framing.record(SECTION_HEAD, &["9", "%2", "43", "0", "two"]) + "\nhalf a screen";
        assert_eq!(parse(&framing, text.as_bytes()), parse(&framing, whole.as_bytes()));
    }

    #[test]
    fn a_screen_has_its_size_and_its_cursor() {
        let framing = Framing::fresh();
        let screen = |shown: &str| {
            let head = framing.record(SECTION_HEAD, &["9", "%1", "42", "1", "80", "2", shown, "3", "1", "t"]);
            format!("{head}\na\nb\n{}\n", framing.record(SECTION_END, &[]))
        };
        let shown = parse_screen(&framing, 1, screen("1").as_bytes()).expect("complete");
        assert_eq!((shown.width, shown.height, shown.cursor, shown.full_screen), (80, 2, Some((3, 1)), true));
        assert_eq!(shown.screen, b"a\nb\n");
        assert_eq!(parse_screen(&framing, 1, screen("0").as_bytes()).and_then(|hidden| hidden.cursor), None);
        assert_eq!(parse_screen(&framing, 2, screen("1").as_bytes()), None, "another pane");
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&Framing::fixed("a"), &bytes);
            let _ = parse_screen(&Framing::fixed("a"), 1, &bytes);
        }
    }
}
