//! Hooks in the user's tmux server that open an empty file of ours when something changes. Whoever watches that file is
//! told. No process is started for it, nothing is written, and when the file is gone nothing happens.
//!
//! They live at a high index of tmux's hook arrays, beside the user's own. A session with an array of its own hides the
//! global one, so there we add ours to it. All of it is taken away again, also what a daemon that was killed left behind.

mod installed;
mod plan;

use std::path::{Path, PathBuf};

use crate::command::{Framing, TmuxCommand};
use crate::server::{TmuxError, TmuxServer};
use installed::InstalledHooks;
use plan::HookPlan;

/// What is worth a hint. Only hooks that tmux runs by itself: those that run after a command run inside the client of
/// whoever gave it.
const HOOK_NAMES: [&str; 10] = [
    "alert-bell",
    "pane-died",
    "pane-exited",
    "session-closed",
    "session-created",
    "session-renamed",
    "window-layout-changed",
    "window-linked",
    "window-renamed",
    "window-unlinked",
];

/// How the files of our hooks end: the mark by which the hooks are known.
pub const FILE_SUFFIX: &str = ".agtmux-hint";

/// Sessions end between a look and what is done about it; the next look sees that they did.
const ATTEMPTS: u32 = 5;

/// Our hooks, all opening one file.
#[derive(Debug, Clone)]
pub struct HintHooks {
    hint_file: PathBuf,
    command: String,
}

impl HintHooks {
    /// `None` when the path has characters that would have to be quoted inside a hook, or is not marked as ours.
    pub fn new(hint_file: &Path) -> Option<Self> {
        let path = hint_file.to_str()?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+@,=".contains(&b);
        (hint_file.is_absolute() && path.ends_with(FILE_SUFFIX) && path.bytes().all(plain))
            .then(|| Self { hint_file: hint_file.to_owned(), command: hook_command(path) })
    }

    /// Makes the server's hooks what they should be. Done again when sessions come, it finds nothing to do.
    pub async fn install(&self, server: &TmuxServer) -> Result<(), TmuxError> {
        self.reconcile(server, HookPlan::install).await
    }

    /// Takes all of ours away.
    pub async fn remove(&self, server: &TmuxServer) -> Result<(), TmuxError> {
        self.reconcile(server, HookPlan::remove).await
    }

    async fn reconcile(
        &self,
        server: &TmuxServer,
        plan: fn(&Self, &InstalledHooks) -> HookPlan,
    ) -> Result<(), TmuxError> {
        for _ in 1..ATTEMPTS {
            match self.try_reconcile(server, plan).await {
                Err(TmuxError::Failed(_) | TmuxError::Unreadable(_)) => {}
                outcome => return outcome,
            }
        }
        self.try_reconcile(server, plan).await
    }

    async fn try_reconcile(
        &self,
        server: &TmuxServer,
        plan: fn(&Self, &InstalledHooks) -> HookPlan,
    ) -> Result<(), TmuxError> {
        let commands = plan(self, &Self::read_installed(server).await?).commands();
        if commands.is_empty() {
            return Ok(());
        }
        server.run(&commands).await.map(drop)
    }

    async fn read_installed(server: &TmuxServer) -> Result<InstalledHooks, TmuxError> {
        let framing = Framing::fresh();
        let sessions = TmuxCommand::new("list-sessions").arg("-F").arg(framing.record('s', &["#{session_id}"]));
        let sessions = match run_to_end_marker(server, vec![sessions], &framing).await {
            Ok(answer) => installed::session_ids(&framing, &answer),
            // A server may live without any session.
            Err(TmuxError::Failed(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut commands = vec![TmuxCommand::new("show-hooks").arg("-g"), TmuxCommand::new("show-hooks").arg("-gw")];
        for id in &sessions {
            commands.push(TmuxCommand::display(&framing.record('s', &[&format!("${id}")]), None));
            commands.push(TmuxCommand::new("show-hooks").arg("-t").arg(format!("${id}")));
        }
        let answer = run_to_end_marker(server, commands, &framing).await?;
        Ok(InstalledHooks::parse(&framing, &answer))
    }

    fn is_ours(&self, value: &str) -> bool {
        hint_file_of(value).is_some_and(|file| file == self.hint_file)
    }
}

/// Half an answer would make a place of the user's look free, and leave ours behind in sessions that it lacks.
async fn run_to_end_marker(
    server: &TmuxServer,
    mut commands: Vec<TmuxCommand>,
    framing: &Framing,
) -> Result<Vec<u8>, TmuxError> {
    commands.push(TmuxCommand::display(&framing.record('e', &["end"]), None));
    let answer = server.run(&commands).await?;
    if framing.records('e', &answer).is_empty() {
        return Err(TmuxError::Unreadable("the hooks were not shown to their end".into()));
    }
    Ok(answer)
}

/// tmux reads the file as commands of the user's, of which it has none. -q: a file that is gone is no error.
fn hook_command(path: &str) -> String {
    format!("source-file -q {path}")
}

/// The file that a hook of agtmux opens; `None` for the user's own hooks.
fn hint_file_of(value: &str) -> Option<&Path> {
    let path = value.strip_prefix("source-file -q ")?.trim_matches(['"', '\'']);
    path.ends_with(FILE_SUFFIX).then(|| Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_hooks_are_known_by_their_file() {
        let hooks = HintHooks::new(Path::new("/state/hooks/a.agtmux-hint")).expect("a plain path");
        assert!(hooks.is_ours(&hooks.command));
        let others = HintHooks::new(Path::new("/other/hooks/a.agtmux-hint")).expect("a plain path");
        assert!(!hooks.is_ours(&others.command));
        assert!(!hooks.is_ours("display-message bell"));
        assert!(!hooks.is_ours("source-file -q /home/me/.tmux.conf"));
    }

    #[test]
    fn a_path_that_would_need_quoting_gets_no_hooks() {
        for path in [
            "/a b/c.agtmux-hint",
            "/a#{x}.agtmux-hint",
            "/a\"b.agtmux-hint",
            "/a;b.agtmux-hint",
            "/a'b.agtmux-hint",
            "rel/x.agtmux-hint",
            "/a/.tmux.conf",
        ] {
            assert!(HintHooks::new(Path::new(path)).is_none(), "{path}");
        }
    }
}
