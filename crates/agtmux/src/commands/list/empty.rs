//! Explains why a list is empty, with a hint for each possible cause.

use agtmux_api::wire::{DaemonHealth, ListFilters, ListScope};

use crate::message::CliMessage;

pub(crate) fn explain(scope: ListScope, filters: &ListFilters, health: &DaemonHealth) -> CliMessage {
    if health.servers.is_empty() && health.target_errors.is_empty() {
        return CliMessage::new("no tmux server is running for this user").hint("tmux new").hint("agtmux demo");
    }
    if health.servers.is_empty() {
        return CliMessage::new(format!("no {scope} found: no tmux server could be read")).hint("agtmux daemon status");
    }
    let chosen = describe(filters);
    if !chosen.is_empty() {
        return CliMessage::new(format!("no {scope} match {}", chosen.join(", "))).hint(format!("agtmux list {scope}"));
    }
    let panes: u32 = health.servers.iter().map(|server| server.panes).sum();
    let servers = match health.servers.len() {
        1 => "1 tmux server".to_owned(),
        n => format!("{n} tmux servers"),
    };
    if scope == ListScope::Panes && !filters.all {
        let panes = if panes == 1 { "the only pane".to_owned() } else { format!("any of the {panes} panes") };
        let message = CliMessage::new(format!("no agent runs in {panes} on {servers}"));
        return message.hint("agtmux list panes --all   (every pane)");
    }
    CliMessage::new(format!("there are no {scope} on {servers}")).hint("tmux new").hint("agtmux demo")
}

fn describe(filters: &ListFilters) -> Vec<String> {
    let states = filters.state.as_ref().map(ToString::to_string);
    let given = [
        ("--target", filters.target.as_deref()),
        ("--target-session", filters.target_session.as_deref()),
        ("--session", filters.session.as_deref()),
        ("--state", states.as_deref()),
        ("--agent", filters.agent.as_deref()),
    ];
    let mut words: Vec<String> =
        given.into_iter().filter_map(|(flag, value)| Some(format!("{flag} {}", value?))).collect();
    if filters.needs_action {
        words.push("--needs-action".to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_api::wire::{ServerHealth, StoreHealth};

    fn health(panes: &[u32]) -> DaemonHealth {
        let server = |panes: &u32| ServerHealth {
            target: "host".into(),
            server: "default".into(),
            socket: "/tmp/tmux-0/default".into(),
            pid: 1,
            tmux_version: "3.3a".into(),
            panes: *panes,
            evidence: "events".into(),
            hooks: true,
        };
        DaemonHealth {
            schema_version: 1,
            status: "ok".into(),
            version: "0".into(),
            api_version: 1,
            socket: "/s".into(),
            pid: 1,
            started_at: jiff::Timestamp::UNIX_EPOCH,
            seq: 0,
            store: StoreHealth { path: "/x".into(), schema_version: 1, quarantined: None, error: None },
            servers: panes.iter().map(server).collect(),
            target_errors: Vec::new(),
            components: Default::default(),
        }
    }

    #[test]
    fn no_server_and_no_agent_give_different_messages() {
        let text = explain(ListScope::Panes, &ListFilters::default(), &health(&[])).to_string();
        assert_eq!(text, "agtmux: no tmux server is running for this user\n  try: tmux new\n  try: agtmux demo\n");
        let text = explain(ListScope::Panes, &ListFilters::default(), &health(&[5, 7])).to_string();
        assert!(text.starts_with("agtmux: no agent runs in any of the 12 panes on 2 tmux servers\n"), "{text}");
        assert!(text.contains("agtmux list panes --all"), "{text}");
        let text = explain(ListScope::Panes, &ListFilters::default(), &health(&[1])).headline();
        assert_eq!(text, "no agent runs in the only pane on 1 tmux server");
    }

    #[test]
    fn filters_that_match_nothing_are_named() {
        let filters = ListFilters { session: Some("wörk\x1b".into()), needs_action: true, ..ListFilters::default() };
        let text = explain(ListScope::Panes, &filters, &health(&[1])).to_string();
        assert!(text.starts_with("agtmux: no panes match --session wörk\\x1b, --needs-action\n"), "{text}");
    }
}
