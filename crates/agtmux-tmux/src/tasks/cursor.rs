use crate::command::{Command, Framing};

/// The line on which a pane's cursor stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorLine {
    pub pane: u32,
    /// Up to the cursor, where that can be told.
    pub line: String,
    /// Counted from the beginning of the pane's history.
    pub row: u64,
}

const HEAD: char = 'h';
const END: char = 'e';
const FIELDS: [&str; 4] = ["#{pane_id}", "#{cursor_x}", "#{cursor_y}", "#{history_size}"];

pub(super) fn look(framing: &Framing, panes: &[u32]) -> Vec<Command> {
    let one = |pane: &u32| {
        [
            Command::display(&framing.record(HEAD, &FIELDS), Some(*pane)),
            Command::new("capture-pane").arg("-p").arg("-t").arg(format!("%{pane}")),
            Command::display(&framing.record(END, &[]), Some(*pane)),
        ]
    };
    panes.iter().flat_map(one).collect()
}

pub(super) fn lines(framing: &Framing, answer: &[u8]) -> Vec<CursorLine> {
    framing.sections(HEAD, END, answer).into_iter().filter_map(|(fields, body)| line(&fields, body)).collect()
}

fn line(fields: &[&[u8]], body: &[u8]) -> Option<CursorLine> {
    let texts: Vec<&str> = fields.iter().filter_map(|field| std::str::from_utf8(field).ok()).collect();
    let [pane, x, y, history] = texts[..] else { return None };
    let (x, y): (usize, usize) = (x.parse().ok()?, y.parse().ok()?);
    let body = String::from_utf8_lossy(body.strip_prefix(b"\n").unwrap_or(body)).into_owned();
    let whole = body.split('\n').nth(y).unwrap_or_default();
    // A column is a character where all of them are plain.
    let line = if whole.is_ascii() && x < whole.len() { &whole[..x] } else { whole };
    Some(CursorLine {
        pane: pane.strip_prefix('%')?.parse().ok()?,
        line: line.to_owned(),
        row: history.parse::<u64>().ok()? + y as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_ends_at_the_cursor() {
        let framing = Framing::fixed("W");
        let head = framing.record(HEAD, &["%3", "8", "1", "40"]);
        let answer = format!("{head}\nfirst\nGo on? [y/N] ghost\n\n{}\n", framing.record(END, &[]));
        let found = lines(&framing, answer.as_bytes());
        assert_eq!(found, [CursorLine { pane: 3, line: "Go on? [".into(), row: 41 }]);
    }
}
