//! Finds the runtime that an event belongs to.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::fleet::{Fleet, PaneKey};
use crate::ids::{AgentType, PaneId, ProcessRef, ServerName, TargetName};
use crate::runtime::{Runtime, RuntimeId};
use crate::wire_enum::wire_enum;

/// The daemon may detect an agent's process up to this long after the agent's first event.
const MAX_DETECTION_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// Events of an agent may still arrive this long after the agent has ended.
const RECENTLY_ENDED_FOR: SignedDuration = SignedDuration::from_secs(60);

/// The facts that an event gives about its sender. They identify the runtime if the event does not name the runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventOrigin {
    pub target: TargetName,
    /// If `None`, the event may come from any server of the target.
    pub server: Option<ServerName>,
    /// `None` if the event names no pane. The processes in `pids` then identify the runtime.
    pub pane: Option<PaneId>,
    pub agent_type: Option<AgentType>,
    /// The pids of processes that may be the agent. Usually these are the ancestors of the process that sent the event.
    pub pids: Vec<u32>,
    pub start: Option<u64>,
    /// The start times of these processes by pid, as far as they are known.
    #[serde(default)]
    pub starts: BTreeMap<u32, u64>,
    /// The agent's own session id.
    pub session: Option<String>,
    /// The pids of the ancestors of the agent that sent the event. One of these processes may be another agent, which
    /// started the sending agent. The event is never bound to that other agent.
    #[serde(default, alias = "above")]
    pub outer_pids: Vec<u32>,
    pub cwd: Option<String>,
}

impl EventOrigin {
    /// The start time of the process with this pid, if known.
    fn start_of(&self, pid: u32) -> Option<u64> {
        self.start.or_else(|| self.starts.get(&pid).copied())
    }

    fn may_come_from(&self, process: ProcessRef) -> bool {
        self.pids.contains(&process.pid) || (self.pids.is_empty() && self.pane.is_some())
    }
}

wire_enum!(
    /// Why an event could not be bound to a runtime.
    BindFailure {
        NoCandidate => "bind_no_candidate",
        Ambiguous => "bind_ambiguous",
        Expired => "bind_ttl_expired",
    }
);

/// Panes whose agent ended recently. Events that arrive for such a pane may still be about that agent.
#[derive(Debug, Default)]
pub struct RecentlyEnded(BTreeMap<PaneKey, (ProcessRef, Timestamp)>);

impl RecentlyEnded {
    pub fn record(&mut self, pane: PaneKey, process: ProcessRef, now: Timestamp) {
        self.0.retain(|_, (_, at)| now.duration_since(*at) < RECENTLY_ENDED_FOR);
        self.0.insert(pane, (process, now));
    }

    /// Moves all times by `by`, because the clock of this machine was set.
    pub fn shift_clock(&mut self, by: SignedDuration) {
        self.0.values_mut().for_each(|(_, at)| *at = at.checked_add(by).unwrap_or(*at));
    }

    /// Whether the event may be about an agent that ended shortly before `time`.
    fn may_match(&self, pane: &PaneKey, from: &EventOrigin, time: Timestamp) -> bool {
        // An event that names no pane may be about any recently ended process with a matching pid.
        let mut last = self.0.iter().filter(|(key, _)| from.pane.is_none() || *key == pane);
        last.any(|(_, (process, at))| time.duration_since(*at) < RECENTLY_ENDED_FOR && from.may_come_from(*process))
    }
}

/// Binds the event to a runtime. Fails unless exactly one runtime matches.
pub fn bind(
    fleet: &Fleet,
    recently_ended: &RecentlyEnded,
    from: &EventOrigin,
    event_time: Timestamp,
) -> Result<RuntimeId, BindFailure> {
    let mut fitting = runtimes_at(fleet, from)
        .filter(|(_, runtime)| !from.outer_pids.contains(&runtime.process.pid))
        .filter(|(pane, runtime)| {
            matches_runtime(runtime, from, event_time, recently_ended.may_match(pane, from, event_time))
        });
    match (fitting.next(), fitting.next()) {
        (Some((_, only)), None) => Ok(only.id.clone()),
        (None, _) => Err(BindFailure::NoCandidate),
        (Some(_), Some(_)) => Err(BindFailure::Ambiguous),
    }
}

/// Whether the event names a pane that contains an agent or task.
pub fn pane_has_agent(fleet: &Fleet, from: &EventOrigin) -> bool {
    from.pane.is_some() && runtimes_at(fleet, from).next().is_some()
}

/// The pane that the event names. `None` if several panes match, if the pane is dead, or if it has an agent or task.
pub fn pane_without_agent(fleet: &Fleet, from: &EventOrigin) -> Option<PaneKey> {
    let id = from.pane?;
    let named = fleet.servers_on(&from.target).filter(|(key, server)| {
        from.server.as_ref().is_none_or(|name| *name == key.server) && server.panes.contains_key(&id)
    });
    let panes: Vec<PaneKey> = named.map(|(server, _)| PaneKey { server: server.clone(), pane: id }).collect();
    let [only] = panes.as_slice() else { return None };
    fleet.pane(only).filter(|pane| pane.runtime.is_none() && pane.dead.is_none()).map(|_| only.clone())
}

/// The runtimes on the event's target, limited to the server and the pane that the event names, if it names them.
fn runtimes_at<'f>(fleet: &'f Fleet, from: &'f EventOrigin) -> impl Iterator<Item = (PaneKey, &'f Runtime)> {
    let servers = fleet.servers().filter(|(key, _)| {
        key.target == from.target && from.server.as_ref().is_none_or(|server| *server == key.server)
    });
    let (first, last) = from.pane.map_or((PaneId(0), PaneId(u32::MAX)), |pane| (pane, pane));
    servers.flat_map(move |(key, server)| {
        let panes = server.panes.range(first..=last);
        panes.filter_map(|(id, pane)| Some((PaneKey { server: key.clone(), pane: *id }, pane.runtime.as_ref()?)))
    })
}

fn matches_runtime(runtime: &Runtime, from: &EventOrigin, event_time: Timestamp, maybe_previous: bool) -> bool {
    from.agent_type.as_ref().is_none_or(|agent| *agent == runtime.agent_type)
        && from.may_come_from(runtime.process)
        && match from.start_of(runtime.process.pid) {
            // A pid together with its start time is unique.
            Some(start) => start == runtime.process.start,
            None => within_lifetime(runtime, event_time, maybe_previous),
        }
}

/// Whether the event falls into the lifetime of the runtime. The agent may send its first event shortly before the
/// daemon detects the agent, so such an early event counts too. An early event does not count if `maybe_previous` is
/// set, because the event may then be about another agent, which ended recently.
fn within_lifetime(runtime: &Runtime, event_time: Timestamp, maybe_previous: bool) -> bool {
    let allowed = if maybe_previous { SignedDuration::ZERO } else { MAX_DETECTION_DELAY };
    runtime.started_at.duration_since(event_time) <= allowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{DetectedAgent, PaneProcess, PaneRow, TopologyUpdate};
    use crate::ids::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn fleet(servers: &[&str]) -> Fleet {
        let mut fleet = Fleet::default();
        for name in servers {
            let server = ServerKey { target: TargetName::local(), server: ServerName::new(*name) };
            let generation = Generation { pid: 1, start_time: 1 };
            let row = PaneRow {
                session: SessionId(0),
                session_name: "s".into(),
                window: WindowId(0),
                window_index: 0,
                window_name: "w".into(),
                pane: PaneId(0),
                pane_index: 0,
                pid: 10,
                tty: String::new(),
                dead: None,
                title: String::new(),
            };
            fleet.apply(TopologyUpdate::Listed { server: server.clone(), generation, rows: vec![row] }, at(100));
            let agent = DetectedAgent {
                agent_type: AgentType::new("claude"),
                process: ProcessRef { pid: 50, start: 7 },
                suspended: false,
                launch: Default::default(),
            };
            let sighting = PaneProcess { pane: PaneId(0), pane_pid: 10, foreground: None, agent: Some(agent) };
            fleet.apply(TopologyUpdate::Processes { server, generation, panes: vec![sighting] }, at(100));
        }
        fleet
    }

    fn from() -> EventOrigin {
        EventOrigin {
            target: TargetName::local(),
            server: None,
            pane: Some(PaneId(0)),
            agent_type: None,
            pids: vec![],
            start: None,
            starts: BTreeMap::new(),
            session: None,
            outer_pids: vec![],
            cwd: None,
        }
    }

    fn none_ended() -> RecentlyEnded {
        RecentlyEnded::default()
    }

    #[test]
    fn a_single_matching_runtime_is_bound() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &none_ended(), &from(), at(101)).is_ok());
        assert!(
            bind(&fleet, &none_ended(), &EventOrigin { pids: vec![7, 50], start: Some(7), ..from() }, at(101)).is_ok()
        );
    }

    #[test]
    fn a_mismatched_hint_excludes_the_runtime() {
        let fleet = fleet(&["a"]);
        for wrong in [
            EventOrigin { pids: vec![51], ..from() },
            EventOrigin { start: Some(8), ..from() },
            EventOrigin { agent_type: Some(AgentType::new("codex")), ..from() },
            EventOrigin { pane: Some(PaneId(1)), ..from() },
            EventOrigin { server: Some(ServerName::new("b")), ..from() },
        ] {
            assert_eq!(bind(&fleet, &none_ended(), &wrong, at(101)), Err(BindFailure::NoCandidate), "{wrong:?}");
        }
    }

    #[test]
    fn the_same_pane_on_two_servers_is_ambiguous() {
        let fleet = fleet(&["a", "b"]);
        assert_eq!(bind(&fleet, &none_ended(), &from(), at(101)), Err(BindFailure::Ambiguous));
        assert!(
            bind(&fleet, &none_ended(), &EventOrigin { server: Some(ServerName::new("b")), ..from() }, at(101)).is_ok()
        );
    }

    #[test]
    fn an_event_from_before_the_runtime_started_is_not_bound() {
        let fleet = fleet(&["a"]);
        assert!(
            bind(&fleet, &none_ended(), &from(), at(96)).is_ok(),
            "an agent may send an event before it is detected"
        );
        assert_eq!(bind(&fleet, &none_ended(), &from(), at(90)), Err(BindFailure::NoCandidate));
    }

    #[test]
    fn an_event_possibly_from_the_previous_agent_needs_a_start_time() {
        let fleet = fleet(&["a"]);
        let pane = PaneKey {
            server: ServerKey { target: TargetName::local(), server: ServerName::new("a") },
            pane: PaneId(0),
        };
        let mut recently_ended = RecentlyEnded::default();
        recently_ended.record(pane.clone(), ProcessRef { pid: 50, start: 6 }, at(97));
        let with_pid = EventOrigin { pids: vec![50], ..from() };
        for unsure in [from(), with_pid.clone()] {
            assert_eq!(bind(&fleet, &recently_ended, &unsure, at(98)), Err(BindFailure::NoCandidate), "{unsure:?}");
            assert!(bind(&fleet, &recently_ended, &unsure, at(100)).is_ok(), "the agent had started by then");
        }
        assert!(bind(&fleet, &recently_ended, &EventOrigin { start: Some(7), ..with_pid.clone() }, at(98)).is_ok());
        recently_ended.record(pane, ProcessRef { pid: 49, start: 6 }, at(97));
        assert!(bind(&fleet, &recently_ended, &with_pid, at(98)).is_ok(), "the previous agent had another pid");
        assert_eq!(
            bind(&fleet, &recently_ended, &EventOrigin { start: Some(6), ..with_pid }, at(101)),
            Err(BindFailure::NoCandidate),
            "the pid was reused"
        );
    }

    #[test]
    fn a_start_time_binds_even_if_the_agent_is_detected_late() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &none_ended(), &EventOrigin { start: Some(7), ..from() }, at(75)).is_ok());
    }

    /// The origin of an event that names no pane. `pids` are the ancestors of the event's sender.
    fn below(pids: &[u32]) -> EventOrigin {
        EventOrigin { pane: None, pids: pids.to_vec(), ..from() }
    }

    #[test]
    fn without_a_pane_the_process_identifies_the_runtime() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &none_ended(), &below(&[900, 50, 10]), at(101)).is_ok());
        let exact = EventOrigin { starts: BTreeMap::from([(900, 8), (50, 7)]), ..below(&[900, 50]) };
        assert!(bind(&fleet, &none_ended(), &exact, at(75)).is_ok(), "a pid with its start time is unique");
        for unmatched in [
            below(&[]),
            below(&[900, 51]),
            EventOrigin { starts: BTreeMap::from([(50, 8)]), ..below(&[50]) },
            EventOrigin { agent_type: Some(AgentType::new("codex")), ..below(&[50]) },
            EventOrigin { server: Some(ServerName::new("b")), ..below(&[50]) },
        ] {
            assert_eq!(
                bind(&fleet, &none_ended(), &unmatched, at(101)),
                Err(BindFailure::NoCandidate),
                "{unmatched:?}"
            );
            assert!(!pane_has_agent(&fleet, &unmatched));
        }
    }

    #[test]
    fn without_a_pane_two_matches_are_ambiguous() {
        assert_eq!(bind(&fleet(&["a", "b"]), &none_ended(), &below(&[50]), at(101)), Err(BindFailure::Ambiguous));
    }

    #[test]
    fn without_a_pane_an_agent_that_ended_in_any_pane_may_be_meant() {
        let server = ServerKey { target: TargetName::local(), server: ServerName::new("a") };
        let mut recently_ended = RecentlyEnded::default();
        recently_ended.record(PaneKey { server, pane: PaneId(9) }, ProcessRef { pid: 50, start: 6 }, at(97));
        let fleet = fleet(&["a"]);
        assert_eq!(bind(&fleet, &recently_ended, &below(&[50]), at(98)), Err(BindFailure::NoCandidate));
        assert!(bind(&fleet, &recently_ended, &EventOrigin { start: Some(7), ..below(&[50]) }, at(98)).is_ok());
    }

    #[test]
    fn events_of_a_nested_agent_are_not_bound_to_the_outer_agent() {
        let inner = EventOrigin { pids: vec![900, 50, 10], outer_pids: vec![50, 10], ..from() };
        let fleet = fleet(&["a"]);
        for from in [EventOrigin { pane: None, ..inner.clone() }, inner] {
            assert_eq!(bind(&fleet, &none_ended(), &from, at(101)), Err(BindFailure::NoCandidate), "{from:?}");
        }
    }

    #[test]
    fn an_agent_can_only_report_itself_in_one_pane_without_an_agent() {
        let ended = |name: &str| {
            let mut fleet = fleet(&["a", name]);
            for server in ["a", name] {
                let server = ServerKey { target: TargetName::local(), server: ServerName::new(server) };
                let generation = Generation { pid: 1, start_time: 1 };
                let sighting = PaneProcess { pane: PaneId(0), pane_pid: 10, foreground: None, agent: None };
                fleet.apply(TopologyUpdate::Processes { server, generation, panes: vec![sighting] }, at(101));
            }
            fleet
        };
        assert_eq!(pane_without_agent(&fleet(&["a"]), &from()), None, "the pane has an agent");
        assert_eq!(pane_without_agent(&ended("a"), &from()).map(|pane| pane.pane), Some(PaneId(0)));
        assert_eq!(pane_without_agent(&ended("b"), &from()), None, "two panes have this id");
        let exact = EventOrigin { server: Some(ServerName::new("b")), ..from() };
        assert!(pane_without_agent(&ended("b"), &exact).is_some_and(|pane| pane.server.server.as_str() == "b"));
        assert_eq!(pane_without_agent(&ended("a"), &EventOrigin { pane: None, ..from() }), None);
    }

    #[test]
    fn origins_stored_by_older_versions_are_still_read() {
        let stored =
            r#"{"target": "host", "server": null, "pane": "%3", "agent_type": null, "pids": [5], "start": null}"#;
        let read: EventOrigin = serde_json::from_str(stored).expect("read");
        assert_eq!((read.pane, read.pids, read.starts.len()), (Some(PaneId(3)), vec![5], 0));
    }
}
