//! Agents whose output is read for codes that tmux does not keep. Only where the settings ask for it: it takes the pane's
//! pipe, of which there is one.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_api::paths::Paths;
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_tmux::TmuxServer;

/// A pipe of the daemon before us closes by itself, a moment after that has ended.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_TRIES: u8 = 5;

/// Which agents have a tap, or are to get one.
pub(super) struct OutputTaps {
    /// None where no taps are wanted, or there is no program for it.
    reader: Option<TapReader>,
    pending: HashMap<TapKey, PendingTap>,
    done: HashSet<TapKey>,
}

/// What reads, and where it brings what it finds. It does not have our environment, but the tmux server's.
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
            tracing::warn!("osc_tap is on, but there is no 'agtmux' beside this program to read with; install both");
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
        for (pane, agent_type, process) in found.filter(|(_, agent_type, _)| registry.emits_osc(agent_type.as_str())) {
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
                    tracing::info!(pane = key.0, "its output is piped elsewhere; its codes are not read");
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
        let program = std::env::current_exe().ok()?;
        let daemon = Paths::from_env().ok()?.socket;
        program.is_file().then_some(Self { program, daemon })
    }

    /// It ends with the agent, or with us.
    fn command(&self, (pane, agent_type, process): &TapKey, server: &OsStr) -> Vec<OsString> {
        let numbers = [*pane, process.pid].map(|number| OsString::from(number.to_string()));
        let mut words = vec![self.program.clone().into_os_string()];
        words.extend(["hook", "--tap", agent_type.as_str()].map(OsString::from));
        words.extend(numbers);
        words.extend([server.to_owned(), self.daemon.clone().into_os_string()]);
        words
    }
}
