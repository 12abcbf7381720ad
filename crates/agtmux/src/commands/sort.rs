//! The `--sort` option of `list` and `watch`.

use std::borrow::Borrow;

use agtmux_api::wire::PaneItem;
use clap::builder::TypedValueParser;

use crate::choices::one_of;

/// The order of the rows in a table of panes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneSort {
    #[default]
    Attention,
    Place,
    Age,
    Name,
}

const ORDERS: [(&str, PaneSort); 4] =
    [("attention", PaneSort::Attention), ("place", PaneSort::Place), ("age", PaneSort::Age), ("name", PaneSort::Name)];

pub(crate) fn orders() -> impl TypedValueParser<Value = PaneSort> {
    one_of(ORDERS)
}

impl PaneSort {
    /// Sorts the panes. Where this order does not decide between two panes, the pane that needs attention more urgently
    /// comes first.
    pub(crate) fn sort<T: Borrow<PaneItem>>(self, panes: &mut [T]) {
        panes.sort_by(|a, b| a.borrow().attention_order().cmp(&b.borrow().attention_order()));
        match self {
            Self::Attention => {}
            Self::Place => panes.sort_by(|a, b| place(a.borrow()).cmp(&place(b.borrow()))),
            // Panes without an agent have no age, so they come last.
            Self::Age => panes.sort_by_key(|pane| (pane.borrow().since.is_none(), pane.borrow().since)),
            Self::Name => panes.sort_by(|a, b| name(a.borrow()).cmp(&name(b.borrow()))),
        }
    }
}

fn place(pane: &PaneItem) -> impl Ord + '_ {
    let id = &pane.identity;
    (&id.target, &id.server, &id.session_name, pane.window_index, pane.pane_index)
}

fn name(pane: &PaneItem) -> impl Ord + '_ {
    (pane.agent_type.is_none(), pane.agent_type.as_ref().map(|agent| agent.as_str()), &pane.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_items::{at, pane};
    use agtmux_core::state::State;

    fn sorted(order: PaneSort) -> Vec<u32> {
        let mut idle = pane("b", 1, 1, Some("codex"), Some(State::Idle));
        idle.since = Some(at(3));
        let mut error = pane("b", 0, 2, Some("claude"), Some(State::Error));
        error.since = Some(at(2));
        let mut asked_later = pane("a", 9, 3, Some("gemini"), Some(State::WaitingApproval));
        asked_later.since = Some(at(8));
        let mut asked_first = pane("a", 10, 4, Some("pi"), Some(State::WaitingInput));
        asked_first.since = Some(at(7));
        let shell = pane("a", 1, 5, None, None);
        let mut panes = [shell, idle, asked_later, error, asked_first];
        order.sort(&mut panes);
        panes.iter().map(|pane| pane.identity.pane_id.0).collect()
    }

    #[test]
    fn agents_that_wait_come_first_and_the_oldest_of_them_at_the_top() {
        assert_eq!(sorted(PaneSort::Attention), [4, 3, 2, 1, 5]);
    }

    #[test]
    fn a_completed_agent_comes_before_running_ones_until_it_is_seen() {
        let running = pane("a", 1, 1, Some("claude"), Some(State::Running));
        let seen = pane("a", 1, 2, Some("claude"), Some(State::Completed));
        let mut unseen = pane("a", 1, 3, Some("claude"), Some(State::Idle));
        unseen.unseen = true;
        let mut panes = [seen, running, unseen];
        PaneSort::Attention.sort(&mut panes);
        assert_eq!(panes.map(|pane| pane.identity.pane_id.0), [3, 1, 2]);
    }

    #[test]
    fn panes_can_be_sorted_by_place_age_and_name() {
        assert_eq!(sorted(PaneSort::Place), [5, 3, 4, 2, 1], "windows are sorted as numbers");
        assert_eq!(sorted(PaneSort::Age), [2, 1, 4, 3, 5], "the longest in its state first");
        assert_eq!(sorted(PaneSort::Name), [2, 1, 3, 4, 5]);
    }
}
