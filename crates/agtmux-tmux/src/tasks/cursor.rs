use crate::command::{Framing, TmuxCommand};

/// The screen of a pane, and the position of the cursor on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorScreen {
    pub pane: u32,
    pub x: usize,
    pub y: usize,
    pub width: usize,
    /// The line of the cursor, counted from the start of the history.
    pub line: u64,
    /// The rows of the screen. A wrapped line takes several rows.
    pub rows: Vec<String>,
}

const FIELDS: &str = "pane_id cursor_x cursor_y pane_width history_size";

pub(super) fn capture_commands(framing: &Framing, panes: &[u32]) -> Vec<TmuxCommand> {
    let one = |pane: &u32| {
        let capture = TmuxCommand::new("capture-pane").arg("-p").arg("-t").arg(format!("%{pane}"));
        framing.section(*pane, FIELDS, capture)
    };
    panes.iter().flat_map(one).collect()
}

pub(super) fn parse_screens(framing: &Framing, answer: &[u8]) -> Vec<CursorScreen> {
    framing.sections(answer).filter_map(|(fields, body)| parse_section(&fields, body)).collect()
}

fn parse_section(fields: &[&[u8]], body: &[u8]) -> Option<CursorScreen> {
    let texts: Vec<&str> = fields.iter().filter_map(|field| std::str::from_utf8(field).ok()).collect();
    let [pane, x, y, width, history] = texts[..] else { return None };
    let body = String::from_utf8_lossy(body);
    let y = y.parse::<usize>().ok()?;
    Some(CursorScreen {
        pane: pane.strip_prefix('%')?.parse().ok()?,
        x: x.parse().ok()?,
        y,
        width: width.parse().ok()?,
        line: history.parse::<u64>().ok()? + y as u64,
        rows: body.split('\n').map(ToOwned::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{SECTION_END, SECTION_HEAD};

    #[test]
    fn cursor_and_rows_are_parsed() {
        let framing = Framing::fixed("W");
        let head = framing.record(SECTION_HEAD, &["%3", "8", "1", "80", "40"]);
        let answer = format!("{head}\nfirst\nGo on? [y/N]\n\n{}\n", framing.record(SECTION_END, &[]));
        let found = parse_screens(&framing, answer.as_bytes()).pop().expect("one screen");
        assert_eq!((found.pane, found.x, found.y, found.width, found.line), (3, 8, 1, 80, 41));
        assert_eq!(found.rows[..2], ["first", "Go on? [y/N]"]);
    }
}
