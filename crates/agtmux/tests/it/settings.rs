//! Settings files of agents in a world, and `agtmux setup` on them.

use std::fs;
use std::path::{Path, PathBuf};

use agtmux_testkit::TestWorld;

use agtmux_testkit::agtmux::{CommandResult, run};

pub(crate) const CLAUDE: &str = ".claude/settings.json";
pub(crate) const GEMINI: &str = ".gemini/settings.json";
pub(crate) const CODEX_HOOKS: &str = ".codex/hooks.json";
pub(crate) const CODEX_CONFIG: &str = ".codex/config.toml";
pub(crate) const CURSOR: &str = ".cursor/hooks.json";
pub(crate) const COPILOT: &str = ".copilot/hooks/agtmux.json";
pub(crate) const QWEN: &str = ".qwen/settings.json";

pub(crate) fn file(world: &TestWorld, name: &str) -> PathBuf {
    world.home().join(name)
}

pub(crate) fn put(world: &TestWorld, name: &str, text: &str) -> PathBuf {
    let path = file(world, name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("the world is writable");
    fs::write(&path, text).expect("the world is writable");
    path
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("readable")
}

pub(crate) fn setup(world: &TestWorld, args: &[&str]) -> CommandResult {
    run(world.agtmux().arg("setup").args(args))
}

#[track_caller]
pub(crate) fn setup_ok(world: &TestWorld, args: &[&str]) -> CommandResult {
    let done = setup(world, args);
    assert_eq!(done.code, Some(0), "{}{}", done.text(), done.stderr);
    done
}

pub(crate) fn backups(path: &Path) -> Vec<PathBuf> {
    let name = format!("{}.agtmux-backup-", path.file_name().expect("a name").to_string_lossy());
    let entries = fs::read_dir(path.parent().expect("a directory")).expect("readable").flatten();
    entries
        .map(|e| e.path())
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&name)))
        .collect()
}
