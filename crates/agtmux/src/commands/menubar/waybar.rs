//! waybar reads one line of JSON per update. The texts are Pango markup.

use agtmux_core::state::State;
use serde_json::json;

use super::menu::FleetMenu;
use super::text;

const MAX_COLUMNS: usize = 100;

pub(super) fn line(menu: &FleetMenu) -> String {
    let class = class(menu);
    let waiting = menu.waiting.iter().map(|agent| text::for_pango(agent, MAX_COLUMNS));
    let tooltip: Vec<String> = [text::for_pango(&menu.title(), MAX_COLUMNS)].into_iter().chain(waiting).collect();
    let value = json!({
        "text": text::for_pango(&menu.title(), MAX_COLUMNS),
        "alt": class,
        "class": class,
        "tooltip": tooltip.join("\n"),
        "percentage": percentage(menu),
    });
    value.to_string()
}

/// The most urgent state, for the style sheet and the icon.
fn class(menu: &FleetMenu) -> &'static str {
    let Some(summary) = &menu.summary else { return "off" };
    let count = |state| summary.by_state.of(state);
    match () {
        () if count(State::WaitingApproval) + count(State::WaitingInput) > 0 => "waiting",
        () if count(State::Error) > 0 => "error",
        () if menu.unseen => "unseen",
        () if count(State::Running) > 0 => "running",
        () if summary.by_state.0.values().sum::<u32>() > 0 => "idle",
        () => "none",
    }
}

/// The share of agents that wait.
fn percentage(menu: &FleetMenu) -> u32 {
    let Some(summary) = &menu.summary else { return 0 };
    let waiting = summary.by_state.of(State::WaitingApproval) + summary.by_state.of(State::WaitingInput);
    waiting * 100 / summary.by_state.0.values().sum::<u32>().max(1)
}
