//! Pages that name tests name only such as there are.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All the code, as one text.
fn sources() -> String {
    rust_files(&root().join("crates")).iter().filter_map(|file| fs::read_to_string(file).ok()).collect()
}

/// What stands in backquotes: every other piece.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[track_caller]
fn assert_there(names: &[&str]) {
    let sources = sources();
    let missing: Vec<_> = names.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

#[track_caller]
fn assert_names_tests(page: &str, at_least: usize) {
    let page = fs::read_to_string(root().join(page)).expect("the page is there");
    let named = quoted(&page).filter_map(|text| text.rsplit("::").next());
    let names: Vec<&str> = named.filter(|name| is_test(name)).collect();
    assert!(names.len() > at_least, "only {} tests are named", names.len());
    assert_there(&names);
}

#[test]
fn every_trap_names_a_test() {
    assert_names_tests("docs/tmux-traps.md", 50);
}

#[test]
fn every_rule_of_tasks_names_a_test() {
    assert_names_tests("docs/tasks.md", 30);
}

/// The tmux-bridge document has 29 of them.
#[test]
fn every_scenario_of_the_bridge_names_a_test_by_its_name() {
    let page = fs::read_to_string(root().join("docs/bridge.md")).expect("the page is there");
    let rows = page.lines().skip_while(|line| !line.starts_with("| scenario")).skip(2);
    let rows: Vec<(&str, &str)> = rows.filter_map(|row| row.trim_matches([' ', '|']).split_once(" | ")).collect();
    assert_eq!(rows.len(), 29);
    for (scenario, tests) in rows {
        let names: Vec<&str> = quoted(tests).collect();
        let name = scenario.to_lowercase().replace([' ', '-'], "_");
        assert!(names.iter().any(|test| test.contains(&name)), "{scenario} is not the name of any of {names:?}");
        assert_there(&names);
    }
}

/// Tests have names like sentences.
fn is_test(name: &str) -> bool {
    name.matches('_').count() > 2 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable").path());
    let (dirs, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    dirs.iter().flat_map(|dir| rust_files(dir)).chain(files.into_iter().filter(is_rust)).collect()
}
