//! A place of its own for one test.

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

/// How long a daemon, a server and their children get to end when they are told to.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How `agtmux replay` ends when it finds a difference.
const REPLAY_DIFFERS: i32 = 1;

/// Files, environment, tmux servers and a daemon that no other test and no user shares.
///
/// When it is dropped, the daemon is told to end, the tmux servers are killed, and any process of this world that is
/// still there fails the test. So does a database whose log no longer gives the states that it holds. Declare it first: what is declared later is dropped earlier.
#[derive(Debug)]
pub struct TestWorld {
    environment: Arc<TestEnvironment>,
    agtmux: Option<PathBuf>,
    shutdown_timeout: Duration,
    _dir: TempDir,
}

impl TestWorld {
    #[expect(clippy::new_without_default, reason = "making one touches the disk")]
    pub fn new() -> Self {
        // A socket's path has about a hundred bytes, and the usual temporary directory may use them up.
        let dir = tempfile::Builder::new().prefix("agt-").tempdir_in("/tmp").expect("/tmp is writable");
        Self {
            environment: Arc::new(TestEnvironment::create_in(dir.path())),
            agtmux: None,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            _dir: dir,
        }
    }

    /// With the binary under test: `World::with_agtmux(env!("CARGO_BIN_EXE_agtmux"))`.
    pub fn with_agtmux(binary: impl Into<PathBuf>) -> Self {
        let mut world = Self::new();
        world.agtmux = Some(binary.into());
        world
    }

    /// Shortens the time that processes get to end before they count as left behind.
    pub fn set_shutdown_timeout(&mut self, farewell: Duration) {
        self.shutdown_timeout = farewell;
    }

    /// A command in this world's environment, and in no other.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.environment.command(program)
    }

    #[track_caller]
    pub fn agtmux(&self) -> Command {
        self.command(self.agtmux.as_ref().expect("World::with_agtmux says which binary"))
    }

    /// A tmux server under this name. It starts with its first session.
    pub fn tmux(&self, name: &str) -> TestTmuxServer {
        TestTmuxServer::new(Arc::clone(&self.environment), name)
    }

    /// The value that `AGTMUX_WORLD` has in every process of this world.
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

    /// Comes first on the PATH here.
    pub fn bin(&self) -> PathBuf {
        self.dir().join("bin")
    }

    /// Puts a script under this name on the PATH of this world.
    #[track_caller]
    pub fn install_script(&self, name: &str, script: &str) {
        let (source, file) = (self.dir().join("tmp").join(name), self.bin().join(name));
        fs::write(&source, script).expect("written");
        fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).expect("set");
        // By another process, for the reason that is told below at the copy of a shell.
        let copied = self.command("cp").arg(&source).arg(&file).status();
        assert!(copied.is_ok_and(|status| status.success()), "a script can be copied");
    }

    /// What every process here has in its environment.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let text = |value: &std::ffi::OsString| value.to_string_lossy().into_owned();
        self.environment.variables().iter().map(|(name, value)| (*name, text(value))).collect()
    }

    /// Where `tmux -L name` has its sockets here.
    pub fn tmux_sockets(&self) -> PathBuf {
        self.environment.sockets()
    }

    /// A shell command that looks like the program of this name in the process table and reads its input until it
    /// ends.
    pub fn fake_agent_command(&self, name: &str) -> String {
        format!("exec {} -c 'while read -r line; do :; done'", self.shell_copy(name).display())
    }

    /// A shell under another name.
    pub fn shell_copy(&self, name: &str) -> PathBuf {
        let program = self.home().join(name);
        // One that runs already cannot be written to.
        if program.exists() {
            return program;
        }
        // Not fs::copy: a process that another thread starts meanwhile would hold the file open for writing, and a
        // file that is open for writing cannot be executed.
        let copied = self.command("cp").arg("/bin/sh").arg(&program).status();
        assert!(copied.is_ok_and(|status| status.success()), "a shell can be copied");
        program
    }

    /// Every living process of this world.
    pub fn processes(&self) -> Vec<u32> {
        let ours = |pid: &u32| process::has_variable(*pid, WORLD_VARIABLE, self.id()) && process::is_alive(*pid);
        process::all().into_iter().filter(ours).collect()
    }

    /// The daemons of this world.
    pub fn daemons(&self) -> Vec<u32> {
        let alike: Vec<u32> = self.processes().into_iter().filter(|pid| is_daemon(&process::argv(*pid))).collect();
        // A child that has not yet become another program still looks like its parent.
        let begun_by_another = |pid: &u32| process::parent(*pid).is_some_and(|parent| alike.contains(&parent));
        alike.iter().copied().filter(|pid| !begun_by_another(pid)).collect()
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

    /// Whatever a test did, its log must give the states that were shown. A database that the test damaged cannot be
    /// replayed, and says so with another code.
    fn assert_replay_matches(&self) {
        let (Some(agtmux), database) = (&self.agtmux, self.state_dir().join("state.db")) else { return };
        if !database.exists() {
            return;
        }
        let mut replay = self.command(agtmux);
        let done = output_within(replay.arg("replay").arg("--db").arg(&database), self.shutdown_timeout);
        let differs = done.filter(|output| output.status.code() == Some(REPLAY_DIFFERS));
        if let Some(output) = differs {
            panic!("the log gives other states than were shown: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// Never hits a stranger that got the number of a process of ours.
    fn signal(&self, pid: u32, signal: Signal) {
        let Some(Ok(handle)) = process::to_pid(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
        if process::has_variable(pid, WORLD_VARIABLE, self.id()) {
            // Fails only when it has ended by now, which is what we want.
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

/// What is still there when it is gone, or when the time is up. Unlike a wait it does not fail: it runs in a drop.
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
