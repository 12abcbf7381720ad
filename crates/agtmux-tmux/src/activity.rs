//! Lists all panes, with values that show activity. This is used for hosts on which agtmux cannot watch the terminals.

use std::collections::HashMap;

use crate::command::{Framing, TmuxCommand};
use crate::input::SERVER_TIME;
use crate::listing::{self, PANE, PANE_FIELDS, SERVER, SERVER_FIELDS, ServerListing, WINDOW, WINDOW_FIELDS};
use crate::server::TmuxError;

/// Values that show whether a pane is active. `window_activity` changes when any pane of the window writes, even if the
/// cursor and the history stay the same. It is a time in whole seconds, so several writes in one second change it only
/// once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneActivity {
    /// Unix time in seconds, by the clock of the tmux server.
    pub window_activity: i64,
    pub cursor: (u32, u32),
    pub history_bytes: u64,
    /// The name of the foreground program. `cwd` is the working directory of that program.
    pub command: Vec<u8>,
    pub cwd: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityListing {
    pub listing: ServerListing,
    pub activity: HashMap<u32, PaneActivity>,
    /// The server's time in seconds.
    pub clock: Option<i64>,
}

const FIELDS: &str = "pane_id window_activity cursor_x cursor_y history_bytes pane_current_command pane_current_path";

const ACTIVITY: char = 'u';
const CLOCK: char = 't';

pub(crate) fn list_all(framing: &Framing) -> Vec<TmuxCommand> {
    let window = framing.variables(WINDOW, WINDOW_FIELDS);
    let panes = framing.variables(PANE, PANE_FIELDS) + &framing.variables(ACTIVITY, FIELDS);
    let last = framing.record(CLOCK, &[SERVER_TIME]) + &framing.variables(SERVER, SERVER_FIELDS);
    vec![
        TmuxCommand::new("list-windows").arg("-a").arg("-F").arg(format!("{window}#{{P:{panes}}}")),
        TmuxCommand::display(&last, None),
    ]
}

pub(crate) fn parse_all(framing: &Framing, answer: &[u8]) -> Result<ActivityListing, TmuxError> {
    let listing = listing::parse_all(framing, answer)?;
    let activity = framing.records(ACTIVITY, answer).iter().filter_map(|fields| parse_activity(fields)).collect();
    let clock = framing.records(CLOCK, answer).first().and_then(|fields| signed(fields.first()?));
    Ok(ActivityListing { listing, activity, clock })
}

fn parse_activity(fields: &[&[u8]]) -> Option<(u32, PaneActivity)> {
    let &[pane, activity, x, y, history, command, cwd] = fields else { return None };
    let activity = PaneActivity {
        window_activity: signed(activity)?,
        cursor: (listing::parse_number(x)?, listing::parse_number(y)?),
        history_bytes: signed(history).and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        command: listing::truncate_text(command),
        cwd: listing::truncate_text(cwd),
    };
    Some((listing::parse_id(b'%', pane)?, activity))
}

fn signed(field: &[u8]) -> Option<i64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn activity_is_parsed_next_to_its_pane() {
        let framing = Framing::fresh();
        let window = framing.record(WINDOW, &["$0", "@0", "0", "work", "edit", "1", "1"]);
        let pane = framing.record(PANE, &["%3", "0", "42", "0", "", "", "/dev/pts/3", "a title"]);
        let activity_record = framing.record(ACTIVITY, &["%3", "100", "7", "2", "605", "node", "/a\n%9 b"]);
        let last = framing.record(CLOCK, &["101"]) + &framing.record(SERVER, &["9", "50", "3.3a"]);
        let answer = format!("{window}{pane}{activity_record}\n{last}\n");
        let parsed = parse_all(&framing, answer.as_bytes()).expect("a complete answer");
        assert_eq!((parsed.listing.rows.len(), parsed.clock), (1, Some(101)));
        let activity = &parsed.activity[&3];
        assert_eq!((activity.window_activity, activity.cursor, activity.history_bytes), (100, (7, 2), 605));
        assert_eq!((activity.command.as_slice(), activity.cwd.as_slice()), (&b"node"[..], &b"/a\n%9 b"[..]));
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_all(&Framing::fixed("a"), &bytes);
        }
    }
}
