//! Reads the status files that agents write about themselves.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agtmux_agents::{AgentRegistry, AgentStatusFile};
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_tmux::platform::ProcessTable;
use jiff::Timestamp;
use serde_json::Value;

use super::agent_map::AgentMap;
use super::signal_router::{HintSender, ObserverHint, SignalRouter, WatchGuard};

/// The largest status file that is read.
const MAX_STATUS_BYTES: u64 = 64 << 10;

struct AgentFile {
    process: ProcessRef,
    /// Content from before this time is about an earlier process.
    process_started_at: Option<Timestamp>,
    path: PathBuf,
    spec: AgentStatusFile,
    watch: Option<WatchGuard>,
    content: Option<Vec<u8>>,
}

/// The status files of one server's agents.
#[derive(Default)]
pub(super) struct AgentStatusFiles {
    files: AgentMap<AgentFile>,
}

/// What changed in a status file.
pub(super) enum StatusFileChange {
    Updated {
        process: ProcessRef,
        event_type: String,
        payload: Value,
    },
    /// The file was removed.
    Gone(ProcessRef),
}

impl AgentStatusFiles {
    /// Updates the set of agents. Returns the panes of new agents, whose files should be read.
    pub(super) fn follow<'a>(
        &mut self,
        found: impl Iterator<Item = (u32, &'a AgentType, ProcessRef)>,
        registry: &AgentRegistry,
        table: &dyn ProcessTable,
    ) -> Vec<u32> {
        self.files.follow(found, |agent_type, process| {
            AgentFile::new(registry.agent(agent_type.as_str())?.status_file()?, process, table)
        })
    }

    /// Reads the status file of this pane's agent. Returns `None` if the file never existed, is incomplete, is
    /// unchanged, or belongs to an earlier process.
    pub(super) fn read(&mut self, pane: u32, router: &Arc<SignalRouter>, to: &HintSender) -> Option<StatusFileChange> {
        let file = self.files.get_mut(pane)?;
        file.watch(pane, router, to);
        let Some((content, modified)) = read(&file.path) else {
            return file.content.take().map(|_| StatusFileChange::Gone(file.process));
        };
        if file.content.as_ref() == Some(&content) {
            return None;
        }
        let payload = serde_json::from_slice(&content).ok()?;
        if !file.spec.is_about(&payload, (file.process.start, file.process_started_at), modified) {
            return None;
        }
        file.content = Some(content);
        Some(StatusFileChange::Updated { process: file.process, event_type: file.spec.event.clone(), payload })
    }
}

impl AgentFile {
    fn new(spec: &AgentStatusFile, process: ProcessRef, table: &dyn ProcessTable) -> Option<Self> {
        let root = agent_file_root(spec.root_variable.as_deref(), &spec.root, process, table)?;
        let path = root.join(spec.path.replace("{pid}", &process.pid.to_string()));
        let started_at = process_started_at(process, table);
        Some(Self { process, process_started_at: started_at, path, spec: spec.clone(), watch: None, content: None })
    }

    /// Watches the directory of the file. The directory may not exist before the first agent runs.
    fn watch(&mut self, pane: u32, router: &Arc<SignalRouter>, to: &HintSender) {
        if self.watch.is_none()
            && let Some(dir) = self.path.parent()
        {
            self.watch = router.watch_contents(dir, to, ObserverHint::AgentFileChanged(pane)).ok();
        }
    }
}

/// The directory of an agent's files: from the agent's environment, or else the default below its home.
pub(super) fn agent_file_root(
    variable: Option<&str>,
    below_home: &str,
    process: ProcessRef,
    table: &dyn ProcessTable,
) -> Option<PathBuf> {
    let value = |name: &str| table.environment_variable(process.pid, name).filter(|value| !value.is_empty());
    let usual = || Some(Path::new(&value("HOME").or_else(|| std::env::var_os("HOME"))?).join(below_home));
    variable.and_then(value).map(PathBuf::from).or_else(usual).filter(|root| root.is_absolute())
}

/// The wall clock time at which the process started.
pub(super) fn process_started_at(process: ProcessRef, table: &dyn ProcessTable) -> Option<Timestamp> {
    table.started_at(process.pid).and_then(|at| Timestamp::try_from(at).ok())
}

/// Opens a regular file of this user. Refuses symbolic links and does not block on FIFOs.
pub(super) fn open_own_file(path: &Path) -> Option<(File, u64)> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let ours = metadata.is_file() && metadata.uid() == rustix::process::getuid().as_raw();
    ours.then_some((file, metadata.len()))
}

/// The content of a file and its modification time.
fn read(path: &Path) -> Option<(Vec<u8>, Option<Timestamp>)> {
    let (file, _) = open_own_file(path).filter(|(_, length)| *length <= MAX_STATUS_BYTES)?;
    let modified = file.metadata().and_then(|metadata| metadata.modified()).ok();
    let mut content = Vec::new();
    file.take(MAX_STATUS_BYTES).read_to_end(&mut content).ok()?;
    Some((content, modified.and_then(|at| Timestamp::try_from(at).ok())))
}
