//! The environment that every process of a world runs in.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Marks every process of a world, and all that descend from it.
pub(crate) const WORLD_VARIABLE: &str = "AGTMUX_WORLD";

/// Passed on: without these, programs are not found or coverage is not measured.
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
        let place = |name: &str| {
            let path = dir.join(name);
            fs::DirBuilder::new().mode(0o700).create(&path).expect("a new directory");
            path.into_os_string()
        };
        let mut variables = vec![
            ("HOME", place("home")),
            ("XDG_CONFIG_HOME", place("config")),
            ("XDG_STATE_HOME", place("xdg-state")),
            ("XDG_DATA_HOME", place("data")),
            ("XDG_CACHE_HOME", place("cache")),
            ("XDG_RUNTIME_DIR", place("run")),
            ("TMPDIR", place("tmp")),
            ("AGTMUX_STATE_DIR", place("state")),
            ("AGTMUX_SOCKET", dir.join("run/agtmuxd.sock").into_os_string()),
            ("TMUX_TMPDIR", dir.as_os_str().to_owned()),
            ("LANG", "C.UTF-8".into()),
            ("SHELL", "/bin/sh".into()),
            ("TERM", "xterm-256color".into()),
            (WORLD_VARIABLE, OsString::from(&id)),
        ];
        place(&tmux_directory());
        let bin = place("bin");
        variables.extend(INHERITED_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        for (_, path) in variables.iter_mut().filter(|(name, _)| *name == "PATH") {
            // What a test installs comes before what the machine has.
            let rest = std::mem::replace(path, bin.clone());
            path.push(":");
            path.push(rest);
        }
        Self { id, dir: dir.to_owned(), variables }
    }

    /// Where tmux itself would put the sockets of this world.
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
