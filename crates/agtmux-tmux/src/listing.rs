//! The tmux commands that list panes, and the parser of their output.

use std::collections::HashMap;

use crate::command::{Framing, TmuxCommand};
use crate::server::TmuxError;

/// One pane, as one of its sessions shows it. Texts are bytes, because their encoding is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListedPane {
    pub session: u32,
    pub session_name: Vec<u8>,
    pub window: u32,
    pub window_index: u32,
    pub window_name: Vec<u8>,
    pub pane: u32,
    pub pane_index: u32,
    /// 0 if tmux reports no pid.
    pub pid: u32,
    pub tty: Vec<u8>,
    pub dead: Option<PaneExit>,
    pub title: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PaneExit {
    pub status: Option<i32>,
    pub signal: Option<i32>,
}

/// The server generation that printed the listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub pid: u32,
    pub start_time: i64,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerListing {
    pub server: ServerInfo,
    pub rows: Vec<ListedPane>,
}

/// Titles and other texts are cut to this many bytes, because tmux does not limit their length.
const MAX_TEXT_BYTES: usize = 4096;

pub(crate) const WINDOW_FIELDS: &str =
    "session_id window_id window_index session_name window_name window_panes session_windows";

// pane_current_command and pane_current_path are left out: tmux looks them up in the process table for each pane, which
// doubles the cost of a listing. The daemon reads them for the few panes that changed.
pub(crate) const PANE_FIELDS: &str =
    "pane_id pane_index pane_pid pane_dead pane_dead_status pane_dead_signal pane_tty pane_title";

pub(crate) const SERVER_FIELDS: &str = "pid start_time version";

pub(crate) const WINDOW: char = 'w';
pub(crate) const PANE: char = 'p';
pub(crate) const SERVER: char = 's';

/// The commands that list all panes. tmux prints the fields of a window once, before the panes of the window. Repeating
/// them for each pane would double the cost. The server record comes last and proves that the output is complete.
pub(crate) fn list_all(framing: &Framing) -> Vec<TmuxCommand> {
    let window = framing.variables(WINDOW, WINDOW_FIELDS);
    let panes = framing.variables(PANE, PANE_FIELDS);
    vec![
        TmuxCommand::new("list-windows").arg("-a").arg("-F").arg(format!("{window}#{{P:{panes}}}")),
        TmuxCommand::display(&framing.variables(SERVER, SERVER_FIELDS), None),
    ]
}

/// The commands that list some panes. If a pane is gone, tmux prints empty fields or the fields of another pane, so the
/// caller must check the pane ids.
pub(crate) fn list_some(framing: &Framing, panes: &[u32]) -> Vec<TmuxCommand> {
    let format = framing.variables(WINDOW, WINDOW_FIELDS) + &framing.variables(PANE, PANE_FIELDS);
    let reads = panes.iter().map(|pane| TmuxCommand::display(&format, Some(*pane)));
    reads.chain([TmuxCommand::display(&framing.variables(SERVER, SERVER_FIELDS), None)]).collect()
}

/// Parses a full listing. The listing also contains the number of windows in each session and the number of panes in
/// each window. Fails if the listed windows and panes do not match these numbers: newer tmux servers under load can
/// silently drop output in the middle of a long line.
pub(crate) fn parse_all(framing: &Framing, answer: &[u8]) -> Result<ServerListing, TmuxError> {
    let windows = framing.groups(WINDOW, answer);
    let mut counted: HashMap<&[u8], usize> = HashMap::new();
    for session in windows.iter().filter_map(|(window, _)| window.first()) {
        *counted.entry(session).or_default() += 1;
    }
    for (window, body) in &windows {
        let &[session, .., panes, session_windows] = window.as_slice() else { continue };
        let windows = counted.get(session).copied().unwrap_or_default();
        let is_complete =
            |reported: &[u8], found: usize| parse_number(reported).is_none_or(|reported| reported as usize == found);
        if !is_complete(panes, framing.records(PANE, body).len()) || !is_complete(session_windows, windows) {
            return Err(TmuxError::Unreadable("some panes are missing".into()));
        }
    }
    parse(framing, answer)
}

pub(crate) fn parse(framing: &Framing, answer: &[u8]) -> Result<ServerListing, TmuxError> {
    let server = framing.records(SERVER, answer);
    let [server] = server.as_slice() else {
        return Err(TmuxError::Unreadable("the output is incomplete".into()));
    };
    let server = parse_server(server).ok_or_else(|| TmuxError::Unreadable("pid and start time are missing".into()))?;
    let mut rows = Vec::new();
    for (window, body) in framing.groups(WINDOW, answer) {
        for pane in framing.records(PANE, body) {
            if !is_missing_pane(&window, &pane) {
                rows.push(parse_row(&window, &pane)?);
            }
        }
    }
    Ok(ServerListing { server, rows })
}

fn parse_server(fields: &[&[u8]]) -> Option<ServerInfo> {
    let [pid, start_time, version] = fields else { return None };
    Some(ServerInfo {
        pid: parse_number(pid)?,
        start_time: std::str::from_utf8(start_time).ok()?.parse().ok()?,
        version: String::from_utf8_lossy(version).into_owned(),
    })
}

/// Whether the pane is gone. tmux may print empty fields for such a pane.
fn is_missing_pane(window: &[&[u8]], pane: &[&[u8]]) -> bool {
    window.iter().chain(pane).all(|field| field.is_empty())
}

fn parse_row(window: &[&[u8]], pane: &[&[u8]]) -> Result<ListedPane, TmuxError> {
    try_parse_row(window, pane).ok_or_else(|| {
        let shown: Vec<_> = window.iter().chain(pane).take(10).map(|f| f.escape_ascii().to_string()).collect();
        TmuxError::Unreadable(format!("invalid pane fields: {}", shown.join(" ")))
    })
}

fn try_parse_row(window: &[&[u8]], pane: &[&[u8]]) -> Option<ListedPane> {
    let &[session, window, window_index, session_name, window_name, _, _] = window else { return None };
    let &[pane, pane_index, pid, dead, status, signal, tty, title] = pane else { return None };
    Some(ListedPane {
        session: parse_id(b'$', session)?,
        session_name: truncate_text(session_name),
        window: parse_id(b'@', window)?,
        window_index: parse_number(window_index)?,
        window_name: truncate_text(window_name),
        pane: parse_id(b'%', pane)?,
        pane_index: parse_number(pane_index)?,
        pid: parse_number(pid).unwrap_or(0),
        tty: tty.to_vec(),
        dead: (dead == b"1").then(|| PaneExit { status: signed(status), signal: signed(signal) }),
        title: truncate_text(title),
    })
}

pub(crate) fn parse_id(sigil: u8, field: &[u8]) -> Option<u32> {
    parse_number(field.strip_prefix(&[sigil])?)
}

pub(crate) fn parse_number(field: &[u8]) -> Option<u32> {
    std::str::from_utf8(field).ok().filter(|s| s.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

fn signed(field: &[u8]) -> Option<i32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

pub(crate) fn truncate_text(text: &[u8]) -> Vec<u8> {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_vec();
    }
    let cut = (0..=MAX_TEXT_BYTES).rev().find(|at| text[*at] & 0xC0 != 0x80).unwrap_or(MAX_TEXT_BYTES);
    [&text[..cut], "…".as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Panes<'a> = &'a [[&'a str; 8]];

    fn answer(framing: &Framing, windows: &[([&str; 7], Panes<'_>)], server: Option<[&str; 3]>) -> Vec<u8> {
        let mut text = String::new();
        for (window, panes) in windows {
            text.push_str(&framing.record(WINDOW, window));
            panes.iter().for_each(|pane| text.push_str(&framing.record(PANE, pane)));
            text.push('\n');
        }
        if let Some(server) = server {
            text.push_str(&framing.record(SERVER, &server));
        }
        text.into_bytes()
    }

    const SERVED: Option<[&str; 3]> = Some(["9", "1700000000", "3.3a"]);
    const EDIT: [&str; 7] = ["$1", "@2", "0", "work", "edit", "1", "1"];
    const FIRST: [&str; 8] = ["%3", "1", "42", "0", "", "", "/dev/pts/7", "a title"];

    #[test]
    fn parse_reads_every_field() {
        let framing = Framing::fresh();
        let listing = parse(&framing, &answer(&framing, &[(EDIT, &[FIRST])], SERVED)).expect("a complete answer");
        assert_eq!(listing.server, ServerInfo { pid: 9, start_time: 1_700_000_000, version: "3.3a".into() });
        let row = &listing.rows[0];
        assert_eq!((row.session, row.window, row.pane, row.pid), (1, 2, 3, 42));
        assert_eq!((row.session_name.as_slice(), row.title.as_slice()), (&b"work"[..], &b"a title"[..]));
        assert_eq!(row.dead, None);
    }

    #[test]
    fn panes_belong_to_the_window_before_them() {
        let framing = Framing::fresh();
        let (mut second, mut linked) = (FIRST, EDIT);
        second[0] = "%4";
        (linked[0], linked[3]) = ("$5", "other");
        let empty = ["$1", "@9", "1", "work", "empty", "0", "2"];
        let windows: [([&str; 7], Panes<'_>); 3] = [(EDIT, &[FIRST, second]), (empty, &[]), (linked, &[FIRST, second])];
        let listing = parse(&framing, &answer(&framing, &windows, SERVED)).expect("a complete answer");
        let ids: Vec<_> = listing.rows.iter().map(|row| (row.session, row.window, row.pane)).collect();
        assert_eq!(ids, [(1, 2, 3), (1, 2, 4), (5, 2, 3), (5, 2, 4)]);
    }

    #[test]
    fn empty_rows_are_skipped_and_incomplete_rows_are_refused() {
        let framing = Framing::fresh();
        let windows: [([&str; 7], Panes<'_>); 2] = [([""; 7], &[[""; 8]]), (EDIT, &[FIRST])];
        let listing = parse(&framing, &answer(&framing, &windows, SERVED)).expect("a complete answer");
        assert_eq!(listing.rows.len(), 1);
        let mut half = FIRST;
        half[0] = "";
        assert!(parse(&framing, &answer(&framing, &[(EDIT, &[half])], SERVED)).is_err());
    }

    #[test]
    fn a_listing_with_missing_panes_or_windows_is_refused() {
        let framing = Framing::fresh();
        let (mut second, mut other) = (FIRST, EDIT);
        second[0] = "%4";
        (other[1], other[5], other[6]) = ("@3", "2", "2");
        let mut first = EDIT;
        first[6] = "2";
        let parsed = |windows: &[([&str; 7], Panes<'_>)]| parse_all(&framing, &answer(&framing, windows, SERVED));
        assert_eq!(parsed(&[(first, &[FIRST]), (other, &[FIRST, second])]).expect("a complete answer").rows.len(), 3);
        assert!(parsed(&[(first, &[FIRST]), (other, &[FIRST])]).is_err(), "a pane");
        assert!(parsed(&[(first, &[FIRST])]).is_err(), "a window");
    }

    #[test]
    fn an_answer_without_the_server_record_is_refused() {
        let framing = Framing::fresh();
        assert!(parse(&framing, &answer(&framing, &[(EDIT, &[FIRST])], None)).is_err());
        assert!(parse(&framing, b"").is_err());
    }

    #[test]
    fn a_dead_pane_has_its_exit_signal() {
        let framing = Framing::fresh();
        let mut dead = FIRST;
        (dead[3], dead[5]) = ("1", "9");
        let listing = parse(&framing, &answer(&framing, &[(EDIT, &[dead])], SERVED)).expect("a complete answer");
        assert_eq!(listing.rows[0].dead, Some(PaneExit { status: None, signal: Some(9) }));
    }

    #[test]
    fn long_text_is_cut_at_a_character_boundary() {
        let long = "é".repeat(MAX_TEXT_BYTES);
        let cut = String::from_utf8(truncate_text(long.as_bytes())).expect("still UTF-8");
        assert!(cut.len() <= MAX_TEXT_BYTES + 4 && cut.ends_with("é…"));
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&Framing::fixed("a"), &bytes);
        }

        #[test]
        fn parse_row_never_panics(fields in proptest::collection::vec("\\PC{0,12}", 15)) {
            let fields: Vec<&[u8]> = fields.iter().map(|f| f.as_bytes()).collect();
            let _ = parse_row(&fields[..7], &fields[7..]);
        }
    }
}
