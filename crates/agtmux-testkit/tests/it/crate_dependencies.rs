//! The crates of the workspace depend only on the allowed crates.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

const TESTKIT: &str = "agtmux-testkit";

/// Each crate and the workspace crates that it may depend on. Tests may also use the testkit.
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 10] = [
    ("agtmux-core", &[]),
    ("agtmux-tmux", &[]),
    ("agtmux-agents", &["agtmux-core"]),
    ("agtmux-api", &["agtmux-core"]),
    ("agtmux-client", &["agtmux-api", "agtmux-core"]),
    ("agtmux-daemon", &["agtmux-agents", "agtmux-api", "agtmux-core", "agtmux-tmux"]),
    ("agtmux-tui", &["agtmux-api", "agtmux-client", "agtmux-core"]),
    ("agtmux-mcp", &["agtmux-api", "agtmux-client", "agtmux-core"]),
    (
        "agtmux",
        &[
            "agtmux-agents",
            "agtmux-api",
            "agtmux-client",
            "agtmux-core",
            "agtmux-daemon",
            "agtmux-mcp",
            "agtmux-tmux",
            "agtmux-tui",
        ],
    ),
    (TESTKIT, &[]),
];

/// The source paths of the `agtmux` crate that may use the daemon crate.
const DAEMON_PATHS: [&str; 4] = ["commands/daemon.rs", "commands/daemon/", "commands/replay.rs", "commands/replay/"];

fn workspace() -> Metadata {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo describes the workspace")
}

fn workspace_dependencies(package: &Package, wanted: impl Fn(DependencyKind) -> bool) -> BTreeSet<String> {
    let known = |name: &String| ALLOWED_DEPENDENCIES.iter().any(|(listed, _)| listed == name);
    let dependencies = package.dependencies.iter().filter(|dependency| wanted(dependency.kind));
    dependencies.map(|dependency| dependency.name.clone()).filter(known).collect()
}

#[test]
fn every_crate_has_an_allow_list() {
    let found: BTreeSet<String> = workspace().workspace_packages().iter().map(|p| p.name.to_string()).collect();
    let expected: BTreeSet<String> = ALLOWED_DEPENDENCIES.iter().map(|(listed, _)| (*listed).to_owned()).collect();
    assert_eq!(found, expected, "a new crate needs a line in ALLOWED_DEPENDENCIES and in ARCHITECTURE.md");
}

#[test]
fn crates_depend_only_on_allowed_crates() {
    let metadata = workspace();
    for package in metadata.workspace_packages() {
        let (_, allowed) =
            ALLOWED_DEPENDENCIES.iter().find(|(listed, _)| package.name == *listed).expect("every crate is listed");
        let built_in = workspace_dependencies(package, |kind| kind != DependencyKind::Development);
        let forbidden: Vec<_> = built_in.iter().filter(|name| !allowed.contains(&name.as_str())).collect();
        assert!(forbidden.is_empty(), "{} must not depend on {forbidden:?}", package.name);
    }
}

#[test]
fn tests_depend_only_on_allowed_crates_and_the_testkit() {
    let metadata = workspace();
    for package in metadata.workspace_packages() {
        let (_, allowed) =
            ALLOWED_DEPENDENCIES.iter().find(|(listed, _)| package.name == *listed).expect("every crate is listed");
        let is_allowed = |name: &str| allowed.contains(&name) || (name == TESTKIT && package.name != TESTKIT);
        let for_tests = workspace_dependencies(package, |kind| kind == DependencyKind::Development);
        let forbidden: Vec<_> = for_tests.iter().filter(|name| !is_allowed(name)).collect();
        assert!(forbidden.is_empty(), "the tests of {} must not depend on {forbidden:?}", package.name);
    }
}

#[test]
fn commands_reach_the_daemon_only_over_its_api() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agtmux/src");
    for file in rust_files(&sources) {
        let relative =
            file.strip_prefix(&sources).expect("the file is below the source directory").to_str().expect("UTF-8");
        let text = fs::read_to_string(&file).expect("readable");
        let is_allowed = DAEMON_PATHS.iter().any(|path| relative.starts_with(path));
        assert!(is_allowed || !text.contains("agtmux_daemon"), "{relative} must not use the daemon crate");
    }
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable").path());
    let (dirs, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    dirs.iter().flat_map(|dir| rust_files(dir)).chain(files.into_iter().filter(is_rust)).collect()
}
