//! The locations of agtmux's files.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

pub use crate::private_dir::{owned_dir, private_dir};

/// All file locations of agtmux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    pub config: PathBuf,
    pub state_dir: PathBuf,
    pub socket: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error(
        "neither HOME nor {0} is set, so agtmux has no directory for its files; set AGTMUX_STATE_DIR and AGTMUX_CONFIG"
    )]
    NoHome(&'static str),
    #[error("{} must be an absolute path, not '{}'", .0, .1.display())]
    NotAbsolute(&'static str, PathBuf),
    #[error("'{}' {why}, so agtmux does not use it; remove it, or set {variable} to another directory", path.display())]
    Unsafe { path: PathBuf, why: String, variable: &'static str },
    #[error(
        "'{}' {why}, who could replace '{}'; {remedy}set {variable} to a path below a directory that only you can \
         write to", dir.display(), path.display()
    )]
    UnsafeAncestor { dir: PathBuf, path: PathBuf, why: String, remedy: String, variable: &'static str },
    #[error("cannot use '{}': {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl Paths {
    pub fn from_env() -> Result<Self, PathError> {
        Self::resolve(|name| std::env::var_os(name).filter(|v| !v.is_empty()))
    }

    /// Takes each path from its `AGTMUX_*` variable. If that variable is not set, uses the directory that the XDG
    /// variable names, or the default directory below HOME.
    pub fn resolve(var: impl Fn(&'static str) -> Option<OsString>) -> Result<Self, PathError> {
        let absolute = |name: &'static str| -> Result<Option<PathBuf>, PathError> {
            match var(name).map(PathBuf::from) {
                Some(path) if path.is_absolute() => Ok(Some(path)),
                Some(path) => Err(PathError::NotAbsolute(name, path)),
                None => Ok(None),
            }
        };
        // The XDG specification requires relative paths to be ignored.
        let xdg = |name: &'static str| var(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let base_dir = |name: &'static str, below_home: &str| {
            xdg(name).or_else(|| Some(xdg("HOME")?.join(below_home))).ok_or(PathError::NoHome(name))
        };
        let config = match absolute("AGTMUX_CONFIG")? {
            Some(path) => path,
            None => base_dir("XDG_CONFIG_HOME", ".config")?.join("agtmux/config.toml"),
        };
        let state_override = absolute("AGTMUX_STATE_DIR")?;
        let state_dir = match &state_override {
            Some(path) => path.clone(),
            None => base_dir("XDG_STATE_HOME", ".local/state")?.join("agtmux"),
        };
        let socket = match absolute("AGTMUX_SOCKET")? {
            Some(path) => path,
            // Another state directory means another daemon, which must not share the default socket.
            None => match xdg("XDG_RUNTIME_DIR").filter(|_| state_override.is_none()) {
                Some(dir) => dir.join("agtmux/agtmuxd.sock"),
                None => state_dir.join("agtmuxd.sock"),
            },
        };
        Ok(Self { config, state_dir, socket })
    }

    /// The directory of the user's own agent manifests, next to the configuration file.
    pub fn agents_dir(&self) -> PathBuf {
        self.config.with_file_name("agents")
    }

    /// The directory of the control sockets of ssh connections. The path of a socket has a maximum length, so this
    /// directory is next to the daemon's socket, where paths are short.
    pub fn control_dir(&self) -> PathBuf {
        self.socket.with_file_name(CONTROL_DIR)
    }

    /// The owner id that agtmux stores in the tmux sessions that it creates. It identifies this user and this
    /// installation.
    pub fn task_owner(&self) -> String {
        let dir = self.tasks_dir();
        let bytes = dir.as_os_str().as_encoded_bytes();
        let dir_hash = bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{}:{dir_hash:016x}", rustix::process::geteuid().as_raw())
    }

    /// The lock files of the daemon: one beside the database and one beside the socket.
    pub fn locks(&self) -> Vec<PathBuf> {
        let mut of_socket = self.socket.clone().into_os_string();
        of_socket.push(".lock");
        vec![self.lock(), PathBuf::from(of_socket)]
    }

    /// Creates the daemon's directories, accessible only to the current user.
    pub fn prepare(&self) -> Result<(), PathError> {
        self.prepare_state_dir()?;
        private_dir(&self.hook_dir(), "AGTMUX_STATE_DIR")?;
        self.prepare_spool()?;
        private_dir(&self.tasks_dir(), "AGTMUX_STATE_DIR")?;
        private_dir(&self.prompts_dir(), "AGTMUX_STATE_DIR")?;
        private_dir(&self.tasks_dir().join("logs"), "AGTMUX_STATE_DIR")?;
        private_dir(&self.mirrors_dir(), "AGTMUX_STATE_DIR")?;
        if let Some(dir) = self.socket.parent() {
            private_dir(dir, "AGTMUX_SOCKET")?;
        }
        private_dir(&self.control_dir(), "AGTMUX_SOCKET")?;
        Ok(())
    }

    pub fn prepare_state_dir(&self) -> Result<(), PathError> {
        private_dir(&self.state_dir, "AGTMUX_STATE_DIR")
    }

    pub fn prepare_spool(&self) -> Result<(), PathError> {
        self.prepare_state_dir()?;
        private_dir(&self.spool_dir(), "AGTMUX_STATE_DIR")
    }
}

/// The name of the directory of the control sockets of ssh connections.
pub(crate) const CONTROL_DIR: &str = "ssh";

/// Defines a method for each file in the state directory, and the list of their names.
macro_rules! state_files {
    ($($(#[$doc:meta])* $method:ident => $name:literal,)+) => {
        pub(crate) const STATE_FILES: &[&str] = &[$($name),+];

        impl Paths {
            $($(#[$doc])* pub fn $method(&self) -> PathBuf { self.state_dir.join($name) })+
        }
    };
}

state_files! {
    database => "state.db",
    log => "agtmuxd.log",
    /// The file that the running daemon keeps locked.
    lock => "agtmuxd.lock",
    /// The directory of the files that tmux hooks write to. It is not below the runtime directory, because that
    /// directory is removed at logout while the tmux server and its hooks continue.
    hook_dir => "hooks",
    /// Events that did not reach the daemon, one file per event. The daemon reads each file as soon as the daemon
    /// notices it.
    spool_dir => "spool",
    /// The files of running tasks. From these files, the daemon also learns what the tasks did while it was stopped.
    tasks_dir => "tasks",
    /// The first prompts of new agents that are not ready for them yet.
    prompts_dir => "prompts",
    /// The files of shared terminals.
    mirrors_dir => "mirrors",
    /// The changes that `agtmux setup` made to agent settings. Setup needs this record to remove the changes again.
    setup_record => "setup.json",
    /// The same for the MCP server that `agtmux setup --mcp` registered.
    mcp_setup_record => "setup-mcp.json",
    /// The file that a running `agtmux setup` keeps locked.
    setup_lock => "setup.lock",
    /// What was notified, and what was held back: one line of JSON per event.
    notify_log => "notify.jsonl",
    /// The notices that were sent and can still be withdrawn.
    open_notices => "notify-open.json",
    /// Where tmux clients were before `agtmux next` and `agtmux attach` moved them.
    clients_dir => "clients",
    /// Recordings saved by `agtmux adapters record`.
    records_dir => "records",
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn paths(vars: &[(&'static str, &str)]) -> Result<Paths, PathError> {
        Paths::resolve(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(*v)))
    }

    #[test]
    fn defaults_are_below_home() {
        let p = paths(&[("HOME", "/h")]).expect("HOME is enough");
        assert_eq!(p.config, Path::new("/h/.config/agtmux/config.toml"));
        assert_eq!(p.agents_dir(), Path::new("/h/.config/agtmux/agents"));
        assert_eq!(p.database(), Path::new("/h/.local/state/agtmux/state.db"));
        assert_eq!(p.socket, Path::new("/h/.local/state/agtmux/agtmuxd.sock"));
    }

    #[test]
    fn xdg_directories_take_precedence_over_home() {
        let p = paths(&[
            ("HOME", "/h"),
            ("XDG_RUNTIME_DIR", "/run/u"),
            ("XDG_STATE_HOME", "/s"),
            ("XDG_CONFIG_HOME", "/c"),
        ])
        .expect("all there");
        assert_eq!(p.socket, Path::new("/run/u/agtmux/agtmuxd.sock"));
        assert_eq!(p.state_dir, Path::new("/s/agtmux"));
        assert_eq!(p.config, Path::new("/c/agtmux/config.toml"));
    }

    #[test]
    fn overrides_win_and_must_be_absolute() {
        let p = paths(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/u"), ("AGTMUX_STATE_DIR", "/x")]).expect("fine");
        assert_eq!(p.socket, Path::new("/x/agtmuxd.sock"));
        let moved = paths(&[("HOME", "/h"), ("AGTMUX_CONFIG", "/etc/mine.toml")]).expect("fine");
        assert_eq!(moved.agents_dir(), Path::new("/etc/agents"));
        assert!(matches!(paths(&[("HOME", "/h"), ("AGTMUX_SOCKET", "rel")]), Err(PathError::NotAbsolute(..))));
        assert!(matches!(paths(&[]), Err(PathError::NoHome(_))));
    }
}
