//! The recorded screens and what is known of each.

#![allow(dead_code, reason = "every test takes a part of it")]

use std::fs;
use std::path::Path;

use agtmux_core::state::State;

pub(crate) struct Case {
    pub(crate) agent: String,
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) title: String,
    /// States that are right, or `none` where no agent runs.
    pub(crate) accept: String,
    pub(crate) ansi: Option<Vec<u8>>,
    pub(crate) plain: Vec<u8>,
}

impl Case {
    pub(crate) fn accepts(&self, state: State) -> bool {
        match self.accept.as_str() {
            "none" => state == State::Unknown,
            words => words.split('|').any(|word| word == state.as_str()),
        }
    }

    /// As much as was saved of it.
    pub(crate) fn best(&self) -> &[u8] {
        self.ansi.as_ref().unwrap_or(&self.plain)
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("evidence/screens");
    let table = fs::read_to_string(directory.join("cases.tsv")).expect("the table is there");
    let read = |line: &str| {
        let [agent, name, command, title, accept] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("five columns: {line}")
        };
        let file = |ending: &str| fs::read(directory.join(format!("{agent}/{name}.{ending}")));
        Case {
            agent: agent.into(),
            name: name.into(),
            command: command.into(),
            title: title.into(),
            accept: accept.into(),
            ansi: file("ansi").ok(),
            plain: file("txt").expect("each has a plain one"),
        }
    };
    table.lines().skip(1).map(read).collect()
}

/// How many are right, unknown and wrong.
pub(crate) fn tally(judged: impl Fn(&Case) -> State) -> String {
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
