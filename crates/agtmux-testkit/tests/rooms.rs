//! The rooms of the workspace know only whom they may know.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

const TESTKIT: &str = "agtmux-testkit";

/// Each crate and those of ours that it may depend on, besides the testkit for its tests.
const ROOMS: [(&str, &[&str]); 7] = [
    ("agtmux-core", &[]),
    ("agtmux-tmux", &[]),
    ("agtmux-agents", &["agtmux-core"]),
    ("agtmux-api", &["agtmux-core"]),
    ("agtmux-daemon", &["agtmux-agents", "agtmux-api", "agtmux-core", "agtmux-tmux"]),
    ("agtmux", &["agtmux-agents", "agtmux-api", "agtmux-core", "agtmux-daemon", "agtmux-tmux"]),
    (TESTKIT, &[]),
];

/// The places in the command line's sources that may name the daemon's crate.
const DAEMON_PLACES: [&str; 4] = ["commands/daemon.rs", "commands/daemon/", "commands/replay.rs", "commands/replay/"];

fn workspace() -> Metadata {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo describes the workspace")
}

fn ours(package: &Package, wanted: impl Fn(DependencyKind) -> bool) -> BTreeSet<String> {
    let known = |name: &String| ROOMS.iter().any(|(room, _)| room == name);
    let dependencies = package.dependencies.iter().filter(|dependency| wanted(dependency.kind));
    dependencies.map(|dependency| dependency.name.clone()).filter(known).collect()
}

#[test]
fn every_crate_is_a_room() {
    let found: BTreeSet<String> = workspace().workspace_packages().iter().map(|p| p.name.to_string()).collect();
    let expected: BTreeSet<String> = ROOMS.iter().map(|(room, _)| (*room).to_owned()).collect();
    assert_eq!(found, expected, "a new crate needs its line in ROOMS and in ARCHITECTURE.md");
}

#[test]
fn rooms_know_only_whom_they_may() {
    let metadata = workspace();
    for package in metadata.workspace_packages() {
        let (_, allowed) = ROOMS.iter().find(|(room, _)| package.name == *room).expect("every crate is a room");
        let built_in = ours(package, |kind| kind != DependencyKind::Development);
        let strangers: Vec<_> = built_in.iter().filter(|name| !allowed.contains(&name.as_str())).collect();
        assert!(strangers.is_empty(), "{} must not depend on {strangers:?}", package.name);
    }
}

#[test]
fn tests_know_the_testkit_besides() {
    let metadata = workspace();
    for package in metadata.workspace_packages() {
        let (_, allowed) = ROOMS.iter().find(|(room, _)| package.name == *room).expect("every crate is a room");
        let may = |name: &str| allowed.contains(&name) || (name == TESTKIT && package.name != TESTKIT);
        let for_tests = ours(package, |kind| kind == DependencyKind::Development);
        let strangers: Vec<_> = for_tests.iter().filter(|name| !may(name)).collect();
        assert!(strangers.is_empty(), "the tests of {} must not depend on {strangers:?}", package.name);
    }
}

#[test]
fn commands_reach_the_daemon_over_its_api_only() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agtmux/src");
    for file in rust_files(&sources) {
        let relative = file.strip_prefix(&sources).expect("below it").to_str().expect("plain names");
        let text = fs::read_to_string(&file).expect("readable");
        let may = DAEMON_PLACES.iter().any(|place| relative.starts_with(place));
        assert!(may || !text.contains("agtmux_daemon"), "{relative} must not name the daemon's crate");
    }
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable").path());
    let (dirs, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    dirs.iter().flat_map(|dir| rust_files(dir)).chain(files.into_iter().filter(is_rust)).collect()
}
