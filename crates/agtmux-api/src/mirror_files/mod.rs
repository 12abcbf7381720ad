//! The files of a shared terminal. Three processes share them: the daemon, the shell in the pane, and the reader of the
//! pane's output. After a restart, the daemon learns from these files what happened while it was stopped.

mod events;
mod outputs;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agtmux_core::mirror::{MirrorShell, ScreenPrompt};
use serde::{Deserialize, Serialize};

pub use events::{MirrorEventFollower, MirrorEventLine, MirrorEventWriter};
pub use outputs::{MirrorOutput, MirrorOutputWriter};

use crate::files::{open_no_follow, read_plain_no_follow};
use crate::task_files::{create_fresh, write_atomically};

/// The specification of a shared terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorSpec {
    pub mirror_id: String,
    /// A secret that each mark contains. Marks are escape sequences in the shell's output that show where a command
    /// starts and ends. Without the secret, other programs could forge marks.
    pub nonce: String,
    pub shell: MirrorShell,
    /// The path of the shell.
    pub program: String,
    pub cwd: String,
    /// The tmux server's socket.
    pub socket: String,
    pub server_pid: u32,
    pub server_start: i64,
    /// The session in which the terminal was made, such as `$3`.
    pub session: String,
    pub pane: u32,
    /// The pane for which the terminal was made.
    pub for_pane: Option<u32>,
    /// The shell's pid and start time. None before the shell runs.
    pub process: Option<(u32, u64)>,
    /// Whether the pane existed before, and agtmux must not close it.
    #[serde(default)]
    pub adopted: bool,
}

/// A request to run a command. It is stored before the command is typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorExecRecord {
    pub exec: String,
    pub command: String,
    pub cwd: Option<String>,
    /// The type of the agent that made the request. Processes that the command starts count as processes of that agent.
    pub agent: Option<String>,
    /// When agtmux began to type the command.
    pub typed_at: jiff::Timestamp,
    /// When agtmux will interrupt the command, unless it has ended by then.
    pub deadline: jiff::Timestamp,
}

/// A shell that an agent has used. Until the shell ends, everything that it starts counts as started by the agent, also
/// after its pane is no shared terminal any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentShellRecord {
    /// The shell's pid and start time.
    pub process: (u32, u64),
    /// The type of the agent.
    pub agent: String,
}

/// The maximum size of a specification.
const MAX_SPEC_BYTES: u64 = 64 << 10;

/// The files of one shared terminal, in a directory of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorFiles {
    dir: PathBuf,
}

impl MirrorFiles {
    pub fn in_dir(mirrors: &Path, mirror_id: &str) -> Self {
        Self { dir: mirrors.join(mirror_id) }
    }

    pub fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates the directory, accessible only to the current user.
    pub fn create(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        builder.create(&self.dir)?;
        builder.create(self.zsh_dir())?;
        builder.create(self.outputs_dir())
    }

    /// The file from which the shell reads the next command. Its first line is the id of the request. The other lines
    /// are the command.
    pub fn input(&self) -> PathBuf {
        self.dir.join("in")
    }

    /// The file with the variables for the next command, as lines of the shell.
    pub fn environment(&self) -> PathBuf {
        self.dir.join("env")
    }

    /// The file that the shell reads when it starts. zsh looks only for a file with a fixed name, so the file for zsh
    /// is in a separate directory.
    pub fn start(&self, shell: MirrorShell) -> PathBuf {
        match shell {
            MirrorShell::Zsh => self.zsh_dir().join(".zshenv"),
            MirrorShell::Bash | MirrorShell::Fish | MirrorShell::Posix => self.dir.join("start"),
        }
    }

    pub fn zsh_dir(&self) -> PathBuf {
        self.dir.join("zsh")
    }

    /// The file with the shell functions that write the marks.
    pub fn marks(&self) -> PathBuf {
        self.dir.join("marks")
    }

    /// The file to which a shell without a reader appends a line at each prompt: the exit code of the last command, and
    /// the number of rows of the prompt. A shell that can write marks writes these lines only if the file exists.
    pub fn codes(&self) -> PathBuf {
        self.dir.join("codes")
    }

    /// The file that a running shell reads when its pane becomes a shared terminal.
    pub fn adopt(&self) -> PathBuf {
        self.dir.join("adopt")
    }

    /// Whether the history of an adopted shell has kept the line that reads the file.
    pub fn has_history_entry(&self) -> bool {
        self.dir.join("stays").exists()
    }

    /// The file from which a shell without marks reads a command of several lines.
    pub fn script(&self) -> PathBuf {
        self.dir.join("command")
    }

    /// Stores the prompt that the screen last showed.
    pub fn write_prompt(&self, prompt: &ScreenPrompt) -> io::Result<()> {
        write_atomically(&self.dir.join("prompt"), &serde_json::to_vec(prompt)?)
    }

    pub fn read_prompt(&self) -> Option<ScreenPrompt> {
        serde_json::from_str(&read_plain_no_follow(&self.dir.join("prompt"), MAX_SPEC_BYTES).ok()?).ok()
    }

    pub fn events(&self) -> PathBuf {
        self.dir.join("events")
    }

    /// Adds events to those of the reader. Only for a terminal that has no reader.
    pub fn add_events(&self, lines: &[MirrorEventLine]) -> io::Result<()> {
        lines.iter().try_for_each(|line| events::append_line(&self.events(), line))
    }

    fn execs(&self) -> PathBuf {
        self.dir.join("execs")
    }

    /// The directory with the outputs of commands.
    pub fn outputs_dir(&self) -> PathBuf {
        self.dir.join("out")
    }

    /// Writes a file that only the current user can read.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_atomically(path, bytes)
    }

    pub fn write_spec(&self, spec: &MirrorSpec) -> io::Result<()> {
        write_atomically(&self.spec(), &serde_json::to_vec(spec)?)
    }

    pub fn read_spec(&self) -> io::Result<MirrorSpec> {
        Ok(serde_json::from_str(&read_plain_no_follow(&self.spec(), MAX_SPEC_BYTES)?)?)
    }

    fn spec(&self) -> PathBuf {
        self.dir.join("spec")
    }

    /// Withdraws any command that the shell has not read yet.
    pub fn clear_input(&self) -> io::Result<()> {
        write_atomically(&self.input(), b"")
    }

    /// Withdraws the command of this request. Returns false if the shell has already read the command.
    pub fn withdraw_input(&self, exec: &str) -> io::Result<bool> {
        let withdrawn = self.dir.join("in.withdrawn");
        // After the rename the shell finds no command.
        fs::rename(self.input(), &withdrawn)?;
        self.clear_input()?;
        let text = fs::read(&withdrawn)?;
        fs::remove_file(&withdrawn)?;
        Ok(text.split(|byte| *byte == b'\n').next() == Some(exec.as_bytes()))
    }

    /// Stores a request. The oldest requests are removed when the files with the requests are full.
    pub fn add_exec(&self, record: &MirrorExecRecord) -> io::Result<()> {
        events::append_line(&self.execs(), record)
    }

    /// The stored requests, oldest first.
    pub fn read_execs(&self) -> Vec<MirrorExecRecord> {
        events::read_lines(&self.execs())
    }

    /// Takes the lock that shows that the terminal has a reader. The lock lasts until the returned file is closed.
    pub fn lock_reader(&self) -> io::Result<fs::File> {
        let file = create_fresh(&self.dir.join("reader"))?;
        file.lock()?;
        Ok(file)
    }

    /// Whether a process reads the output of the terminal's pane.
    pub fn has_reader(&self) -> bool {
        open_no_follow(&self.dir.join("reader")).is_ok_and(|file| file.try_lock_shared().is_err())
    }

    fn agent_shell(&self) -> PathBuf {
        self.dir.join("agent")
    }

    pub fn write_agent_shell(&self, record: &AgentShellRecord) -> io::Result<()> {
        write_atomically(&self.agent_shell(), &serde_json::to_vec(record)?)
    }

    pub fn read_agent_shell(&self) -> Option<AgentShellRecord> {
        serde_json::from_str(&read_plain_no_follow(&self.agent_shell(), MAX_SPEC_BYTES).ok()?).ok()
    }

    fn stash(&self) -> PathBuf {
        self.dir.join("line")
    }

    /// Stores the half-written line of the person, before agtmux removes it from a prompt without marks.
    pub fn write_stash(&self, line: &str) -> io::Result<()> {
        write_atomically(&self.stash(), line.as_bytes())
    }

    /// The half-written line that has not been given back yet.
    pub fn read_stash(&self) -> Option<String> {
        read_plain_no_follow(&self.stash(), MAX_SPEC_BYTES).ok()
    }

    pub fn remove_stash(&self) {
        let _ = fs::remove_file(self.stash());
    }

    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.dir);
    }

    /// Whether the terminal is released, and only the record of its shell is left.
    pub fn is_released(&self) -> bool {
        self.agent_shell().exists() && !self.spec().exists()
    }

    /// Removes all files but the record of the shell that an agent has used.
    pub fn release(&self) {
        // Without its specification, the rest is no terminal any more, even if it cannot be removed now.
        let _ = fs::remove_file(self.spec());
        for path in fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path != self.agent_shell() {
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
    }
}
