//! Installs hooks in the user's tmux server. When something changes, a hook makes tmux read an empty file, the hint
//! file. The daemon watches this file and so notices the change. tmux starts no process to read the file, and a missing
//! file causes no error.
//!
//! The hooks use a high index of tmux's hook arrays and leave the user's hooks in place. If a session has its own
//! array, that array hides the global one. The hook is then added to the session's array too. `remove` deletes all of
//! these hooks, including those that a killed daemon left behind.

mod installed;
mod plan;

use std::path::{Path, PathBuf};

use crate::command::{Framing, TmuxCommand};
use crate::server::{TmuxError, TmuxServer};
use installed::InstalledHooks;
use plan::HookPlan;

/// The tmux hooks that read the hint file. tmux runs these hooks by itself when something changes. Hooks named
/// `after-*` are not used, because tmux runs them as part of a client's command.
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

/// The suffix of hint files. agtmux recognises its own hooks by this suffix.
pub const FILE_SUFFIX: &str = ".agtmux-hint";

/// The command of each hook. It makes tmux read the hint file, which is empty, as a configuration file. With `-q`, a
/// missing file is no error.
const HOOK_COMMAND: &str = "source-file -q ";

/// How many times a change of the hooks is attempted. An attempt fails if a session ends between the moment when its
/// hooks are read and the moment when they are changed.
const ATTEMPTS: u32 = 5;

/// The hooks of one daemon. Each of them makes tmux read the same hint file.
#[derive(Debug, Clone)]
pub struct HintHooks {
    hint_file: PathBuf,
    command: String,
}

impl HintHooks {
    /// Returns `None` if the path is relative, lacks the suffix of hint files, or would need quotes inside a hook.
    pub fn new(hint_file: &Path) -> Option<Self> {
        let path = hint_file.to_str()?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+@,=".contains(&b);
        (hint_file.is_absolute() && path.ends_with(FILE_SUFFIX) && path.bytes().all(plain))
            .then(|| Self { hint_file: hint_file.to_owned(), command: format!("{HOOK_COMMAND}{path}") })
    }

    /// Installs the hooks. Another call changes nothing unless sessions were added since.
    pub async fn install(&self, server: &TmuxServer) -> Result<(), TmuxError> {
        self.reconcile(server, true).await
    }

    /// Removes all hooks of this daemon, and all agtmux hooks whose hint file is gone.
    pub async fn remove(&self, server: &TmuxServer) -> Result<(), TmuxError> {
        self.reconcile(server, false).await
    }

    async fn reconcile(&self, server: &TmuxServer, wanted: bool) -> Result<(), TmuxError> {
        for _ in 1..ATTEMPTS {
            match self.try_reconcile(server, wanted).await {
                Err(TmuxError::Failed(_) | TmuxError::Unreadable(_)) => {}
                outcome => return outcome,
            }
        }
        self.try_reconcile(server, wanted).await
    }

    async fn try_reconcile(&self, server: &TmuxServer, wanted: bool) -> Result<(), TmuxError> {
        let commands = HookPlan::new(self, &Self::read_installed(server).await?, wanted).commands();
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
            // A server can run without a session; then `list-sessions` fails.
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

/// Runs the commands and fails if their output is incomplete. With incomplete output, a used index would look free, and
/// the hooks of some sessions would not be found.
async fn run_to_end_marker(
    server: &TmuxServer,
    mut commands: Vec<TmuxCommand>,
    framing: &Framing,
) -> Result<Vec<u8>, TmuxError> {
    commands.push(TmuxCommand::display(&framing.record('e', &["end"]), None));
    let answer = server.run(&commands).await?;
    if framing.records('e', &answer).is_empty() {
        return Err(TmuxError::Unreadable("the hook listing is incomplete".into()));
    }
    Ok(answer)
}

/// The path of the hint file in an agtmux hook. `None` if the hook belongs to the user.
fn hint_file_of(value: &str) -> Option<&Path> {
    let path = value.strip_prefix(HOOK_COMMAND)?.trim_matches(['"', '\'']);
    path.ends_with(FILE_SUFFIX).then(|| Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_hooks_are_recognised_by_their_file() {
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
