//! Builds API items from the fleet.

use std::collections::{BTreeMap, BTreeSet};

use agtmux_api::wire::{
    DeadPane, PaneIdentity, PaneItem, SessionIdentity, SessionItem, StateTally, TargetCounts, TargetError,
    WindowIdentity, WindowItem,
};
use agtmux_core::fleet::{Fleet, Outage, OutageCode, Pane, PaneKey};
use agtmux_core::ids::{ServerKey, SessionId, TargetName, WindowId};
use agtmux_core::resolver::StateResolver;
use agtmux_core::rollup::StateCounts;
use agtmux_core::runtime::RuntimeKind;
use agtmux_core::state::State;

use super::MirrorPanes;
use crate::submissions::{Submission, Submissions};

/// What is known about panes besides the fleet and the states of its agents.
#[derive(Clone, Copy)]
pub(super) struct PaneExtras<'a> {
    pub(super) submissions: &'a Submissions,
    pub(super) mirrors: &'a MirrorPanes,
}

/// One item per session that shows the pane.
pub(super) fn panes(
    fleet: &Fleet,
    states: &StateResolver,
    extras: PaneExtras<'_>,
    key: &PaneKey,
) -> Vec<(PaneIdentity, PaneItem)> {
    let Some(pane) = fleet.pane(key) else { return Vec::new() };
    let sessions: BTreeSet<&str> = pane.placements.iter().map(|p| p.session_name.as_str()).collect();
    let items = sessions.into_iter().map(|session| pane_item(key, pane, states, extras, session));
    items.map(|item| (item.identity.clone(), item)).collect()
}

fn pane_item(key: &PaneKey, pane: &Pane, states: &StateResolver, extras: PaneExtras<'_>, session: &str) -> PaneItem {
    let runtime = pane.runtime.as_ref();
    let state = runtime.and_then(|r| states.state(&r.id));
    let submission = runtime.and_then(|r| extras.submissions.get(&r.id));
    let mirror_id = extras.mirrors.mirror_id(key, pane);
    let placement = pane.placements.iter().find(|placement| placement.session_name == session);
    PaneItem {
        identity: PaneIdentity {
            target: key.server.target.to_string(),
            server: key.server.server.to_string(),
            session_name: session.to_owned(),
            window_id: pane.window,
            pane_id: key.pane,
        },
        window_index: placement.map_or(0, |placement| placement.window_index),
        window_name: pane.window_name.clone(),
        pane_index: pane.pane_index,
        runtime_kind: runtime.map(|_| RuntimeKind::Agent).or(mirror_id.map(|_| RuntimeKind::Mirror)),
        mirror_id: mirror_id.map(ToOwned::to_owned),
        runtime_id: runtime.map(|r| r.id.to_string()),
        agent_id: runtime.and_then(|r| states.agent_id(&r.id)).map(ToOwned::to_owned),
        agent_type: runtime.map(|r| r.agent_type.clone()),
        name: runtime.and_then(|r| r.name.clone()),
        state: state.map(|s| s.state),
        reason_code: state.and_then(|s| s.reason),
        confidence: state.map(|s| s.confidence),
        state_version: state.map(|s| s.version),
        since: state.map(|s| s.since),
        updated_at: state.map_or(pane.updated_at, |s| s.updated_at.max(pane.updated_at)),
        needs_action: state.is_some_and(|s| s.state.needs_action()),
        unseen: runtime.is_some_and(|r| states.unseen_since(&r.id).is_some()),
        submitted_at: submission.map(|submission| submission.at),
        turn_pending: submission.is_some_and(Submission::is_pending),
        dialog: runtime.and_then(|r| states.dialog(&r.id)),
        title: Some(pane.title.clone()).filter(|t| !t.is_empty()),
        cwd: pane.foreground.as_ref().and_then(|f| f.cwd.clone()),
        command: pane.foreground.as_ref().map(|f| f.command.clone()),
        dead: pane.dead.map(|d| DeadPane { exit_code: d.status, signal: d.signal }),
    }
}

/// Builds the API items of a window. There is one item for each session that the window is linked into.
pub(super) fn windows(
    fleet: &Fleet,
    states: &StateResolver,
    (key, id): &(ServerKey, WindowId),
) -> Vec<(WindowIdentity, WindowItem)> {
    let Some(server) = fleet.server(key) else { return Vec::new() };
    let panes: Vec<&Pane> = server.panes.values().filter(|pane| pane.window == *id).collect();
    let counts: StateCounts = panes.iter().filter_map(|pane| state_of(pane, states)).collect();
    let name = panes.first().map(|pane| pane.window_name.clone()).unwrap_or_default();
    // If a session shows the window twice, the lowest index counts.
    let mut sessions: BTreeMap<&str, u32> = BTreeMap::new();
    for placement in panes.iter().flat_map(|pane| &pane.placements) {
        let index = sessions.entry(placement.session_name.as_str()).or_insert(placement.window_index);
        *index = placement.window_index.min(*index);
    }
    let item = |(session, window_index): (&str, u32)| WindowItem {
        identity: WindowIdentity {
            target: key.target.to_string(),
            server: key.server.to_string(),
            session_name: session.to_owned(),
            window_id: *id,
        },
        window_index,
        window_name: name.clone(),
        top_state: counts.top(),
        waiting: counts.waiting(),
        running: counts.of(State::Running),
        counts: StateTally::from(&counts),
    };
    sessions.into_iter().map(item).map(|item| (item.identity.clone(), item)).collect()
}

pub(super) fn session(
    fleet: &Fleet,
    states: &StateResolver,
    (key, id): &(ServerKey, SessionId),
) -> Vec<(SessionIdentity, SessionItem)> {
    let Some(server) = fleet.server(key) else { return Vec::new() };
    let mut windows = BTreeSet::new();
    let mut counts = StateCounts::default();
    let (mut panes, mut name) = (0, None);
    for pane in server.panes.values() {
        let Some(placement) = pane.placements.iter().find(|p| p.session == *id) else { continue };
        name = Some(placement.session_name.clone());
        panes += 1;
        windows.insert(pane.window);
        if let Some(state) = state_of(pane, states) {
            counts.add(state);
        }
    }
    let Some(session_name) = name else { return Vec::new() };
    let share = TargetCounts {
        counts: StateTally::from(&counts),
        windows: u32::try_from(windows.len()).unwrap_or(u32::MAX),
        panes,
    };
    let identity =
        SessionIdentity { target: Some(key.target.to_string()), server: Some(key.server.to_string()), session_name };
    let item = SessionItem {
        identity: identity.clone(),
        counts: share.counts.clone(),
        windows: share.windows,
        panes: share.panes,
        by_target: BTreeMap::from([(key.target.to_string(), share)]),
    };
    vec![(identity, item)]
}

fn state_of(pane: &Pane, states: &StateResolver) -> Option<State> {
    states.state(&pane.runtime.as_ref()?.id).map(|record| record.state)
}

/// All outages that have not ended.
pub(super) fn errors(fleet: &Fleet) -> Vec<TargetError> {
    let of_targets = fleet.target_outages().map(|(target, outage)| error(target.to_string(), None, outage, 0));
    let of_servers = fleet.servers().filter_map(|(key, server)| {
        let outage = server.outage.as_ref()?;
        Some(error(key.target.to_string(), Some(key.server.to_string()), outage, server.generation.pid))
    });
    of_targets.chain(of_servers).collect()
}

fn error(target: String, server: Option<String>, outage: &Outage, pid: u32) -> TargetError {
    TargetError {
        server,
        code: outage.code,
        message: outage.message.clone(),
        hint: if target == TargetName::LOCAL {
            local_hint(outage.code, pid)
        } else {
            remote_hint(&target, outage.code, pid)
        },
        target,
        since: outage.since,
    }
}

fn local_hint(code: OutageCode, pid: u32) -> String {
    match code {
        OutageCode::TmuxNotInstalled => "install tmux 3.2 or newer, or set tmux.program in the configuration; \
            `agtmux config path` prints its path"
            .into(),
        OutageCode::TmuxTooOld => {
            "install tmux 3.2 or newer, then end the old server with `tmux kill-server` when you can".into()
        }
        OutageCode::ServerNotResponding => {
            format!(
                "inspect the server with `ps -o stat,wchan,args -p {pid}`; if it is stopped, run `kill -CONT {pid}`"
            )
        }
        OutageCode::TargetUnreachable => "run `agtmux daemon status` to see why".into(),
        OutageCode::ListingFailed => "run `tmux list-panes -a` to see the error; if another tmux version started \
            the server, set tmux.program to that version in the configuration"
            .into(),
        OutageCode::ListingCut => "close sessions that are not needed; `tmux list-sessions` lists them".into(),
        OutageCode::RateLimited => "run `agtmux watch` to see what changes so often".into(),
    }
}

/// The hint for an outage on another host. The commands in the hint run on that host over ssh, because its pids mean
/// nothing on this machine.
fn remote_hint(target: &str, code: OutageCode, pid: u32) -> String {
    match code {
        OutageCode::TmuxNotInstalled => format!("install tmux 3.2 or newer on {target}"),
        OutageCode::TmuxTooOld => format!(
            "install tmux 3.2 or newer on {target}, then end the old server with `ssh {target} tmux kill-server` when \
             you can"
        ),
        OutageCode::ServerNotResponding => format!(
            "inspect the server with `ssh {target} ps -o stat,wchan,args -p {pid}`; if it is stopped, run \
             `ssh {target} kill -CONT {pid}`"
        ),
        OutageCode::TargetUnreachable => format!("run `agtmux target doctor {target}` to see why"),
        OutageCode::ListingFailed => format!("run `ssh {target} tmux list-panes -a` to see the error"),
        OutageCode::ListingCut => format!(
            "the list is correct but incomplete; close sessions that are not needed: `ssh {target} tmux list-sessions` \
             lists them"
        ),
        OutageCode::RateLimited => {
            format!("the states of {target} may be late; run `ssh {target} agtmux watch` to see what changes so often")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_listing_is_not_a_failed_listing() {
        let outage = |code| Outage { code, message: String::new(), since: jiff::Timestamp::UNIX_EPOCH };
        let error_for = |code| error("vm1".into(), None, &outage(code), 0);
        let (truncated, failed) = (error_for(OutageCode::ListingCut), error_for(OutageCode::ListingFailed));
        assert_ne!(truncated.hint, failed.hint);
        assert_eq!(serde_json::to_value(truncated.code).expect("writes"), "listing_cut");
    }

    #[test]
    fn hints_about_remote_processes_use_ssh() {
        let outage = |code| Outage { code, message: String::new(), since: jiff::Timestamp::UNIX_EPOCH };
        let not_responding = outage(OutageCode::ServerNotResponding);
        let remote = error("vm1".into(), Some("default".into()), &not_responding, 42).hint;
        assert!(remote.contains("`ssh vm1 kill -CONT 42`") && remote.contains("`ssh vm1 ps "), "{remote}");
        let local = error(TargetName::LOCAL.into(), Some("default".into()), &not_responding, 42).hint;
        assert!(local.contains("`kill -CONT 42`"), "{local}");
    }
}
