//! Parses the output of `show-hooks`.

use std::collections::BTreeMap;

use super::HOOK_NAMES;
use crate::command::Framing;
use crate::listing::parse_id;

/// The entries of one hook array, by their indexes in the array.
pub(super) type HookEntries = BTreeMap<u32, String>;
/// Several hook arrays, by their hook names.
pub(super) type HookArrays = BTreeMap<String, HookEntries>;

/// All installed entries of the hooks in [`HOOK_NAMES`]. This includes the user's own entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InstalledHooks {
    /// The global hook arrays. There is one for each hook that this tmux version supports, and it can be empty.
    pub(super) global: HookArrays,
    /// The hook arrays of single sessions, by session id.
    pub(super) sessions: BTreeMap<u32, HookArrays>,
}

impl InstalledHooks {
    pub(super) fn parse(framing: &Framing, answer: &[u8]) -> Self {
        let mut shown = Self::default();
        let mut session: Option<u32> = None;
        for line in answer.split(|b| *b == b'\n') {
            if let Some(id) = session_ids(framing, line).first() {
                session = Some(*id);
                shown.sessions.entry(*id).or_default();
                continue;
            }
            let arrays = match session {
                Some(id) => shown.sessions.entry(id).or_default(),
                None => &mut shown.global,
            };
            read_line(arrays, &String::from_utf8_lossy(line));
        }
        shown
    }
}

pub(super) fn session_ids(framing: &Framing, answer: &[u8]) -> Vec<u32> {
    let records = framing.records('s', answer);
    records.iter().filter_map(|fields| parse_id(b'$', fields.first()?)).collect()
}

/// Parses one line of `show-hooks`. For an empty array, the line is `alert-bell`. For one entry of an array, it is
/// `alert-bell[3] command`.
fn read_line(arrays: &mut HookArrays, line: &str) {
    let (head, value) = line.split_once(' ').unwrap_or((line, ""));
    let (name, index) = match head.split_once('[') {
        Some((name, rest)) => (name, rest.strip_suffix(']').and_then(|n| n.parse().ok())),
        None => (head, None),
    };
    if !HOOK_NAMES.contains(&name) {
        return;
    }
    let entries = arrays.entry(name.to_owned()).or_default();
    if let Some(index) = index {
        entries.insert(index, value.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn global_and_session_arrays_are_separated() {
        let framing = Framing::fixed("WORD");
        let answer = b"alert-bell[0] display-message hi\nsession-created\nafter-split-window[0] x\nWORDs$4WORD.\nalert-bell[7] y z\n";
        let shown = InstalledHooks::parse(&framing, answer);
        assert_eq!(shown.global["alert-bell"], HookEntries::from([(0, "display-message hi".into())]));
        assert!(shown.global["session-created"].is_empty());
        assert!(!shown.global.contains_key("after-split-window"), "not a hook that we use");
        assert_eq!(shown.sessions[&4]["alert-bell"], HookEntries::from([(7, "y z".into())]));
    }
}
