//! Simulated remote hosts: each has a real sshd on loopback, its own home directory and its own tmux servers.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::child::{ChildGuard, output_within};
use crate::wait::wait_until;
use crate::{TestTmuxServer, TestWorld, process};

/// How long sshd may take to start or to end on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why hosts cannot be simulated on this machine, or None if they can. Tests that need hosts report the
/// reason and are skipped.
pub fn hosts_unavailable_reason() -> Option<String> {
    match sshd_program() {
        Some(_) => None,
        None => Some("sshd is not installed: run scripts/ensure-tools sshd".into()),
    }
}

fn sshd_program() -> Option<PathBuf> {
    ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"].iter().map(PathBuf::from).find(|path| path.exists())
}

/// The ssh key and the ssh configuration with which one hub reaches its hosts.
#[derive(Debug)]
pub struct TestHosts {
    dir: PathBuf,
    ssh_config: Mutex<String>,
}

/// Options of a host. The default host has only tmux and sh.
#[derive(Debug, Default, Clone)]
pub struct TestHostOptions {
    /// The agtmux binary installed on the host.
    pub agtmux: Option<PathBuf>,
    /// The login shell. Default: the shell of the user who runs the tests.
    pub shell: Option<PathBuf>,
    /// The address on which sshd listens. Default: `127.0.0.1`. Hosts behind a [`NetworkLink`](crate::NetworkLink) need
    /// another address.
    pub address: Option<String>,
    /// Words to put before the command that starts sshd, such as `ip netns exec NAME`.
    pub command_prefix: Vec<String>,
}

impl TestHosts {
    /// Sets up ssh for the hub in this world. The hub's `ssh` reads the configuration that is created here. It does not
    /// read the configuration of the user.
    pub fn for_hub(hub: &TestWorld) -> Self {
        let dir = hub.dir().join("ssh");
        fs::DirBuilder::new().mode(0o700).create(&dir).expect("a new directory");
        let hosts = Self { dir, ssh_config: Mutex::new(String::new()) };
        keygen(hub, &hosts.dir.join("key"));
        fs::write(hosts.config(), "").expect("the file is written");
        // ssh ignores HOME and looks up the home directory in the password file. The script therefore passes the
        // configuration with `-F`.
        let real = ["/usr/bin/ssh", "/usr/local/bin/ssh"].into_iter().find(|path| Path::new(path).exists());
        let real = real.expect("ssh is installed");
        let script = format!("#!/bin/sh\nexec {real} -F {} \"$@\"\n", hosts.config().display());
        hub.install_script("ssh", &script);
        hosts
    }

    /// The path of the `ssh_config` file.
    pub fn config(&self) -> PathBuf {
        self.dir.join("config")
    }

    /// Starts a host with tmux and sh only.
    #[track_caller]
    pub fn agentless(&self, alias: &str) -> TestHost {
        self.start(alias, TestHostOptions::default())
    }

    /// Starts a host on which agtmux is installed.
    #[track_caller]
    pub fn with_agtmux(&self, alias: &str, agtmux: impl Into<PathBuf>) -> TestHost {
        self.start(alias, TestHostOptions { agtmux: Some(agtmux.into()), ..TestHostOptions::default() })
    }

    #[track_caller]
    pub fn start(&self, alias: &str, options: TestHostOptions) -> TestHost {
        let world = match &options.agtmux {
            Some(agtmux) => {
                let world = TestWorld::with_agtmux(agtmux);
                std::os::unix::fs::symlink(agtmux, world.bin().join("agtmux")).expect("the symlink is created");
                world
            }
            None => TestWorld::new(),
        };
        let address = options.address.clone().unwrap_or_else(|| "127.0.0.1".into());
        let port = free_port();
        let dir = world.dir().join("sshd");
        fs::DirBuilder::new().mode(0o700).create(&dir).expect("a new directory");
        keygen(&world, &dir.join("host_key"));
        fs::copy(self.dir.join("key.pub"), dir.join("authorized_keys")).expect("the file is copied");
        let settings = sshd_settings(&world, &dir, &address, port, options.shell.as_deref());
        fs::write(dir.join("sshd_config"), settings).expect("the file is written");
        let host = TestHost {
            alias: alias.into(),
            address,
            port,
            command_prefix: options.command_prefix,
            sshd: Mutex::new(None),
            world,
        };
        self.register(&host);
        host.start_sshd();
        host
    }

    /// Adds another alias for the same host.
    pub fn alias(&self, host: &TestHost, alias: &str) {
        self.add_alias(alias, &host.address, host.port);
    }

    /// Gives this hub access to a host that belongs to the hub `owner`. `alias` is the name of the host on this hub.
    pub fn grant_access(&self, owner: &Self, host: &TestHost, alias: &str) {
        for file in ["key", "key.pub", "known_hosts"] {
            fs::copy(owner.dir.join(file), self.dir.join(file)).expect("the file is copied");
        }
        self.alias(host, alias);
    }

    fn register(&self, host: &TestHost) {
        let public = fs::read_to_string(host.dir().join("host_key.pub")).expect("the key exists");
        let file = self.dir.join("known_hosts");
        let mut known = fs::read_to_string(&file).unwrap_or_default();
        let _ = writeln!(known, "[{}]:{} {}", host.address, host.port, public.trim());
        fs::write(file, known).expect("the file is written");
        self.add_alias(&host.alias, &host.address, host.port);
    }

    fn add_alias(&self, alias: &str, address: &str, port: u16) {
        let mut ssh_config = self.ssh_config.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = self.dir.display();
        let _ = writeln!(
            ssh_config,
            "Host {alias}\n  HostName {address}\n  Port {port}\n  User {}\n  IdentityFile {dir}/key\n  IdentitiesOnly yes\n  \
             IdentityAgent none\n  UserKnownHostsFile {dir}/known_hosts\n  GlobalKnownHostsFile /dev/null\n  \
             StrictHostKeyChecking yes\n",
            user_name()
        );
        fs::write(self.config(), ssh_config.as_str()).expect("the file is written");
    }
}

/// A simulated host. Dropping it stops the host's sshd first, and then the processes of its world.
#[derive(Debug)]
pub struct TestHost {
    alias: String,
    address: String,
    port: u16,
    command_prefix: Vec<String>,
    sshd: Mutex<Option<ChildGuard>>,
    world: TestWorld,
}

impl TestHost {
    /// The name of the host in the hub's ssh configuration.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The world of the host, with its files, tmux servers and processes.
    pub fn world(&self) -> &TestWorld {
        &self.world
    }

    pub fn tmux(&self, name: &str) -> TestTmuxServer {
        self.world.tmux(name)
    }

    /// The log of the host's sshd.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir().join("log")).unwrap_or_default()
    }

    fn dir(&self) -> PathBuf {
        self.world.dir().join("sshd")
    }

    /// Starts the host's sshd. Tests also use this to start it again after [`kill_sshd`](Self::kill_sshd).
    #[track_caller]
    pub fn start_sshd(&self) {
        let dir = self.dir();
        let sshd = sshd_program().expect("sshd is installed");
        let mut words = self.command_prefix.clone();
        words.push(sshd.display().to_string());
        let mut command = self.world.command(&words[0]);
        command.args(&words[1..]).arg("-D").arg("-f").arg(dir.join("sshd_config")).arg("-E").arg(dir.join("log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            // sshd needs this directory for privilege separation. The package of the distribution creates it only when
            // it starts its own sshd.
            let _ = fs::DirBuilder::new().mode(0o755).create("/run/sshd");
        }
        let _ = fs::remove_file(dir.join("log"));
        let running = ChildGuard::start(&mut command);
        *self.sshd.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        wait_until("sshd to listen", ANSWER_TIMEOUT, || self.log().contains("Server listening"));
    }

    /// Kills the host's sshd and closes every ssh connection, as if sshd had crashed.
    pub fn kill_sshd(&self) {
        let pids = self.sshd_pids();
        let Some(mut running) = self.sshd.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let _ = running.kill();
        for pid in &pids {
            process::signal(*pid, Signal::KILL);
        }
        drop(running);
        wait_until("every sshd's end", ANSWER_TIMEOUT, || !pids.iter().any(|pid| process::is_alive(*pid)));
    }

    /// Stops every sshd process with SIGSTOP. The connections stay open, but the host does not answer any more.
    pub fn freeze(&self) {
        let pids = self.sshd_pids();
        for pid in &pids {
            process::signal(*pid, Signal::STOP);
        }
        wait_until("every sshd to stop", ANSWER_TIMEOUT, || pids.iter().all(|pid| process::is_stopped(*pid)));
    }

    pub fn thaw(&self) {
        for pid in self.sshd_pids() {
            process::signal(pid, Signal::CONT);
        }
    }

    /// The pids of all sshd processes of this host: the listener, and one or two processes for each connection.
    pub fn sshd_pids(&self) -> Vec<u32> {
        let is_sshd = |pid: &u32| {
            let argv = process::argv(*pid);
            argv.first().is_some_and(|word| word.starts_with(b"sshd") || word.ends_with(b"/sshd"))
        };
        // Look for descendants of the listener. `AGTMUX_WORLD` does not identify sshd processes, because sshd
        // overwrites its environment with its process title.
        let sshd = self.sshd.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(listener) = sshd.as_ref().map(|running| running.id()) else { return Vec::new() };
        [listener].into_iter().chain(process::descendants(listener)).filter(is_sshd).collect()
    }

    /// Runs a command on the host over ssh and returns its output.
    #[track_caller]
    pub fn run(&self, hub: &TestWorld, command: &str) -> String {
        let mut ssh = hub.command(hub.bin().join("ssh"));
        let output =
            output_within(ssh.args(["-T", "--", &self.alias, command]), ANSWER_TIMEOUT).expect("an answer in time");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.thaw();
        self.kill_sshd();
    }
}

fn sshd_settings(world: &TestWorld, dir: &Path, address: &str, port: u16, shell: Option<&Path>) -> String {
    let sshd_dir = dir.display();
    let mut settings = format!(
        "Port {port}\nListenAddress {address}\nHostKey {sshd_dir}/host_key\nAuthorizedKeysFile {sshd_dir}/authorized_keys\n\
         PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\nPrintMotd no\nMaxStartups 100\nMaxSessions 100\nLogLevel INFO\n"
    );
    let variables = world.variables().into_iter().map(|(name, value)| format!("\"{name}={value}\""));
    // sshd reads only the first SetEnv line.
    let _ = writeln!(settings, "SetEnv {}", variables.collect::<Vec<_>>().join(" "));
    if let Some(shell) = shell {
        // sshd runs the login shell of an account in the same way: with `-c` and the command, or with `-l`.
        let shell = shell.display();
        let _ = writeln!(
            settings,
            "ForceCommand if [ -n \"$SSH_ORIGINAL_COMMAND\" ]; then exec {shell} -c \"$SSH_ORIGINAL_COMMAND\"; else exec {shell} -l; fi"
        );
    }
    settings
}

fn keygen(world: &TestWorld, file: &Path) {
    let mut command = world.command("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "agtmux-test", "-f"]).arg(file);
    let made = output_within(&mut command, ANSWER_TIMEOUT).is_some_and(|output| output.status.success());
    assert!(made, "ssh-keygen creates a key");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("the mode is set");
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("the listener has an address").port()
}

fn user_name() -> String {
    let output = Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
