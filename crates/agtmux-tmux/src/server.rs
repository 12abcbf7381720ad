//! One tmux server: its socket, and how agtmux runs commands on it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::attach;
use crate::capture::{self, Capture, PaneScreenCapture};
use crate::command::{Framing, TmuxCommand, chain_arguments};
use crate::host::{
    HostShell, MAX_TEXT_ALLOWANCE, ROUND_TRIP_ALLOWANCE, ShellError, ShellOutput, command_line, print_command,
};
use crate::input::{self, PaneGuard, PaneInput, TypeError, TypeRefusal};
use crate::listing::{self, ServerListing};
use crate::tap;
use crate::version::TmuxVersion;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TmuxError {
    #[error("'{0}' is not installed")]
    NotInstalled(String),
    #[error("could not start tmux: {0}")]
    Spawn(String),
    #[error("no tmux server is running on the socket")]
    NoServer,
    #[error("the tmux server did not answer within {0:?}")]
    Timeout(Duration),
    #[error("tmux failed: {0}")]
    Failed(String),
    #[error("unexpected output of tmux: {0}")]
    Unreadable(String),
    #[error("the host is unreachable: {0}")]
    Unreachable(String),
}

impl TmuxError {
    /// Whether this error means that the server has no session: the server was started without one, or it is about to
    /// exit.
    pub fn means_no_session(&self) -> bool {
        matches!(self, Self::Failed(message) if message.contains("no current target"))
    }
}

/// The maximum output of one tmux call. Every listing is smaller, so a server that sends more is misbehaving.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// `-N` keeps tmux from starting a server. `-u` forces UTF-8, because tmux damages text in other locales.
const NEVER_START_FLAGS: [&str; 2] = ["-u", "-N"];

#[derive(Debug, Clone)]
pub struct TmuxServer {
    program: PathBuf,
    socket: PathBuf,
    timeout: Duration,
    executor: Executor,
}

/// Where the tmux program runs.
#[derive(Debug, Clone)]
enum Executor {
    Local,
    Host(HostShell),
}

/// A call that sends text to another host gets one more second for every `MIN_BYTES_PER_SECOND` bytes of the text.
const MIN_BYTES_PER_SECOND: usize = 200_000;

impl TmuxServer {
    pub fn new(program: impl Into<PathBuf>, socket: impl Into<PathBuf>, timeout: Duration) -> Self {
        Self { program: program.into(), socket: socket.into(), timeout, executor: Executor::Local }
    }

    pub(crate) fn on_host(shell: HostShell, socket: impl Into<PathBuf>, timeout: Duration) -> Self {
        Self { program: shell.facts().tmux.clone(), socket: socket.into(), timeout, executor: Executor::Host(shell) }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Lists every pane in one call.
    pub async fn list(&self) -> Result<ServerListing, TmuxError> {
        let framing = Framing::fresh();
        let answer = match self.run(&listing::list_all(&framing)).await {
            // A server can run without a session; then `list-windows` fails.
            Err(error) if error.means_no_session() => self.run(&listing::list_some(&framing, &[])).await?,
            answer => answer?,
        };
        listing::parse_all(&framing, &answer)
    }

    /// Lists these panes in one call. The result omits panes that are gone.
    pub async fn read(&self, panes: &[u32]) -> Result<ServerListing, TmuxError> {
        let framing = Framing::fresh();
        let answer = self.run(&listing::list_some(&framing, panes)).await?;
        let mut listing = listing::parse(&framing, &answer)?;
        let mut wanted: std::collections::BTreeSet<u32> = panes.iter().copied().collect();
        listing.rows.retain(|row| wanted.remove(&row.pane));
        Ok(listing)
    }

    /// Captures these panes in one call. tmux stops at the first pane that is gone, so the result omits this pane and
    /// all later ones.
    pub async fn capture(&self, panes: &[u32]) -> Result<Vec<Capture>, TmuxError> {
        let framing = Framing::fresh();
        self.captures(&framing, &capture::capture_commands(&framing, panes)).await
    }

    async fn captures(&self, framing: &Framing, commands: &[TmuxCommand]) -> Result<Vec<Capture>, TmuxError> {
        let output = self.exec(commands, None).await?;
        let captures = capture::parse(framing, &output.stdout);
        match captures.is_empty() {
            true => self.check_status(&output).map(|()| captures),
            false => Ok(captures),
        }
    }

    /// Makes tmux send a copy of the pane's output to a program. Returns false if the pane already has a pipe.
    pub async fn tap(&self, pane: u32, argv: &[OsString]) -> Result<bool, TmuxError> {
        let framing = Framing::fresh();
        let answer = self.run(&tap::open_pipe(&framing, pane, argv)).await?;
        Ok(!tap::pipe_was_in_use(&framing, &answer))
    }

    /// Types into the pane if it still matches the guard. Several keys take one call each, and the first failed call
    /// ends the input. After this function has returned, tmux types nothing more, even if the tmux server was suspended
    /// and continues later.
    pub async fn type_into(&self, guard: PaneGuard, typing: PaneInput<'_>) -> Result<(), TypeError> {
        let framing = Framing::fresh();
        for step in input::steps(guard.pane, typing) {
            let text = step.paste.as_ref().map(|(_, text)| *text);
            let commands = step.commands(&framing, guard, self.deadline_second(text));
            let answer = self.run_with_stdin(&commands, text).await;
            if let (Err(_), Some((buffer, _))) = (&answer, &step.paste) {
                self.delete_buffer_in_background(buffer);
            }
            input::parse_outcome(&framing, guard, &answer?)?;
        }
        Ok(())
    }

    /// Checks that the pane exists and that its process is the one in the guard. The check also passes if this process
    /// has ended.
    pub async fn check_pane(&self, guard: PaneGuard) -> Result<(), TypeError> {
        let framing = Framing::fresh();
        let answer = self.run(&[attach::check_pane(&framing, guard)]).await?;
        input::parse_outcome(&framing, guard, &answer)
    }

    /// Starts a program in a dead pane, if the pane still matches the guard and is still dead. The guard contains the
    /// pid of the program that has ended.
    pub async fn respawn(&self, guard: PaneGuard, cwd: Option<&str>, command: &str) -> Result<(), TypeError> {
        let framing = Framing::fresh();
        let answer = self.run(&[input::respawn(&framing, guard, self.deadline_second(None), cwd, command)]).await?;
        match input::parse_outcome(&framing, guard, &answer) {
            // tmux refused although the pane is the expected dead one, so the deadline has passed.
            Err(TypeError::Refused(TypeRefusal::Dead)) => Err(TypeRefusal::TooLate.into()),
            outcome => outcome,
        }
    }

    /// Deletes the paste buffer that a failed call may have left behind. Deleting a missing buffer is harmless. The
    /// call runs in the background, because a suspended server answers only when it continues.
    fn delete_buffer_in_background(&self, buffer: &str) {
        let (server, forget) = (self.clone(), TmuxCommand::new("delete-buffer").arg("-b").arg(buffer));
        tokio::spawn(async move { server.run(&[forget]).await });
    }

    /// The screen of the pane and at most `lines` lines of its history. The rows of a wrapped line are joined. With
    /// `colours`, the result includes the colours.
    pub async fn output(&self, pane: u32, lines: u32, colours: bool) -> Result<Option<Capture>, TmuxError> {
        let framing = Framing::fresh();
        let commands = capture::history_commands(&framing, pane, lines, colours);
        Ok(self.captures(&framing, &commands).await?.into_iter().next())
    }

    /// Captures the screen of one pane with its size and its cursor. `None` if the pane is gone.
    pub async fn screen(&self, pane: u32) -> Result<Option<PaneScreenCapture>, TmuxError> {
        let framing = Framing::fresh();
        let output = self.exec(&capture::screen_commands(&framing, pane), None).await?;
        match capture::parse_screen(&framing, pane, &output.stdout) {
            None => self.check_status(&output).map(|()| None),
            screen => Ok(screen),
        }
    }

    /// Runs the commands in order in one call. The first failure ends the call.
    pub async fn run(&self, commands: &[TmuxCommand]) -> Result<Vec<u8>, TmuxError> {
        self.run_with_stdin(commands, None).await
    }

    async fn run_with_stdin(&self, commands: &[TmuxCommand], stdin: Option<&[u8]>) -> Result<Vec<u8>, TmuxError> {
        let output = self.exec(commands, stdin).await?;
        self.check_status(&output)?;
        Ok(output.stdout)
    }

    /// Runs the commands in one call. Starts the tmux server if none is running.
    pub(crate) async fn run_or_start_server(&self, commands: &[TmuxCommand]) -> Result<Vec<u8>, TmuxError> {
        let output = self.spawn(self.arguments(&["-u"], commands), None).await?;
        self.check_status(&output)?;
        Ok(output.stdout)
    }

    /// Runs the commands without a PATH. tmux gives a new pane the PATH of its client, if the client has one. Otherwise
    /// the pane gets the PATH of its session, which is the user's.
    pub(crate) async fn run_with_session_path(&self, commands: &[TmuxCommand]) -> Result<Vec<u8>, TmuxError> {
        let output = match &self.executor {
            Executor::Local => {
                let mut program = tokio::process::Command::new(program_path(&self.program));
                program.env_remove("PATH");
                self.spawn_program(program, self.arguments(&NEVER_START_FLAGS, commands), None).await?
            }
            Executor::Host(_) => self.exec(commands, None).await?,
        };
        self.check_status(&output)?;
        Ok(output.stdout)
    }

    /// When the caller gives up a call that begins now: a Unix time in seconds, by the clock of the host on which tmux
    /// runs.
    pub(crate) fn deadline_second(&self, stdin: Option<&[u8]>) -> u64 {
        let now = match &self.executor {
            Executor::Local => SystemTime::now(),
            Executor::Host(shell) => shell.now(),
        };
        input::deadline_second(now, self.call_timeout(stdin))
    }

    /// How long one tmux call may take on the host on which tmux runs.
    fn call_timeout(&self, stdin: Option<&[u8]>) -> Duration {
        match self.executor {
            Executor::Local => self.timeout,
            Executor::Host(_) => {
                let text = Duration::from_secs((stdin.map_or(0, <[u8]>::len) / MIN_BYTES_PER_SECOND) as u64);
                self.timeout + text.min(MAX_TEXT_ALLOWANCE)
            }
        }
    }

    async fn exec(&self, commands: &[TmuxCommand], stdin: Option<&[u8]>) -> Result<ShellOutput, TmuxError> {
        match &self.executor {
            Executor::Local => self.spawn(self.arguments(&NEVER_START_FLAGS, commands), stdin).await,
            Executor::Host(shell) => {
                let timeout = self.call_timeout(stdin);
                let line = self.shell_line(commands, stdin, timeout);
                Ok(shell.run_line(line, timeout + ROUND_TRIP_ALLOWANCE).await?)
            }
        }
    }

    /// Returns an error if the exit status means that the call failed.
    pub(crate) fn check_status(&self, answer: &ShellOutput) -> Result<(), TmuxError> {
        match (answer.status, &self.executor) {
            (0, _) => Ok(()),
            (127, Executor::Host(_)) => Err(TmuxError::NotInstalled(self.program.display().to_string())),
            // The exit statuses of `timeout` after it ended the program.
            (124 | 137, Executor::Host(_)) => Err(TmuxError::Timeout(self.timeout)),
            _ => Err(error_from_stderr(&String::from_utf8_lossy(&answer.stderr))),
        }
    }

    /// The arguments of the tmux program for one call.
    fn arguments(&self, flags: &[&str], commands: &[TmuxCommand]) -> Vec<OsString> {
        let socket = ["-S".into(), self.socket.clone().into_os_string()];
        flags.iter().map(OsString::from).chain(socket).chain(chain_arguments(commands)).collect()
    }

    /// The tmux call as a command line for the host's shell.
    pub(crate) fn shell_line(&self, commands: &[TmuxCommand], stdin: Option<&[u8]>, timeout: Duration) -> Vec<u8> {
        let mut line = stdin.map(|text| [print_command(text), b" | ".to_vec()].concat()).unwrap_or_default();
        if let Executor::Host(shell) = &self.executor
            && shell.facts().has_timeout
        {
            line.extend(format!("timeout -s KILL {} ", timeout.as_secs().max(1)).bytes());
        }
        let args = self.arguments(&NEVER_START_FLAGS, commands);
        let args = [self.program.as_os_str()].into_iter().chain(args.iter().map(OsString::as_os_str));
        line.extend(command_line(args));
        line
    }

    async fn spawn(&self, args: Vec<OsString>, stdin: Option<&[u8]>) -> Result<ShellOutput, TmuxError> {
        self.spawn_program(tokio::process::Command::new(&self.program), args, stdin).await
    }

    async fn spawn_program(
        &self,
        mut program: tokio::process::Command,
        args: Vec<OsString>,
        stdin: Option<&[u8]>,
    ) -> Result<ShellOutput, TmuxError> {
        let mut child = program
            .args(args)
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
            Ok(ShellOutput { stdout: stdout?, stderr: stderr?, status: status.code().unwrap_or(-1) })
        };
        tokio::time::timeout(self.timeout, all).await.unwrap_or(Err(TmuxError::Timeout(self.timeout)))
    }

    /// The version of the tmux program. The running server can have another version.
    pub async fn program_version(program: &Path, timeout: Duration) -> Result<TmuxVersion, TmuxError> {
        let mut command = tokio::process::Command::new(program);
        command.arg("-V").stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(timeout, command.output()).await.map_err(|_| TmuxError::Timeout(timeout))?;
        let output = output.map_err(|error| spawn_error(program, &error))?;
        Ok(TmuxVersion::parse(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// The path of a program that may be named without its directory. The name stays as it is if PATH does not have the
/// program.
fn program_path(program: &Path) -> PathBuf {
    let path = std::env::var_os("PATH").filter(|_| program.components().count() == 1);
    let found = path.iter().flat_map(std::env::split_paths).map(|dir| dir.join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| program.to_owned())
}

/// Writes the bytes to the stdin of tmux. Ignores write errors: tmux has then failed, and its error message names the
/// reason.
async fn write_all(to: Option<tokio::process::ChildStdin>, bytes: &[u8]) {
    if let Some(mut to) = to {
        let _ = to.write_all(bytes).await;
    }
}

async fn read_bounded(from: &mut Option<impl tokio::io::AsyncRead + Unpin>) -> Result<Vec<u8>, TmuxError> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let read = from.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).await;
        read.map_err(|e| TmuxError::Unreadable(e.to_string()))?;
    }
    if bytes.len() as u64 >= MAX_OUTPUT_BYTES {
        return Err(TmuxError::Unreadable(format!("it has more than {} MiB", MAX_OUTPUT_BYTES >> 20)));
    }
    Ok(bytes)
}

impl From<ShellError> for TmuxError {
    fn from(error: ShellError) -> Self {
        // A timeout also means that the host is unreachable: the connection is closed, and the result of tmux is
        // unknown.
        Self::Unreachable(error.to_string())
    }
}

fn spawn_error(program: &Path, error: &std::io::Error) -> TmuxError {
    if error.kind() == std::io::ErrorKind::NotFound {
        TmuxError::NotInstalled(program.display().to_string())
    } else {
        TmuxError::Spawn(error.to_string())
    }
}

fn error_from_stderr(stderr: &str) -> TmuxError {
    let text = stderr.trim();
    let no_server = ["no server running", "error connecting", "server exited", "lost server"];
    if no_server.iter().any(|message| text.contains(message)) {
        return TmuxError::NoServer;
    }
    TmuxError::Failed(if text.is_empty() { "no error message".into() } else { text.chars().take(500).collect() })
}
