//! The `-F` option: prints each item in a format with variables in tmux's style.

use std::marker::PhantomData;

use agtmux_api::wire::{PaneItem, SessionItem, StateTally, WindowItem};
use agtmux_core::sanitize;
use agtmux_core::state::State;
use jiff::Timestamp;

use crate::render;

/// A variable: its name, and its value for an item.
type FormatVariable<T> = (&'static str, fn(&T, Timestamp) -> String);

/// An item that `-F` can print.
pub(super) trait FormatItem: Sized + 'static {
    const VARIABLES: &'static [FormatVariable<Self>];
}

/// A parsed format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ItemFormat<T> {
    parts: Vec<FormatPart>,
    item: PhantomData<fn(&T)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FormatPart {
    Text(String),
    /// The index of a variable in `FormatItem::VARIABLES`.
    Variable(usize),
}

impl<T: FormatItem> ItemFormat<T> {
    /// Parses a format. `#{name}` is a variable and `##` is `#`, as in tmux.
    pub(super) fn parse(format: &str) -> Result<Self, String> {
        let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), format);
        while let Some((before, after)) = rest.split_once('#') {
            text.push_str(before);
            if let Some(variable) = after.strip_prefix('{') {
                let (name, after) = variable.split_once('}').ok_or("'#{' without '}'")?;
                let at = T::VARIABLES.iter().position(|(known, _)| *known == name).ok_or_else(|| unknown::<T>(name))?;
                parts.extend([FormatPart::Text(std::mem::take(&mut text)), FormatPart::Variable(at)]);
                rest = after;
            } else {
                text.push('#');
                rest = after.strip_prefix('#').unwrap_or(after);
            }
        }
        text.push_str(rest);
        parts.push(FormatPart::Text(text));
        Ok(Self { parts, item: PhantomData })
    }

    /// Formats an item as one sanitized line. Tabs in the format stay; tabs in values are escaped.
    pub(super) fn line(&self, item: &T, now: Timestamp) -> String {
        let part = |part: &FormatPart| match part {
            FormatPart::Text(text) => sanitize::keeping_tabs(text),
            FormatPart::Variable(at) => sanitize::for_terminal(&T::VARIABLES[*at].1(item, now)),
        };
        self.parts.iter().map(part).collect()
    }
}

/// The variables of each list.
pub(crate) fn format_variables() -> [(&'static str, Vec<&'static str>); 3] {
    fn names<T: FormatItem>() -> Vec<&'static str> {
        T::VARIABLES.iter().map(|(name, _)| *name).collect()
    }
    [("panes", names::<PaneItem>()), ("windows", names::<WindowItem>()), ("sessions", names::<SessionItem>())]
}

fn unknown<T: FormatItem>(name: &str) -> String {
    let known: Vec<&str> = T::VARIABLES.iter().map(|(known, _)| *known).collect();
    format!("unknown variable '{name}'; known variables: {}", known.join(", "))
}

impl FormatItem for PaneItem {
    const VARIABLES: &'static [FormatVariable<Self>] = &[
        ("session_name", |pane, _| pane.identity.session_name.clone()),
        ("window_id", |pane, _| pane.identity.window_id.to_string()),
        ("window_index", |pane, _| pane.window_index.to_string()),
        ("window_name", |pane, _| pane.window_name.clone()),
        ("pane_id", |pane, _| pane.identity.pane_id.to_string()),
        ("pane_index", |pane, _| pane.pane_index.to_string()),
        ("pane_title", |pane, _| pane.title.clone().unwrap_or_default()),
        ("pane_current_command", |pane, _| pane.command.clone().unwrap_or_default()),
        ("pane_current_path", |pane, _| pane.cwd.clone().unwrap_or_default()),
        ("pane_dead", |pane, _| flag(pane.dead.is_some())),
        ("agtmux_target", |pane, _| pane.identity.target.clone()),
        ("agtmux_server", |pane, _| pane.identity.server.clone()),
        ("agtmux_agent", |pane, _| pane.agent_type.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("agtmux_name", |pane, _| pane.name.clone().unwrap_or_default()),
        ("agtmux_state", |pane, _| state(pane.state)),
        ("agtmux_reason", |pane, _| pane.reason_code.map(|reason| reason.to_string()).unwrap_or_default()),
        // Seconds since the epoch, as tmux writes times.
        ("agtmux_since", |pane, _| pane.since.map(|since| since.as_second().to_string()).unwrap_or_default()),
        ("agtmux_age", |pane, now| pane.since.map(|since| render::age(since, now)).unwrap_or_default()),
        ("agtmux_asks", |pane, _| render::asks(pane).unwrap_or_default()),
        ("agtmux_needs_action", |pane, _| flag(pane.needs_action)),
        ("agtmux_unseen", |pane, _| flag(pane.unseen)),
        ("agtmux_kind", |pane, _| pane.runtime_kind.map(|kind| kind.to_string()).unwrap_or_default()),
        ("agtmux_runtime", |pane, _| pane.runtime_id.clone().unwrap_or_default()),
    ];
}

impl FormatItem for WindowItem {
    const VARIABLES: &'static [FormatVariable<Self>] = &[
        ("session_name", |window, _| window.identity.session_name.clone()),
        ("window_id", |window, _| window.identity.window_id.to_string()),
        ("window_index", |window, _| window.window_index.to_string()),
        ("window_name", |window, _| window.window_name.clone()),
        ("agtmux_target", |window, _| window.identity.target.clone()),
        ("agtmux_server", |window, _| window.identity.server.clone()),
        ("agtmux_state", |window, _| state(window.top_state)),
        ("agtmux_agents", |window, _| agents(&window.counts)),
        ("agtmux_waiting", |window, _| window.waiting.to_string()),
        ("agtmux_running", |window, _| window.running.to_string()),
    ];
}

impl FormatItem for SessionItem {
    const VARIABLES: &'static [FormatVariable<Self>] = &[
        ("session_name", |session, _| session.identity.session_name.clone()),
        ("session_windows", |session, _| session.windows.to_string()),
        ("agtmux_target", |session, _| session.identity.target.clone().unwrap_or_default()),
        ("agtmux_server", |session, _| session.identity.server.clone().unwrap_or_default()),
        ("agtmux_panes", |session, _| session.panes.to_string()),
        ("agtmux_state", |session, _| state(top_state(&session.counts))),
        ("agtmux_agents", |session, _| agents(&session.counts)),
        ("agtmux_waiting", |session, _| {
            (session.counts.of(State::WaitingApproval) + session.counts.of(State::WaitingInput)).to_string()
        }),
        ("agtmux_running", |session, _| session.counts.of(State::Running).to_string()),
    ];
}

/// Formats a flag as `1` or `0`, as tmux does.
fn flag(is_set: bool) -> String {
    u8::from(is_set).to_string()
}

fn state(state: Option<State>) -> String {
    state.map(|state| state.as_str().to_owned()).unwrap_or_default()
}

/// The most urgent state of any counted agent.
fn top_state(counts: &StateTally) -> Option<State> {
    State::ALL.iter().copied().find(|state| counts.of(*state) > 0)
}

fn agents(counts: &StateTally) -> String {
    counts.0.values().sum::<u32>().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_items::{at, pane, session, tally, window};

    #[test]
    fn variables_are_replaced_and_other_text_stays() {
        let mut item = pane("work", 1, 2, Some("claude"), Some(State::Idle));
        item.title = Some("#{pane_id} ##".into());
        let line = |format: &str| ItemFormat::parse(format).map(|format| format.line(&item, at(100)));
        assert_eq!(line("#{session_name}:#{window_index}.#{pane_index}"), Ok("work:1.2".into()));
        assert_eq!(
            line("#{agtmux_agent} #{agtmux_state}\t#{agtmux_since} #{agtmux_age}"),
            Ok("claude idle\t10 1m".into())
        );
        assert_eq!(line("## #x #{pane_title} #"), Ok("# #x #{pane_id} ## #".into()), "a value is no format");
        assert_eq!(line("#{pane_current_path}"), Ok("/home/me/src".into()));
        item.cwd = Some("/a\n\x1b[2J".into());
        let line = |format: &str| ItemFormat::parse(format).map(|format| format.line(&item, at(100)));
        assert_eq!(line("#{pane_current_path}"), Ok("/a\\n\\x1b[2J".into()));
        assert_eq!(line(""), Ok(String::new()));
        assert_eq!(line("#{pane_id"), Err("'#{' without '}'".into()));
    }

    #[test]
    fn an_unknown_variable_is_an_error_that_lists_the_known_ones() {
        let error = ItemFormat::<PaneItem>::parse("#{pane_pid}").expect_err("unknown");
        assert!(error.starts_with("unknown variable 'pane_pid'; known variables: session_name, "), "{error}");
        assert!(error.contains("agtmux_state") && error.contains("pane_current_path"), "{error}");
        assert!(ItemFormat::<WindowItem>::parse("#{pane_id}").is_err());
        assert!(ItemFormat::<SessionItem>::parse("#{?window_id,a,b}").is_err());
    }

    #[test]
    fn windows_and_sessions_count_their_agents() {
        let mut item = session("work");
        item.counts = tally(&[(State::WaitingInput, 1), (State::WaitingApproval, 1), (State::Running, 2)]);
        let format = "#{session_name} #{agtmux_agents} #{agtmux_waiting} #{agtmux_running} #{agtmux_state}";
        let parsed = ItemFormat::<SessionItem>::parse(format).expect("a format");
        assert_eq!(parsed.line(&item, at(0)), "work 4 2 2 waiting_approval");
        let format = ItemFormat::<WindowItem>::parse("#{window_index}:#{window_name}").expect("a format");
        assert_eq!(format.line(&window("work", 3, "api"), at(0)), "3:api");
    }

    #[test]
    fn every_variable_of_a_pane_without_an_agent_has_a_value() {
        let item = pane("work", 1, 2, None, None);
        for (name, value) in PaneItem::VARIABLES {
            assert!(!value(&item, at(0)).contains('\n'), "{name}");
        }
    }
}
