//! Checks that the tests named in the documentation exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Rust sources as one text.
fn sources() -> String {
    rust_files(&root().join("crates")).iter().filter_map(|file| fs::read_to_string(file).ok()).collect()
}

/// The texts in backquotes: every second part of a text that is split at backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[track_caller]
fn assert_tests_exist(names: &[&str]) {
    let sources = sources();
    let missing: Vec<_> = names.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "these tests do not exist: {missing:?}");
}

#[track_caller]
fn assert_names_tests(page: &str, at_least: usize) {
    let page = fs::read_to_string(root().join(page)).expect("the page exists");
    let named = quoted(&page).filter_map(|text| text.rsplit("::").next());
    let names: Vec<&str> = named.filter(|name| is_test(name)).collect();
    assert!(names.len() > at_least, "the page names only {} tests", names.len());
    assert_tests_exist(&names);
}

#[test]
fn tests_named_in_tmux_traps_exist() {
    assert_names_tests("docs/dev/tmux-traps.md", 50);
}

#[test]
fn tests_named_in_tasks_exist() {
    assert_names_tests("docs/dev/tasks.md", 30);
}

/// There are 45 checks. Each names a test, a command that measures it, or the feature that it still needs.
#[test]
fn every_check_names_an_existing_test() {
    assert_names_tests("docs/dev/checks.md", 70);
    let page = fs::read_to_string(root().join("docs/dev/checks.md")).expect("the page exists");
    let rows: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("| id")).skip(2).collect();
    assert_eq!(rows.len(), 45);
    for row in rows {
        let tests = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let is_held = quoted(tests).any(|text| is_test(text.rsplit("::").next().unwrap_or_default()));
        assert!(is_held || tests.starts_with("open: ") || tests == "`make lint`", "no test is named: {row}");
    }
}

/// The tmux-bridge document has 29 scenarios.
#[test]
fn every_bridge_scenario_names_an_existing_test() {
    let page = fs::read_to_string(root().join("docs/dev/bridge-scenarios.md")).expect("the page exists");
    let rows = page.lines().skip_while(|line| !line.starts_with("| scenario")).skip(2);
    let rows: Vec<(&str, &str)> = rows.filter_map(|row| row.trim_matches([' ', '|']).split_once(" | ")).collect();
    assert_eq!(rows.len(), 29);
    for (scenario, tests) in rows {
        let names: Vec<&str> = quoted(tests).collect();
        let name = scenario.to_lowercase().replace([' ', '-'], "_");
        assert!(names.iter().any(|test| test.contains(&name)), "no test of {names:?} is named after {scenario}");
        assert_tests_exist(&names);
    }
}

/// Recognizes test names by their underscores.
fn is_test(name: &str) -> bool {
    name.matches('_').count() > 2 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable").path());
    let (dirs, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    dirs.iter().flat_map(|dir| rust_files(dir)).chain(files.into_iter().filter(is_rust)).collect()
}
