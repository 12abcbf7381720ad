//! Which runtime an event is about.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::fleet::{Fleet, PaneKey};
use crate::ids::{AgentType, PaneId, ProcessRef, ServerName, TargetName};
use crate::runtime::{Runtime, RuntimeId};
use crate::wire_enum::wire_enum;

/// An agent may speak before its process is noticed; by no more than this.
const MAX_DETECTION_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// For so long a pane's last agent may still have events on their way.
const RECENTLY_ENDED_FOR: SignedDuration = SignedDuration::from_secs(60);

/// Where an event says that it comes from, when it does not know its runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventOrigin {
    pub target: TargetName,
    /// Not known: any server of the target.
    pub server: Option<ServerName>,
    /// Not known: the processes have to tell.
    #[serde(default)]
    pub pane: Option<PaneId>,
    pub agent_type: Option<AgentType>,
    /// Processes that may be the agent: the sender's own parents, mostly.
    pub pids: Vec<u32>,
    pub start: Option<u64>,
    /// When each of them started, where that is known.
    #[serde(default)]
    pub starts: BTreeMap<u32, u64>,
    /// The agent's own session, and the directory in which it works.
    #[serde(default)]
    pub session: Option<String>,
    /// Those of its processes that have started the agent that it comes from: it is not about them.
    #[serde(default)]
    #[serde(alias = "above")]
    pub outer_pids: Vec<u32>,
    #[serde(default)]
    pub cwd: Option<String>,
}

impl EventOrigin {
    /// When its process of this number started, where it knows.
    fn start_of(&self, pid: u32) -> Option<u64> {
        self.start.or_else(|| self.starts.get(&pid).copied())
    }

    fn may_come_from(&self, process: ProcessRef) -> bool {
        self.pids.contains(&process.pid) || (self.pids.is_empty() && self.pane.is_some())
    }
}

wire_enum!(
    /// Why an event belongs to no runtime.
    BindFailure {
        NoCandidate => "bind_no_candidate",
        Ambiguous => "bind_ambiguous",
        Expired => "bind_ttl_expired",
    }
);

/// Panes whose agent has ended lately: what arrives for them may still be about that one.
#[derive(Debug, Default)]
pub struct RecentlyEnded(BTreeMap<PaneKey, (ProcessRef, Timestamp)>);

impl RecentlyEnded {
    pub fn record(&mut self, pane: PaneKey, process: ProcessRef, now: Timestamp) {
        self.0.retain(|_, (_, at)| now.duration_since(*at) < RECENTLY_ENDED_FOR);
        self.0.insert(pane, (process, now));
    }

    /// Whether it may be the one that had lived there a moment before that time.
    fn may_match(&self, pane: &PaneKey, from: &EventOrigin, time: Timestamp) -> bool {
        // Without a pane it may be any that has the number of one of its processes.
        let mut last = self.0.iter().filter(|(key, _)| from.pane.is_none() || *key == pane);
        last.any(|(_, (process, at))| time.duration_since(*at) < RECENTLY_ENDED_FOR && from.may_come_from(*process))
    }
}

/// Exactly one runtime must fit, or none is taken.
pub fn bind(
    fleet: &Fleet,
    moved_out: &RecentlyEnded,
    from: &EventOrigin,
    event_time: Timestamp,
) -> Result<RuntimeId, BindFailure> {
    let mut fitting =
        runtimes_at(fleet, from).filter(|(_, runtime)| !from.outer_pids.contains(&runtime.process.pid)).filter(
            |(pane, runtime)| matches_runtime(runtime, from, event_time, moved_out.may_match(pane, from, event_time)),
        );
    match (fitting.next(), fitting.next()) {
        (Some((_, only)), None) => Ok(only.id.clone()),
        (None, _) => Err(BindFailure::NoCandidate),
        (Some(_), Some(_)) => Err(BindFailure::Ambiguous),
    }
}

/// Whether any agent at all lives in the pane that is meant.
pub fn pane_has_agent(fleet: &Fleet, from: &EventOrigin) -> bool {
    from.pane.is_some() && runtimes_at(fleet, from).next().is_some()
}

/// Everywhere, where no pane is named.
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

fn matches_runtime(runtime: &Runtime, from: &EventOrigin, event_time: Timestamp, or_another: bool) -> bool {
    from.agent_type.as_ref().is_none_or(|agent| *agent == runtime.agent_type)
        && from.may_come_from(runtime.process)
        && match from.start_of(runtime.process.pid) {
            // No other process ever has both.
            Some(start) => start == runtime.process.start,
            None => within_lifetime(runtime, event_time, or_another),
        }
}

/// What happened before it began is about somebody who lived there earlier, or about itself before it was noticed. Where
/// the one who lived there a moment before may be meant, only a start time can tell the two apart.
fn within_lifetime(runtime: &Runtime, event_time: Timestamp, or_another: bool) -> bool {
    let allowed = if or_another { SignedDuration::ZERO } else { MAX_DETECTION_DELAY };
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

    fn nobody() -> RecentlyEnded {
        RecentlyEnded::default()
    }

    #[test]
    fn one_that_fits_is_taken() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &nobody(), &from(), at(101)).is_ok());
        assert!(bind(&fleet, &nobody(), &EventOrigin { pids: vec![7, 50], start: Some(7), ..from() }, at(101)).is_ok());
    }

    #[test]
    fn hints_that_do_not_fit_rule_it_out() {
        let fleet = fleet(&["a"]);
        for wrong in [
            EventOrigin { pids: vec![51], ..from() },
            EventOrigin { start: Some(8), ..from() },
            EventOrigin { agent_type: Some(AgentType::new("codex")), ..from() },
            EventOrigin { pane: Some(PaneId(1)), ..from() },
            EventOrigin { server: Some(ServerName::new("b")), ..from() },
        ] {
            assert_eq!(bind(&fleet, &nobody(), &wrong, at(101)), Err(BindFailure::NoCandidate), "{wrong:?}");
        }
    }

    #[test]
    fn the_same_pane_on_two_servers_is_ambiguous() {
        let fleet = fleet(&["a", "b"]);
        assert_eq!(bind(&fleet, &nobody(), &from(), at(101)), Err(BindFailure::Ambiguous));
        assert!(
            bind(&fleet, &nobody(), &EventOrigin { server: Some(ServerName::new("b")), ..from() }, at(101)).is_ok()
        );
    }

    #[test]
    fn an_event_from_before_it_began_is_somebody_elses() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &nobody(), &from(), at(96)).is_ok(), "it may speak before it is noticed");
        assert_eq!(bind(&fleet, &nobody(), &from(), at(90)), Err(BindFailure::NoCandidate));
    }

    #[test]
    fn what_may_be_about_the_last_inhabitant_needs_a_start_time() {
        let fleet = fleet(&["a"]);
        let pane = PaneKey {
            server: ServerKey { target: TargetName::local(), server: ServerName::new("a") },
            pane: PaneId(0),
        };
        let mut moved_out = RecentlyEnded::default();
        moved_out.record(pane.clone(), ProcessRef { pid: 50, start: 6 }, at(97));
        let with_pid = EventOrigin { pids: vec![50], ..from() };
        for unsure in [from(), with_pid.clone()] {
            assert_eq!(bind(&fleet, &moved_out, &unsure, at(98)), Err(BindFailure::NoCandidate), "{unsure:?}");
            assert!(bind(&fleet, &moved_out, &unsure, at(100)).is_ok(), "it had begun by then");
        }
        assert!(bind(&fleet, &moved_out, &EventOrigin { start: Some(7), ..with_pid.clone() }, at(98)).is_ok());
        moved_out.record(pane, ProcessRef { pid: 49, start: 6 }, at(97));
        assert!(bind(&fleet, &moved_out, &with_pid, at(98)).is_ok(), "the last one was another process");
        assert_eq!(
            bind(&fleet, &moved_out, &EventOrigin { start: Some(6), ..with_pid }, at(101)),
            Err(BindFailure::NoCandidate),
            "the number of the process was used again"
        );
    }

    #[test]
    fn a_start_time_binds_however_late_the_agent_is_noticed() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &nobody(), &EventOrigin { start: Some(7), ..from() }, at(75)).is_ok());
    }

    /// An event without a pane, from below these processes.
    fn below(pids: &[u32]) -> EventOrigin {
        EventOrigin { pane: None, pids: pids.to_vec(), ..from() }
    }

    #[test]
    fn without_a_pane_the_process_tells() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &nobody(), &below(&[900, 50, 10]), at(101)).is_ok());
        let exact = EventOrigin { starts: BTreeMap::from([(900, 8), (50, 7)]), ..below(&[900, 50]) };
        assert!(bind(&fleet, &nobody(), &exact, at(75)).is_ok(), "no other process ever has both");
        for nobodys in [
            below(&[]),
            below(&[900, 51]),
            EventOrigin { starts: BTreeMap::from([(50, 8)]), ..below(&[50]) },
            EventOrigin { agent_type: Some(AgentType::new("codex")), ..below(&[50]) },
            EventOrigin { server: Some(ServerName::new("b")), ..below(&[50]) },
        ] {
            assert_eq!(bind(&fleet, &nobody(), &nobodys, at(101)), Err(BindFailure::NoCandidate), "{nobodys:?}");
            assert!(!pane_has_agent(&fleet, &nobodys));
        }
    }

    #[test]
    fn without_a_pane_two_that_fit_are_not_guessed() {
        assert_eq!(bind(&fleet(&["a", "b"]), &nobody(), &below(&[50]), at(101)), Err(BindFailure::Ambiguous));
    }

    #[test]
    fn without_a_pane_one_that_ended_anywhere_may_be_meant() {
        let server = ServerKey { target: TargetName::local(), server: ServerName::new("a") };
        let mut moved_out = RecentlyEnded::default();
        moved_out.record(PaneKey { server, pane: PaneId(9) }, ProcessRef { pid: 50, start: 6 }, at(97));
        let fleet = fleet(&["a"]);
        assert_eq!(bind(&fleet, &moved_out, &below(&[50]), at(98)), Err(BindFailure::NoCandidate));
        assert!(bind(&fleet, &moved_out, &EventOrigin { start: Some(7), ..below(&[50]) }, at(98)).is_ok());
    }

    #[test]
    fn what_an_agent_within_it_says_is_not_about_an_agent() {
        let inner = EventOrigin { pids: vec![900, 50, 10], outer_pids: vec![50, 10], ..from() };
        let fleet = fleet(&["a"]);
        for from in [EventOrigin { pane: None, ..inner.clone() }, inner] {
            assert_eq!(bind(&fleet, &nobody(), &from, at(101)), Err(BindFailure::NoCandidate), "{from:?}");
        }
    }

    #[test]
    fn what_was_stored_with_a_pane_is_still_read() {
        let stored =
            r#"{"target": "host", "server": null, "pane": "%3", "agent_type": null, "pids": [5], "start": null}"#;
        let read: EventOrigin = serde_json::from_str(stored).expect("read");
        assert_eq!((read.pane, read.pids, read.starts.len()), (Some(PaneId(3)), vec![5], 0));
    }
}
