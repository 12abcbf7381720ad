//! Which runtime an event is about.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::fleet::Fleet;
use crate::ids::{AgentType, PaneId, ServerName, TargetName};
use crate::runtime::{Runtime, RuntimeId};
use crate::words::wire_words;

/// An agent may speak before its process is noticed; by no more than this.
const NOTICED_WITHIN: SignedDuration = SignedDuration::from_secs(5);

/// Where an event says that it comes from, when it does not know its runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    pub target: TargetName,
    /// Not known: any server of the target.
    pub server: Option<ServerName>,
    pub pane: PaneId,
    pub agent_type: Option<AgentType>,
    /// Processes that may be the agent: the sender's own parents, mostly.
    pub pids: Vec<u32>,
    pub start: Option<u64>,
}

wire_words!(
    /// Why an event belongs to no runtime.
    Unbound {
        NoCandidate => "bind_no_candidate",
        Ambiguous => "bind_ambiguous",
        Expired => "bind_ttl_expired",
    }
);

/// Exactly one runtime must fit, or none is taken.
pub fn bind(fleet: &Fleet, from: &Whereabouts, event_time: Timestamp) -> Result<RuntimeId, Unbound> {
    let servers = fleet.servers().filter(|(key, _)| {
        key.target == from.target && from.server.as_ref().is_none_or(|server| *server == key.server)
    });
    let runtimes = servers.filter_map(|(_, server)| server.panes.get(&from.pane)?.runtime.as_ref());
    let mut fitting = runtimes.filter(|runtime| fits(runtime, from, event_time));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only.id.clone()),
        (None, _) => Err(Unbound::NoCandidate),
        (Some(_), Some(_)) => Err(Unbound::Ambiguous),
    }
}

/// Whether any agent at all lives in the pane that is meant.
pub fn somebody_lives_at(fleet: &Fleet, from: &Whereabouts) -> bool {
    let anybody = Whereabouts { agent_type: None, pids: Vec::new(), start: None, ..from.clone() };
    bind(fleet, &anybody, Timestamp::MAX) != Err(Unbound::NoCandidate)
}

fn fits(runtime: &Runtime, from: &Whereabouts, event_time: Timestamp) -> bool {
    from.agent_type.as_ref().is_none_or(|agent| *agent == runtime.agent_type)
        && (from.pids.is_empty() || from.pids.contains(&runtime.process.pid))
        && from.start.is_none_or(|start| start == runtime.process.start)
        // What happened before it began is about somebody who lived there earlier.
        && runtime.started_at.duration_since(event_time) <= NOTICED_WITHIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{AgentSighting, Observation, PaneRow, ProcessSighting};
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
            fleet.apply(Observation::Listed { server: server.clone(), generation, rows: vec![row] }, at(100));
            let agent = AgentSighting {
                agent_type: AgentType::new("claude"),
                process: ProcessRef { pid: 50, start: 7 },
                suspended: false,
            };
            let sighting = ProcessSighting { pane: PaneId(0), pane_pid: 10, foreground: None, agent: Some(agent) };
            fleet.apply(Observation::Processes { server, generation, panes: vec![sighting] }, at(100));
        }
        fleet
    }

    fn from() -> Whereabouts {
        Whereabouts {
            target: TargetName::local(),
            server: None,
            pane: PaneId(0),
            agent_type: None,
            pids: vec![],
            start: None,
        }
    }

    #[test]
    fn one_that_fits_is_taken() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &from(), at(101)).is_ok());
        assert!(bind(&fleet, &Whereabouts { pids: vec![7, 50], start: Some(7), ..from() }, at(101)).is_ok());
    }

    #[test]
    fn hints_that_do_not_fit_rule_it_out() {
        let fleet = fleet(&["a"]);
        for wrong in [
            Whereabouts { pids: vec![51], ..from() },
            Whereabouts { start: Some(8), ..from() },
            Whereabouts { agent_type: Some(AgentType::new("codex")), ..from() },
            Whereabouts { pane: PaneId(1), ..from() },
            Whereabouts { server: Some(ServerName::new("b")), ..from() },
        ] {
            assert_eq!(bind(&fleet, &wrong, at(101)), Err(Unbound::NoCandidate), "{wrong:?}");
        }
    }

    #[test]
    fn the_same_pane_on_two_servers_is_ambiguous() {
        let fleet = fleet(&["a", "b"]);
        assert_eq!(bind(&fleet, &from(), at(101)), Err(Unbound::Ambiguous));
        assert!(bind(&fleet, &Whereabouts { server: Some(ServerName::new("b")), ..from() }, at(101)).is_ok());
    }

    #[test]
    fn an_event_from_before_it_began_is_somebody_elses() {
        let fleet = fleet(&["a"]);
        assert!(bind(&fleet, &from(), at(96)).is_ok(), "it may speak before it is noticed");
        assert_eq!(bind(&fleet, &from(), at(90)), Err(Unbound::NoCandidate));
    }
}
