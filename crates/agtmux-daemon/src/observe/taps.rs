//! Pipes the output of agents to a reader of escape codes that tmux does not store. Only with `observe.osc_tap`,
//! because it uses the pane's only pipe.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_api::paths::Paths;
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_tmux::TmuxServer;

/// When to try again if the pane is already piped. The pipe of an earlier daemon closes a moment after that daemon has
/// ended.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_TRIES: u8 = 5;

/// The agents that have a tap or will get one.
pub(super) struct OutputTaps {
    /// `None` if taps are disabled or the `agtmux` program was not found.
    reader: Option<TapReader>,
    pending: HashMap<TapKey, PendingTap>,
    done: HashSet<TapKey>,
}

/// The program that reads the output, and the daemon's socket. Both are passed as arguments, because the reader has
/// the environment of the tmux server.
#[derive(Clone)]
struct TapReader {
    program: PathBuf,
    daemon: PathBuf,
}

type TapKey = (u32, AgentType, ProcessRef);

struct PendingTap {
    at: Instant,
    tries: u8,
}

impl OutputTaps {
    pub(super) fn new(wanted: bool) -> Self {
        let reader = wanted.then(TapReader::find).flatten();
        if wanted && reader.is_none() {
            tracing::warn!("osc_tap is on, but the path of this program is unknown; osc_tap reads nothing");
        }
        Self { reader, pending: HashMap::new(), done: HashSet::new() }
    }

    pub(super) fn follow<'a>(
        &mut self,
        found: impl Iterator<Item = (u32, &'a AgentType, ProcessRef)>,
        registry: &AgentRegistry,
        now: Instant,
    ) {
        if self.reader.is_none() {
            return;
        }
        let mut before = std::mem::take(&mut self.pending);
        let mut here = HashSet::new();
        let emits_osc = |agent_type: &AgentType| registry.agent(agent_type.as_str()).is_some_and(|a| a.emits_osc());
        for (pane, agent_type, process) in found.filter(|(_, agent_type, _)| emits_osc(agent_type)) {
            let key = (pane, agent_type.clone(), process);
            if !self.done.contains(&key) {
                let wanted = before.remove(&key).unwrap_or(PendingTap { at: now, tries: 0 });
                self.pending.insert(key.clone(), wanted);
            }
            here.insert(key);
        }
        self.done.retain(|key| here.contains(key));
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.pending.values().map(|wanted| wanted.at).min()
    }

    /// Opens the pipes that are due.
    pub(super) async fn open(&mut self, tmux: &TmuxServer, now: Instant) {
        let Some(reader) = self.reader.clone() else { return };
        let due: Vec<_> =
            self.pending.iter().filter(|(_, wanted)| wanted.at <= now).map(|(key, _)| key.clone()).collect();
        for key in due {
            let Some(mut wanted) = self.pending.remove(&key) else { continue };
            let command = reader.command(&key, tmux.socket().as_os_str());
            let opened = tmux.tap(key.0, &command).await.unwrap_or(false);
            wanted.tries += 1;
            if opened || wanted.tries == MAX_TRIES {
                if !opened {
                    tracing::info!(
                        pane = key.0,
                        "the pane is already piped to another program; osc_tap does not read it"
                    );
                }
                self.done.insert(key);
            } else {
                wanted.at = now + RETRY_DELAY;
                self.pending.insert(key, wanted);
            }
        }
    }
}

impl TapReader {
    fn find() -> Option<Self> {
        let program = crate::program::path();
        let daemon = Paths::from_env().ok()?.socket;
        program.is_file().then_some(Self { program, daemon })
    }

    /// The reader's command line. The reader ends with the agent or with the daemon.
    fn command(&self, (pane, agent_type, process): &TapKey, server: &OsStr) -> Vec<OsString> {
        let numbers = [*pane, process.pid].map(|number| OsString::from(number.to_string()));
        let mut words = vec![self.program.clone().into_os_string()];
        words.extend(["hook", "--tap", agent_type.as_str()].map(OsString::from));
        words.extend(numbers);
        words.extend([server.to_owned(), self.daemon.clone().into_os_string()]);
        words
    }
}
