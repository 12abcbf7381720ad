//! The recorded screens and their expected states.

use std::fs;
use std::path::Path;

use agtmux_core::state::State;

pub(crate) struct ScreenCase {
    pub(crate) agent: String,
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) title: String,
    /// The acceptable states, separated by `|`, or `none` if no agent runs.
    pub(crate) accept: String,
    pub(crate) ansi: Option<Vec<u8>>,
    pub(crate) plain: Vec<u8>,
}

impl ScreenCase {
    pub(crate) fn accepts(&self, state: State) -> bool {
        match self.accept.as_str() {
            "none" => state == State::Unknown,
            words => words.split('|').any(|word| word == state.as_str()),
        }
    }

    /// The capture with escapes if there is one, else the plain one.
    pub(crate) fn best(&self) -> &[u8] {
        self.ansi.as_ref().unwrap_or(&self.plain)
    }
}

pub(crate) fn cases() -> Vec<ScreenCase> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("evidence/screens");
    let table = fs::read_to_string(directory.join("cases.tsv")).expect("cases.tsv exists");
    let read = |line: &str| {
        let [agent, name, command, title, accept] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("expected five columns: {line}")
        };
        let file = |ending: &str| fs::read(directory.join(format!("{agent}/{name}.{ending}")));
        ScreenCase {
            agent: agent.into(),
            name: name.into(),
            command: command.into(),
            title: title.into(),
            accept: accept.into(),
            ansi: file("ansi").ok(),
            plain: file("txt").expect("each case has a plain capture"),
        }
    };
    table.lines().skip(1).map(read).collect()
}

/// Counts the correct, unknown and wrong judgements.
pub(crate) fn tally(judged: impl Fn(&ScreenCase) -> State) -> String {
    let (mut right, mut unknown, mut wrong) = (0, 0, 0);
    for case in cases() {
        match judged(&case) {
            state if case.accepts(state) => right += 1,
            State::Unknown => unknown += 1,
            _ => wrong += 1,
        }
    }
    format!("{right} right, {unknown} unknown, {wrong} wrong")
}
