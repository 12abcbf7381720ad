//! The environment of every process of a world.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable by which the processes of a world, and their descendants, can be recognised.
pub(crate) const WORLD_VARIABLE: &str = "AGTMUX_WORLD";

/// The variables that a world takes over from the test process. Programs need them to run, or to measure coverage.
const INHERITED_VARIABLES: [&str; 4] = ["PATH", "RUST_BACKTRACE", "LLVM_PROFILE_FILE", "LD_LIBRARY_PATH"];

#[derive(Debug)]
pub(crate) struct TestEnvironment {
    pub(crate) id: String,
    pub(crate) dir: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl TestEnvironment {
    pub(crate) fn create_in(dir: &Path) -> Self {
        let id = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
        let new_dir = |name: &str| {
            let path = dir.join(name);
            fs::DirBuilder::new().mode(0o700).create(&path).expect("a new directory");
            path.into_os_string()
        };
        let mut variables = vec![
            ("HOME", new_dir("home")),
            ("XDG_CONFIG_HOME", new_dir("config")),
            ("XDG_STATE_HOME", new_dir("xdg-state")),
            ("XDG_DATA_HOME", new_dir("data")),
            ("XDG_CACHE_HOME", new_dir("cache")),
            ("XDG_RUNTIME_DIR", new_dir("run")),
            ("TMPDIR", new_dir("tmp")),
            ("AGTMUX_STATE_DIR", new_dir("state")),
            ("AGTMUX_SOCKET", dir.join("run/agtmuxd.sock").into_os_string()),
            ("TMUX_TMPDIR", dir.as_os_str().to_owned()),
            ("LANG", "C.UTF-8".into()),
            ("SHELL", "/bin/sh".into()),
            ("TERM", "xterm-256color".into()),
            (WORLD_VARIABLE, OsString::from(&id)),
        ];
        new_dir(&tmux_directory());
        let bin = new_dir("bin");
        variables.extend(INHERITED_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        for (_, path) in variables.iter_mut().filter(|(name, _)| *name == "PATH") {
            // Programs that a test installs come before those of the machine.
            let rest = std::mem::replace(path, bin.clone());
            path.push(":");
            path.push(rest);
        }
        Self { id, dir: dir.to_owned(), variables }
    }

    /// The directory in which tmux puts the sockets of this world.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.dir.join(tmux_directory())
    }

    pub(crate) fn variables(&self) -> &[(&'static str, OsString)] {
        &self.variables
    }

    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value))).current_dir(&self.dir);
        command
    }
}

fn tmux_directory() -> String {
    format!("tmux-{}", rustix::process::getuid().as_raw())
}
