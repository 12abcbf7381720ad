//! One tmux server: its socket, and how it is asked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::attach;
use crate::capture::{self, Capture};
use crate::command::{Command, Framing, chain};
use crate::input::{self, PaneGuard, Refused, TypeError, Typing};
use crate::listing::{self, Listing};
use crate::tap;
use crate::version::Version;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TmuxError {
    #[error("'{0}' is not installed")]
    NotInstalled(String),
    #[error("tmux could not be started: {0}")]
    Spawn(String),
    #[error("no server listens on its socket")]
    NoServer,
    #[error("the server did not answer within {0:?}")]
    Timeout(Duration),
    #[error("tmux said: {0}")]
    Failed(String),
    #[error("tmux answered with something that is no listing: {0}")]
    Unreadable(String),
}

/// More than any listing has; a server that sends more is not answering our question.
const LARGEST_ANSWER: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct TmuxServer {
    program: PathBuf,
    socket: PathBuf,
    timeout: Duration,
}

impl TmuxServer {
    pub fn new(program: impl Into<PathBuf>, socket: impl Into<PathBuf>, timeout: Duration) -> Self {
        Self { program: program.into(), socket: socket.into(), timeout }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How long a call may take.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout
    }

    /// Every pane, in one call.
    pub async fn list(&self) -> Result<Listing, TmuxError> {
        let framing = Framing::fresh();
        let answer = match self.run(&listing::list_all(&framing)).await {
            // A server may live without a session; it then has nothing that could be listed.
            Err(TmuxError::Failed(said)) if said.contains("no current target") => {
                self.run(&listing::read_some(&framing, &[])).await?
            }
            answer => answer?,
        };
        listing::parse_all(&framing, &answer)
    }

    /// Some panes, in one call. Panes that are gone are missing from the answer.
    pub async fn read(&self, panes: &[u32]) -> Result<Listing, TmuxError> {
        let framing = Framing::fresh();
        let answer = self.run(&listing::read_some(&framing, panes)).await?;
        let mut listing = listing::parse(&framing, &answer)?;
        let mut wanted: std::collections::BTreeSet<u32> = panes.iter().copied().collect();
        listing.rows.retain(|row| wanted.remove(&row.pane));
        Ok(listing)
    }

    /// What some panes show, in one call. Panes that are gone are missing from the answer, and may be the reason why
    /// others are.
    pub async fn capture(&self, panes: &[u32]) -> Result<Vec<Capture>, TmuxError> {
        let framing = Framing::fresh();
        let output = self.exec(&capture::capture(&framing, panes), None).await?;
        let captures = capture::parse(&framing, &output.stdout);
        match captures.is_empty() && !output.status.success() {
            true => Err(complaint(&String::from_utf8_lossy(&output.stderr))),
            false => Ok(captures),
        }
    }

    /// Gives what a pane writes to a program, too, unless somebody else has its pipe. Says whether it does.
    pub async fn tap(&self, pane: u32, argv: &[OsString]) -> Result<bool, TmuxError> {
        let framing = Framing::fresh();
        let answer = self.run(&tap::tap(&framing, pane, argv)).await?;
        Ok(!tap::was_taken(&framing, &answer))
    }

    /// Types, if the pane is still the one that was meant. What is typed in several steps may stop in between. Nothing is
    /// typed any more once this has returned, also not by a server that was stopped and goes on.
    pub async fn type_into(&self, guard: PaneGuard, typing: Typing<'_>) -> Result<(), TypeError> {
        let framing = Framing::fresh();
        for step in input::steps(guard.pane, typing) {
            let commands = step.commands(&framing, guard, input::given_up(SystemTime::now(), self.timeout));
            let answer = self.answer(&commands, step.paste.as_ref().map(|(_, text)| *text)).await;
            if let (Err(_), Some((buffer, _))) = (&answer, &step.paste) {
                self.forget(buffer);
            }
            input::outcome(&framing, guard, &answer?)?;
        }
        Ok(())
    }

    /// Whether that pane is there and has that process, dead or alive.
    pub async fn confirm(&self, guard: PaneGuard) -> Result<(), TypeError> {
        let framing = Framing::fresh();
        let answer = self.run(&[attach::confirm(&framing, guard)]).await?;
        input::outcome(&framing, guard, &answer)
    }

    /// Starts a program in a dead pane, if it is still that one and still dead. The pane's program before it is what the
    /// guard names.
    pub async fn respawn(&self, guard: PaneGuard, cwd: Option<&str>, command: &str) -> Result<(), TypeError> {
        let framing = Framing::fresh();
        let until = input::given_up(SystemTime::now(), self.timeout);
        let answer = self.run(&[input::respawn(&framing, guard, until, cwd, command)]).await?;
        match input::outcome(&framing, guard, &answer) {
            // It is the dead pane that was meant: all that is left is the time.
            Err(TypeError::Refused(Refused::Dead)) => Err(Refused::Late.into()),
            outcome => outcome,
        }
    }

    /// A call that was cut short may leave its buffer behind. It does no harm where the buffer is gone, and a server that
    /// is stopped does it when it goes on: nobody has to wait.
    fn forget(&self, buffer: &str) {
        let (server, forget) = (self.clone(), Command::new("delete-buffer").arg("-b").arg(buffer));
        tokio::spawn(async move { server.run(&[forget]).await });
    }

    /// The last lines of what a pane has shown, wrapped lines in one, with colours if asked for.
    pub async fn output(&self, pane: u32, lines: u32, colours: bool) -> Result<Option<Capture>, TmuxError> {
        let framing = Framing::fresh();
        let output = self.exec(&capture::output(&framing, pane, lines, colours), None).await?;
        let captures = capture::parse(&framing, &output.stdout);
        match captures.is_empty() && !output.status.success() {
            true => Err(complaint(&String::from_utf8_lossy(&output.stderr))),
            false => Ok(captures.into_iter().next()),
        }
    }

    /// Runs the commands in order in one call; the first that fails ends it.
    pub async fn run(&self, commands: &[Command]) -> Result<Vec<u8>, TmuxError> {
        self.answer(commands, None).await
    }

    async fn answer(&self, commands: &[Command], stdin: Option<&[u8]>) -> Result<Vec<u8>, TmuxError> {
        let output = self.exec(commands, stdin).await?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(complaint(&String::from_utf8_lossy(&output.stderr)))
    }

    /// The same, and the server is started where there is none.
    pub(crate) async fn run_starting(&self, commands: &[Command]) -> Result<Vec<u8>, TmuxError> {
        let output = self.exec_with(&["-u", "-S"], commands, None).await?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(complaint(&String::from_utf8_lossy(&output.stderr))),
        }
    }

    async fn exec(&self, commands: &[Command], stdin: Option<&[u8]>) -> Result<Output, TmuxError> {
        // -N: never start a server. -u: UTF-8 whatever the locale says, or text comes back damaged.
        self.exec_with(&["-u", "-N", "-S"], commands, stdin).await
    }

    async fn exec_with(&self, flags: &[&str], commands: &[Command], stdin: Option<&[u8]>) -> Result<Output, TmuxError> {
        let mut child = tokio::process::Command::new(&self.program)
            .args(flags)
            .arg(&self.socket)
            .args(chain(commands))
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| spawn_error(&self.program, &error))?;
        let (mut out, mut err, input) = (child.stdout.take(), child.stderr.take(), child.stdin.take());
        let all = async {
            let (stdout, stderr, ()) = tokio::join!(
                read_bounded(&mut out),
                read_bounded(&mut err),
                write_all(input, stdin.unwrap_or_default())
            );
            let status = child.wait().await.map_err(|e| TmuxError::Spawn(e.to_string()))?;
            Ok(Output { status, stdout: stdout?, stderr: stderr? })
        };
        tokio::time::timeout(self.timeout, all).await.unwrap_or(Err(TmuxError::Timeout(self.timeout)))
    }

    /// The version of the program, which is not always that of the server.
    pub async fn program_version(program: &Path, timeout: Duration) -> Result<Version, TmuxError> {
        let mut command = tokio::process::Command::new(program);
        command.arg("-V").stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(timeout, command.output()).await.map_err(|_| TmuxError::Timeout(timeout))?;
        let output = output.map_err(|error| spawn_error(program, &error))?;
        Ok(Version::parse(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// A tmux that did not read all of it fails, and says why.
async fn write_all(to: Option<tokio::process::ChildStdin>, bytes: &[u8]) {
    if let Some(mut to) = to {
        let _ = to.write_all(bytes).await;
    }
}

async fn read_bounded(from: &mut Option<impl tokio::io::AsyncRead + Unpin>) -> Result<Vec<u8>, TmuxError> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let read = from.take(LARGEST_ANSWER).read_to_end(&mut bytes).await;
        read.map_err(|e| TmuxError::Unreadable(e.to_string()))?;
    }
    if bytes.len() as u64 >= LARGEST_ANSWER {
        return Err(TmuxError::Unreadable(format!("more than {} MiB", LARGEST_ANSWER >> 20)));
    }
    Ok(bytes)
}

fn spawn_error(program: &Path, error: &std::io::Error) -> TmuxError {
    if error.kind() == std::io::ErrorKind::NotFound {
        TmuxError::NotInstalled(program.display().to_string())
    } else {
        TmuxError::Spawn(error.to_string())
    }
}

fn complaint(stderr: &str) -> TmuxError {
    let text = stderr.trim();
    let gone = ["no server running", "error connecting", "server exited", "lost server"];
    if gone.iter().any(|words| text.contains(words)) {
        return TmuxError::NoServer;
    }
    TmuxError::Failed(if text.is_empty() { "nothing, and failed".into() } else { text.chars().take(500).collect() })
}
