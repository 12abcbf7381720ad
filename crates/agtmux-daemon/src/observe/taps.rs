//! Taps. A tap pipes the output of an agent to a program that reads escape codes which tmux does not store. Taps are
//! off unless `observe.osc_tap` is set, because tmux allows only one pipe per pane.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_api::paths::Paths;
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_tmux::TmuxServer;

use super::agent_map::AgentMap;
use super::watched_panes::WatchedPanes;

/// The delay before the next attempt if another program already reads the pane's pipe. If that program is the reader of
/// an earlier daemon, it exits a moment after that daemon.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_TRIES: u8 = 5;

/// The agents that have a tap or will get one.
pub(super) struct OutputTaps {
    /// `None` if taps are disabled, or if the path of agtmux or of the daemon's socket is unknown.
    reader: Option<TapReader>,
    taps: AgentMap<OutputTap>,
}

/// The paths of the program that reads the output and of the daemon's socket. The reader gets both paths on its command
/// line, because it runs with the environment of the tmux server and cannot look them up.
struct TapReader {
    program: PathBuf,
    daemon: PathBuf,
}

struct OutputTap {
    /// When to open the pipe. `None` once the pipe is open or agtmux has given up.
    open_at: Option<Instant>,
    tries: u8,
}

impl OutputTaps {
    pub(super) fn new(wanted: bool) -> Self {
        let reader = wanted.then(TapReader::find).flatten();
        if wanted && reader.is_none() {
            tracing::warn!("osc_tap reads nothing: the path of agtmux or of the daemon's socket is unknown");
        }
        Self { reader, taps: AgentMap::default() }
    }

    pub(super) fn follow(&mut self, panes: &WatchedPanes, registry: &AgentRegistry, now: Instant) {
        if self.reader.is_none() {
            return;
        }
        let emits_osc = |agent_type: &AgentType| registry.agent(agent_type.as_str()).is_some_and(|a| a.emits_osc());
        let found = panes.agents().filter(|(_, agent_type, _)| emits_osc(agent_type));
        self.taps.follow(found, |_, _| Some(OutputTap { open_at: Some(now), tries: 0 }));
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.taps.values().filter_map(|tap| tap.open_at).min()
    }

    /// Opens the pipes that are due.
    pub(super) async fn open(&mut self, tmux: &TmuxServer, now: Instant) {
        let Some(reader) = &self.reader else { return };
        for (pane, agent_type, process, tap) in self.taps.iter_mut() {
            if tap.open_at.is_none_or(|at| at > now) {
                continue;
            }
            let command = reader.command(pane, agent_type, process, tmux.socket().as_os_str());
            let opened = tmux.tap(pane, &command).await.unwrap_or(false);
            tap.tries += 1;
            tap.open_at = (!opened && tap.tries < MAX_TRIES).then_some(now + RETRY_DELAY);
            if !opened && tap.open_at.is_none() {
                tracing::info!(pane, "the pane is already piped to another program; osc_tap does not read it");
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

    /// The reader's command line. The reader exits when the agent or the daemon ends.
    fn command(&self, pane: u32, agent_type: &AgentType, process: ProcessRef, server: &OsStr) -> Vec<OsString> {
        let numbers = [pane, process.pid].map(|number| OsString::from(number.to_string()));
        let mut words = vec![self.program.clone().into_os_string()];
        words.extend(["hook", "--tap", agent_type.as_str()].map(OsString::from));
        words.extend(numbers);
        words.extend([server.to_owned(), self.daemon.clone().into_os_string()]);
        words
    }
}
