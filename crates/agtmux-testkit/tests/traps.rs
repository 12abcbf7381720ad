//! The pages that name tests name only those that there are.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_trap_names_a_test() {
    every_name_is_a_test("docs/tmux-traps.md", 50);
}

#[test]
fn every_rule_of_tasks_names_a_test() {
    every_name_is_a_test("docs/tasks.md", 30);
}

#[track_caller]
fn every_name_is_a_test(page: &str, at_least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join(page)).expect("the page is there");
    let sources: String =
        rust_files(&root.join("crates")).iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    // What stands in backquotes: every other piece.
    let quoted = page.split('`').skip(1).step_by(2);
    let names: Vec<&str> = quoted.filter_map(|text| text.rsplit("::").next()).filter(|name| is_test(name)).collect();
    assert!(names.len() > at_least, "only {} tests are named", names.len());
    let missing: Vec<_> = names.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
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
