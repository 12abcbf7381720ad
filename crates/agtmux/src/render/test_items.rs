//! Items for the tests of this module.

use agtmux_api::wire::{PaneIdentity, PaneItem, SessionIdentity, SessionItem, StateTally, WindowIdentity, WindowItem};
use agtmux_core::ids::{AgentType, PaneId, WindowId};
use agtmux_core::state::State;
use jiff::Timestamp;

use super::table::TextTable;
use crate::terminal::StdoutTerminal;

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

pub(crate) fn pane(session: &str, window: u32, pane: u32, agent: Option<&str>, state: Option<State>) -> PaneItem {
    let identity = PaneIdentity {
        target: "host".into(),
        server: "default".into(),
        session_name: session.into(),
        window_id: WindowId(window),
        pane_id: PaneId(pane),
    };
    PaneItem {
        window_index: window,
        window_name: "main".into(),
        pane_index: pane,
        agent_type: agent.map(AgentType::new),
        state,
        since: state.map(|_| at(10)),
        needs_action: state.is_some_and(State::needs_action),
        cwd: Some("/home/me/src".into()),
        ..PaneItem::new(identity, at(10))
    }
}

pub(crate) fn window(session: &str, window: u32, name: &str) -> WindowItem {
    WindowItem {
        identity: WindowIdentity {
            target: "host".into(),
            server: "default".into(),
            session_name: session.into(),
            window_id: WindowId(window),
        },
        window_index: window,
        window_name: name.into(),
        top_state: None,
        waiting: 0,
        running: 0,
        counts: StateTally::default(),
    }
}

pub(crate) fn session(name: &str) -> SessionItem {
    SessionItem {
        identity: SessionIdentity {
            target: Some("host".into()),
            server: Some("default".into()),
            session_name: name.into(),
        },
        counts: StateTally::default(),
        by_target: Default::default(),
        windows: 1,
        panes: 2,
    }
}

pub(crate) fn tally(counts: &[(State, u32)]) -> StateTally {
    StateTally(counts.iter().copied().collect())
}

pub(crate) fn drawn(table: &TextTable, width: usize) -> String {
    draw(table, Some(width))
}

/// The table as agtmux prints it to a pipe, with no limit on the width.
pub(crate) fn wide(table: &TextTable) -> String {
    draw(table, None)
}

fn draw(table: &TextTable, width: Option<usize>) -> String {
    table.lines(&StdoutTerminal { is_tty: false, width, height: 24, colour: false, is_dumb: false }).join("\n")
}
