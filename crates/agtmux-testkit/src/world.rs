//! An isolated environment for one test.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tempfile::TempDir;

use crate::child::output_within;
use crate::environment::{TestEnvironment, WORLD_VARIABLE};
use crate::process;
use crate::tmux::TestTmuxServer;

/// How long a daemon, a tmux server and their children may take to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The exit code of `agtmux replay` if it finds a difference.
const REPLAY_DIFFERS: i32 = 1;

/// Files, environment variables, tmux servers and a daemon that only one test uses.
///
/// Dropping the world stops the daemon and kills the tmux servers. The test fails if a process of the world is left, or
/// if a replay of the engine log gives other states than the database. Declare the world before the variables that use
/// it: Rust drops variables in reverse order of their declaration.
#[derive(Debug)]
pub struct TestWorld {
    environment: Arc<TestEnvironment>,
    agtmux: Option<PathBuf>,
    shutdown_timeout: Duration,
    _dir: TempDir,
}

impl TestWorld {
    pub fn new() -> Self {
        // A socket path has at most about 100 bytes, and the path of the default temporary directory may be too long
        // for that.
        let dir = tempfile::Builder::new().prefix("agt-").tempdir_in("/tmp").expect("/tmp is writable");
        Self {
            environment: Arc::new(TestEnvironment::create_in(dir.path())),
            agtmux: None,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            _dir: dir,
        }
    }

    /// A world that uses this agtmux binary: `TestWorld::with_agtmux(env!("CARGO_BIN_EXE_agtmux"))`.
    pub fn with_agtmux(binary: impl Into<PathBuf>) -> Self {
        let mut world = Self::new();
        world.agtmux = Some(binary.into());
        world
    }

    /// Sets how long processes may still run after the world is dropped. Processes that run longer count as leaked.
    pub fn set_shutdown_timeout(&mut self, farewell: Duration) {
        self.shutdown_timeout = farewell;
    }

    /// A command that runs with the environment of this world, and with no other variables.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.environment.command(program)
    }

    #[track_caller]
    pub fn agtmux(&self) -> Command {
        self.command(self.agtmux.as_ref().expect("the world was created with `with_agtmux`"))
    }

    /// A tmux server with this name. The server starts when its first session is created.
    pub fn tmux(&self, name: &str) -> TestTmuxServer {
        TestTmuxServer::new(Arc::clone(&self.environment), name)
    }

    /// The id of this world. Every process of the world has it in its environment variable `AGTMUX_WORLD`.
    pub fn id(&self) -> &str {
        &self.environment.id
    }

    pub fn dir(&self) -> &Path {
        &self.environment.dir
    }

    pub fn home(&self) -> PathBuf {
        self.dir().join("home")
    }

    pub fn config_file(&self) -> PathBuf {
        self.dir().join("config/agtmux/config.toml")
    }

    pub fn state_dir(&self) -> PathBuf {
        self.dir().join("state")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir().join("run/agtmuxd.sock")
    }

    /// The first directory on the PATH of this world.
    pub fn bin(&self) -> PathBuf {
        self.dir().join("bin")
    }

    /// Puts a script under this name on the PATH of this world.
    #[track_caller]
    pub fn install_script(&self, name: &str, script: &str) {
        let (source, file) = (self.dir().join("tmp").join(name), self.bin().join(name));
        fs::write(&source, script).expect("the file is written");
        fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).expect("the mode is set");
        // Another process makes the copy. `shell_copy` explains why.
        let copied = self.command("cp").arg(&source).arg(&file).status();
        assert!(copied.is_ok_and(|status| status.success()), "a script can be copied");
    }

    /// The environment variables of every process of this world.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let text = |value: &std::ffi::OsString| value.to_string_lossy().into_owned();
        self.environment.variables().iter().map(|(name, value)| (*name, text(value))).collect()
    }

    /// The directory in which `tmux -L name` puts its sockets in this world.
    pub fn tmux_sockets(&self) -> PathBuf {
        self.environment.sockets()
    }

    /// A shell command that looks like an agent: its process has this name. It reads its input until the input ends.
    pub fn fake_agent_command(&self, name: &str) -> String {
        format!("exec {} -c 'while read -r line; do :; done'", self.shell_copy(name).display())
    }

    /// Makes a copy of the shell under another name. Returns the path of the copy.
    pub fn shell_copy(&self, name: &str) -> PathBuf {
        let program = self.home().join(name);
        // The executable of a running process cannot be overwritten.
        if program.exists() {
            return program;
        }
        // Not fs::copy: a process that another thread starts meanwhile would inherit the open file, and a file that is
        // open for writing cannot be executed.
        let copied = self.command("cp").arg("/bin/sh").arg(&program).status();
        assert!(copied.is_ok_and(|status| status.success()), "a shell can be copied");
        program
    }

    /// All living processes of this world.
    pub fn processes(&self) -> Vec<u32> {
        let ours = |pid: &u32| process::has_variable(*pid, WORLD_VARIABLE, self.id()) && process::is_alive(*pid);
        process::all().into_iter().filter(ours).collect()
    }

    /// The pids of the daemons of this world.
    pub fn daemons(&self) -> Vec<u32> {
        let candidates: Vec<u32> = self.processes().into_iter().filter(|pid| is_daemon(&process::argv(*pid))).collect();
        // Between fork and exec a child still looks like its parent.
        let has_daemon_parent = |pid: &u32| process::parent(*pid).is_some_and(|parent| candidates.contains(&parent));
        candidates.iter().copied().filter(|pid| !has_daemon_parent(pid)).collect()
    }

    fn stop_daemons(&self) {
        for pid in self.daemons() {
            self.signal(pid, Signal::TERM);
        }
        wait_until_empty(self.shutdown_timeout, || self.daemons());
    }

    fn kill_tmux_servers(&self) {
        let Ok(entries) = fs::read_dir(self.tmux_sockets()) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket())) {
            let mut kill = self.command("tmux");
            kill.arg("-S").arg(entry.path()).arg("kill-server");
            output_within(&mut kill, self.shutdown_timeout);
        }
    }

    /// Fails the test if a replay of the engine log gives other states than the database. Other failures of the replay
    /// are ignored, because a damaged database cannot be replayed.
    fn assert_replay_matches(&self) {
        let (Some(agtmux), database) = (&self.agtmux, self.state_dir().join("state.db")) else { return };
        if !database.exists() {
            return;
        }
        let mut replay = self.command(agtmux);
        let done = output_within(replay.arg("replay").arg("--db").arg(&database), self.shutdown_timeout);
        let differs = done.filter(|output| output.status.code() == Some(REPLAY_DIFFERS));
        if let Some(output) = differs {
            panic!("the replay gives other states than the database: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// Sends a signal to a process of this world. An unrelated process that reuses the pid gets no signal.
    fn signal(&self, pid: u32, signal: Signal) {
        let Some(Ok(handle)) = process::to_pid(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
        if process::has_variable(pid, WORLD_VARIABLE, self.id()) {
            // Fails only if the process has already ended.
            let _ = pidfd_send_signal(&handle, signal);
        }
    }
}

impl Drop for TestWorld {
    fn drop(&mut self) {
        for pid in self.processes() {
            self.signal(pid, Signal::CONT);
        }
        self.stop_daemons();
        self.kill_tmux_servers();
        let leaked = wait_until_empty(self.shutdown_timeout, || self.processes());
        let names: Vec<String> = leaked.iter().map(|pid| process::describe(*pid)).collect();
        for pid in leaked {
            self.signal(pid, Signal::KILL);
        }
        if thread::panicking() {
            return;
        }
        assert!(names.is_empty(), "the test left processes behind: {}", names.join(", "));
        self.assert_replay_matches();
    }
}

fn is_daemon(argv: &[Vec<u8>]) -> bool {
    let name = argv.first().and_then(|argv0| argv0.rsplit(|b| *b == b'/').next());
    match name {
        Some(b"agtmuxd") => true,
        Some(b"agtmux") => argv.len() > 2 && argv[1] == b"daemon" && argv[2] == b"run",
        _ => false,
    }
}

/// Polls until the list is empty or the time is up, and returns the last list. Does not panic at a timeout, because the
/// function is called while a value is dropped.
fn wait_until_empty(deadline: Duration, mut look: impl FnMut() -> Vec<u32>) -> Vec<u32> {
    let start = Instant::now();
    loop {
        let late = start.elapsed() >= deadline;
        let left = look();
        if left.is_empty() || late {
            return left;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
