//! Hooks in the user's tmux server that open an empty file of ours when something changes. Whoever watches that file is
//! told. No process is started for it, nothing is written, and when the file is gone nothing happens.
//!
//! They live at a high index of tmux's hook arrays, beside the user's own. A session with an array of its own hides the
//! global one, so there we add ours to it. All of it is taken away again, also what a daemon that was killed left behind.

mod plan;
mod shown;

use std::path::{Path, PathBuf};

use crate::command::{Command, Framing};
use crate::server::{TmuxError, TmuxServer};
use plan::Plan;
use shown::Shown;

/// What is worth a hint. Only hooks that tmux runs by itself: those that run after a command run inside the client of
/// whoever gave it.
const NAMES: [&str; 10] = [
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
pub struct Hooks {
    hint_file: PathBuf,
    command: String,
}

impl Hooks {
    /// `None` when the path has characters that would have to be quoted inside a hook, or is not marked as ours.
    pub fn new(hint_file: &Path) -> Option<Self> {
        let path = hint_file.to_str()?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+@,=".contains(&b);
        (hint_file.is_absolute() && path.ends_with(FILE_SUFFIX) && path.bytes().all(plain))
            .then(|| Self { hint_file: hint_file.to_owned(), command: hook_command(path) })
    }

    /// Makes the server's hooks what they should be. Done again when sessions come, it finds nothing to do.
    pub async fn install(&self, server: &TmuxServer) -> Result<(), TmuxError> {
        self.settle(server, Plan::install).await
    }

    /// Takes all of ours away.
    pub async fn remove(&self, server: &TmuxServer) -> Result<(), TmuxError> {
        self.settle(server, Plan::remove).await
    }

    async fn settle(&self, server: &TmuxServer, plan: fn(&Self, &Shown) -> Plan) -> Result<(), TmuxError> {
        for _ in 1..ATTEMPTS {
            match self.try_to_settle(server, plan).await {
                Err(TmuxError::Failed(_) | TmuxError::Unreadable(_)) => {}
                outcome => return outcome,
            }
        }
        self.try_to_settle(server, plan).await
    }

    async fn try_to_settle(&self, server: &TmuxServer, plan: fn(&Self, &Shown) -> Plan) -> Result<(), TmuxError> {
        let commands = plan(self, &Self::show(server).await?).commands();
        if commands.is_empty() {
            return Ok(());
        }
        server.run(&commands).await.map(drop)
    }

    async fn show(server: &TmuxServer) -> Result<Shown, TmuxError> {
        let framing = Framing::fresh();
        let sessions = Command::new("list-sessions").arg("-F").arg(framing.record('s', &["#{session_id}"]));
        let sessions = match whole_answer(server, vec![sessions], &framing).await {
            Ok(answer) => shown::session_ids(&framing, &answer),
            // A server may live without any session.
            Err(TmuxError::Failed(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut commands = vec![Command::new("show-hooks").arg("-g"), Command::new("show-hooks").arg("-gw")];
        for id in &sessions {
            commands.push(Command::display(&framing.record('s', &[&format!("${id}")]), None));
            commands.push(Command::new("show-hooks").arg("-t").arg(format!("${id}")));
        }
        let answer = whole_answer(server, commands, &framing).await?;
        Ok(Shown::parse(&framing, &answer))
    }

    fn is_ours(&self, value: &str) -> bool {
        hint_file_of(value).is_some_and(|file| file == self.hint_file)
    }
}

/// Half an answer would make a place of the user's look free, and leave ours behind in sessions that it lacks.
async fn whole_answer(
    server: &TmuxServer,
    mut commands: Vec<Command>,
    framing: &Framing,
) -> Result<Vec<u8>, TmuxError> {
    commands.push(Command::display(&framing.record('e', &["end"]), None));
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
        let hooks = Hooks::new(Path::new("/state/hooks/a.agtmux-hint")).expect("a plain path");
        assert!(hooks.is_ours(&hooks.command));
        let others = Hooks::new(Path::new("/other/hooks/a.agtmux-hint")).expect("a plain path");
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
            assert!(Hooks::new(Path::new(path)).is_none(), "{path}");
        }
    }
}
