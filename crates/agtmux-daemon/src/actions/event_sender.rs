//! Finds the process that sent an event, and the agent that this process belongs to.
//!
//! Events arrive at a high rate, and most come from a few agents. The daemon therefore remembers the ancestors of a
//! process for a short time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agtmux_api::wire::EventSender;
use agtmux_core::text;
use agtmux_tmux::platform::ProcessTable;

use super::ancestry::{MAX_ANCESTORS, agent_among};
use super::origin::CallerOrigin;
use super::{Actions, RequestCaller};
use crate::store::StoredSender;

/// How long the daemon remembers the ancestors of a process. The time is short, because a process can become an agent
/// by executing another program.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// When the daemon remembers more processes than this, it forgets all of them.
const MAX_CACHED: usize = 4096;

/// A process and its ancestors.
#[derive(Debug, Default)]
struct SenderChain {
    program: Option<String>,
    /// The pids of the process and its ancestors, the process itself first.
    pids: Vec<u32>,
    /// The type of the nearest agent in the chain. For a process of a task, this may be the agent that started the
    /// task.
    agent: Option<String>,
    /// Whether the process table could not be read to the end of the chain. An agent may then be missing.
    is_cut: bool,
}

/// The chains of recent senders and of their ancestors, by pid and start time.
#[derive(Debug, Default)]
pub(super) struct SenderChains(Mutex<HashMap<(u32, u64), CachedChain>>);

/// A chain, and when it was read.
type CachedChain = (Instant, Arc<SenderChain>);

impl SenderChains {
    fn get(&self, process: (u32, u64)) -> Option<Arc<SenderChain>> {
        let chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, chain) = chains.get(&process)?;
        (at.elapsed() < CACHE_TTL).then(|| chain.clone())
    }

    fn insert(&self, process: (u32, u64), chain: Arc<SenderChain>) {
        let mut chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if chains.len() >= MAX_CACHED {
            chains.clear();
        }
        chains.insert(process, (Instant::now(), chain));
    }
}

impl Actions {
    /// The sender of an event. Reads the process table, so it may block.
    pub(crate) fn event_sender(&self, caller: &RequestCaller) -> StoredSender {
        let processes = self.0.discovery.processes();
        let pid = caller.peer.and_then(|peer| peer.pid);
        let chain = pid.map(|pid| self.sender_chain(&*processes, pid, MAX_ANCESTORS)).unwrap_or_default();
        let is_restricted = (chain.agent.is_some() || chain.is_cut) && !self.config().events.allow_from_other_agents;
        StoredSender {
            own_processes: is_restricted.then(|| chain.pids.clone()),
            shown: EventSender {
                uid: caller.peer.map(|peer| peer.uid),
                pid,
                program: chain.program.clone(),
                via: caller.via.into(),
                agent: chain.agent.clone(),
            },
        }
    }

    fn sender_chain(&self, processes: &dyn ProcessTable, pid: u32, depth: usize) -> Arc<SenderChain> {
        if pid <= 1 || depth == 0 {
            return Arc::default();
        }
        let known = processes.start_time(pid).and_then(|start| self.0.sender_chains.get((pid, start)));
        if let Some(known) = known {
            return known;
        }
        let process = match processes.try_process(pid) {
            Ok(Some(process)) => process,
            Ok(None) => return Arc::default(),
            Err(_) => return Arc::new(SenderChain { is_cut: true, ..SenderChain::default() }),
        };
        let parent = self.sender_chain(processes, process.ppid, depth - 1);
        let own_agent = agent_among(&self.0.discovery.registry(), std::slice::from_ref(&process));
        let agent_of_task = || match self.origin_of_wrapper(&process)? {
            CallerOrigin::Agent(agent) => Some(agent),
            _ => None,
        };
        let chain = Arc::new(SenderChain {
            program: Some(text::from_bytes(&process.name)),
            pids: [pid].into_iter().chain(parent.pids.iter().copied()).collect(),
            agent: own_agent.or_else(agent_of_task).or_else(|| parent.agent.clone()),
            is_cut: parent.is_cut,
        });
        if !chain.is_cut {
            self.0.sender_chains.insert((pid, process.start), chain.clone());
        }
        chain
    }
}
