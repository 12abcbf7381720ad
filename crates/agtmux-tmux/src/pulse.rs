//! All panes, with what tells that one of them wrote or runs something else: for hosts where nothing else tells.

use std::collections::HashMap;

use crate::command::{Command, Framing};
use crate::input::NOW;
use crate::listing::{self, Listing, PANE, PANE_FIELDS, SERVER, SERVER_FIELDS, WINDOW, WINDOW_FIELDS};
use crate::server::TmuxError;

/// What changes when a pane does something. Its window's activity moves with every write of any of its panes, also where
/// neither the cursor nor the history do, but only in whole seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulse {
    /// Seconds, by the clock of the server.
    pub activity: i64,
    pub cursor: (u32, u32),
    pub history_bytes: u64,
    /// Whoever has its terminal, and where that is.
    pub command: Vec<u8>,
    pub cwd: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulseListing {
    pub listing: Listing,
    pub pulses: HashMap<u32, Pulse>,
    /// The time at the server, in seconds.
    pub clock: Option<i64>,
}

const FIELDS: [&str; 7] = [
    "#{pane_id}",
    "#{window_activity}",
    "#{cursor_x}",
    "#{cursor_y}",
    "#{history_bytes}",
    "#{pane_current_command}",
    "#{pane_current_path}",
];

const PULSE: char = 'u';
const CLOCK: char = 't';

pub(crate) fn list_all(framing: &Framing) -> Vec<Command> {
    let window = framing.record(WINDOW, &WINDOW_FIELDS);
    let panes = framing.record(PANE, &PANE_FIELDS) + &framing.record(PULSE, &FIELDS);
    let last = framing.record(CLOCK, &[NOW]) + &framing.record(SERVER, &SERVER_FIELDS);
    vec![
        Command::new("list-windows").arg("-a").arg("-F").arg(format!("{window}#{{P:{panes}}}")),
        Command::display(&last, None),
    ]
}

pub(crate) fn parse_all(framing: &Framing, answer: &[u8]) -> Result<PulseListing, TmuxError> {
    let listing = listing::parse_all(framing, answer)?;
    let pulses = framing.records(PULSE, answer).iter().filter_map(|fields| pulse(fields)).collect();
    let clock = framing.records(CLOCK, answer).first().and_then(|fields| signed(fields.first()?));
    Ok(PulseListing { listing, pulses, clock })
}

impl PulseListing {
    pub(crate) fn without_panes(listing: Listing) -> Self {
        Self { listing, pulses: HashMap::new(), clock: None }
    }
}

fn pulse(fields: &[&[u8]]) -> Option<(u32, Pulse)> {
    let &[pane, activity, x, y, history, command, cwd] = fields else { return None };
    let pulse = Pulse {
        activity: signed(activity)?,
        cursor: (listing::number(x)?, listing::number(y)?),
        history_bytes: signed(history).and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        command: listing::short(command),
        cwd: listing::short(cwd),
    };
    Some((listing::id(b'%', pane)?, pulse))
}

fn signed(field: &[u8]) -> Option<i64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pulse_is_read_beside_its_pane() {
        let framing = Framing::fresh();
        let window = framing.record(WINDOW, &["$0", "@0", "0", "work", "edit", "1", "1"]);
        let pane = framing.record(PANE, &["%3", "0", "42", "0", "", "", "/dev/pts/3", "a title"]);
        let beat = framing.record(PULSE, &["%3", "100", "7", "2", "605", "node", "/a\n%9 b"]);
        let last = framing.record(CLOCK, &["101"]) + &framing.record(SERVER, &["9", "50", "3.3a"]);
        let answer = format!("{window}{pane}{beat}\n{last}\n");
        let seen = parse_all(&framing, answer.as_bytes()).expect("whole");
        assert_eq!((seen.listing.rows.len(), seen.clock), (1, Some(101)));
        let pulse = &seen.pulses[&3];
        assert_eq!((pulse.activity, pulse.cursor, pulse.history_bytes), (100, (7, 2), 605));
        assert_eq!((pulse.command.as_slice(), pulse.cwd.as_slice()), (&b"node"[..], &b"/a\n%9 b"[..]));
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_all(&Framing::fixed("a"), &bytes);
        }
    }
}
