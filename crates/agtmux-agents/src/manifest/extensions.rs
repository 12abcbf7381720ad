//! The files of the directory `extensions`, which `agtmux setup` installs.

macro_rules! extension_files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../extensions/", $name)))),*]
    };
}

/// The names are relative to `extensions`. The last file of a package is removed last, and with it the directory.
const FILES: [(&str, &str); 26] = extension_files![
    "opencode/agtmux.js",
    "pi/bin/pi-tmux-session-name",
    "pi/bin/pi-tmux-task-run",
    "pi/extensions/agtmux/activity.ts",
    "pi/extensions/agtmux/command.ts",
    "pi/extensions/agtmux/follower.ts",
    "pi/extensions/agtmux/index.ts",
    "pi/extensions/agtmux/messages.ts",
    "pi/extensions/agtmux/mirror-command.ts",
    "pi/extensions/agtmux/mirror-exec.ts",
    "pi/extensions/agtmux/mirror.ts",
    "pi/extensions/agtmux/outbox.ts",
    "pi/extensions/agtmux/panel.ts",
    "pi/extensions/agtmux/pi-settings.ts",
    "pi/extensions/agtmux/program.ts",
    "pi/extensions/agtmux/session.ts",
    "pi/extensions/agtmux/settings.ts",
    "pi/extensions/agtmux/shell.ts",
    "pi/extensions/agtmux/state.ts",
    "pi/extensions/agtmux/tasks.ts",
    "pi/skills/tmux-task-manager/SKILL.md",
    "pi/skills/tmux-task-manager/tmux-task-run.sh",
    "pi/LICENSE-APACHE",
    "pi/LICENSE-MIT",
    "pi/README.md",
    "pi/package.json",
];

/// The text of a file.
pub(super) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of the files in a package, relative to its directory.
pub(super) fn package_files(package: &str) -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(move |(name, _)| name.strip_prefix(package)?.strip_prefix('/'))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Files of the package that only its developers need.
    const NOT_INSTALLED: [&str; 1] = ["tsconfig.json"];

    fn files_below(dir: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable").path());
        entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn every_file_of_the_pi_package_is_installed() {
        let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../extensions/pi"));
        let name = |path: PathBuf| path.strip_prefix(dir).expect("below").to_str().expect("UTF-8").to_owned();
        let is_installed = |name: &String| {
            !NOT_INSTALLED.contains(&name.as_str()) && !name.starts_with("test/") && !name.starts_with("node_modules/")
        };
        let mut wanted: Vec<String> = files_below(dir).into_iter().map(name).filter(is_installed).collect();
        let mut installed: Vec<&str> = package_files("pi").collect();
        wanted.sort();
        installed.sort_unstable();
        assert_eq!(installed, wanted);
    }
}
