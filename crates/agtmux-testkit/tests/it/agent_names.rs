//! Only agtmux-agents knows particular agents: no other source file names an agent in a string.

use std::fs;
use std::path::Path;

use crate::plain_names::{root, shown, sources};

/// Where an agent's name is allowed, because it means something else or is only an example. Each entry has a path
/// prefix, the name and the reason.
const EXCEPTIONS: [(&str, &str, &str); 10] = [
    ("crates/agtmux-api/src/wire/items.rs", "claude", "an example in the schema"),
    ("crates/agtmux-daemon/src/serve/adapters.rs", "claude", "an example in a hint"),
    ("crates/agtmux-tmux/src/", "cursor", "the cursor of a pane"),
    ("crates/agtmux-core/src/task/", "pi", "the documented names of task sessions and their variables"),
    ("crates/agtmux-daemon/src/tasks/", "pi", "the documented names of task sessions"),
    ("crates/agtmux-daemon/src/mirror/", "pi", "the documented variables of shared terminals"),
    ("crates/agtmux-tmux/src/mirror.rs", "pi", "the documented variables of shared terminals"),
    ("crates/agtmux-tmux/src/tasks/", "pi", "the documented options of task windows"),
    ("crates/agtmux/src/commands/task/", "pi", "the documented variables of tasks"),
    ("crates/agtmux/src/program_name.rs", "pi", "the documented names of the task commands"),
];

fn agents() -> Vec<String> {
    let manifests = fs::read_dir(root().join("crates/agtmux-agents/manifests")).expect("the manifests");
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    manifests.map(|entry| name(&entry.expect("readable").path())).collect()
}

/// Whether the rule applies to this file: it is outside agtmux-agents and the testkit, and neither a test nor the demo.
fn is_checked(path: &str) -> bool {
    let source = path.split_once("/src/").map(|(krate, file)| (krate, format!("/{file}")));
    source.is_some_and(|(krate, file)| {
        let is_test = ["/tests/", "/tests.rs", "_tests.rs", "/commands/demo/"].iter().any(|part| file.contains(part));
        !is_test && !["crates/agtmux-agents", "crates/agtmux-testkit"].contains(&krate)
    })
}

/// The string literals of a source text, without comments.
fn literals(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, from) = rest.split_at(at);
        let hashes = before.len() - before.trim_end_matches('#').len();
        let is_raw = before.trim_end_matches('#').ends_with('r');
        rest = &from[1..];
        if let Some(comment) = from.strip_prefix("//") {
            rest = &comment[comment.find('\n').unwrap_or(comment.len())..];
        } else if from.starts_with('"') {
            let end = if is_raw { rest.find(&format!("\"{}", "#".repeat(hashes))) } else { end_of_text(rest) };
            let end = end.expect("the literal ends");
            found.push(&rest[..end]);
            rest = &rest[end + 1..];
        } else if let Some(end) = from.starts_with('\'').then(|| end_of_char(rest)).flatten() {
            rest = &rest[end..];
        }
    }
    found
}

fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// The end of a character literal, or None for a lifetime.
fn end_of_char(rest: &str) -> Option<usize> {
    let first = rest.chars().next()?;
    let least = first.len_utf8() + usize::from(first == '\\');
    let end = least + rest.get(least..)?.find('\'')? + 1;
    (first == '\\' || end == least + 1).then_some(end)
}

fn is_exception(path: &str, literal: &str, name: &str) -> bool {
    // Help texts and hints contain example command lines with the name of an agent.
    let is_example = literal.contains("agtmux ");
    is_example || EXCEPTIONS.iter().any(|(place, word, _)| path.starts_with(place) && *word == name)
}

#[test]
fn no_source_outside_agtmux_agents_names_an_agent() {
    let (agents, mut checked, mut named) = (agents(), 0, Vec::new());
    for (path, text) in sources() {
        let path = shown(&path);
        if !is_checked(&path) {
            continue;
        }
        checked += 1;
        for literal in literals(text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()) {
            let words = literal.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
            let names = words.filter(|word| agents.contains(word) && !is_exception(&path, literal, word));
            named.extend(names.map(|name| format!("{path}: {name} in {literal:?}")));
        }
    }
    assert!(agents.len() > 5 && checked > 200, "{agents:?}, {checked} files");
    assert!(named.is_empty(), "move this to agtmux-agents: {named:#?}");
}

#[test]
fn literals_are_found() {
    let source = "a(\"x \\\" y\"); // \"no\"\nlet c = '\"'; b::<'a>(r#\"p \"q\" \"#, b\"z\", '\\'', \"\");";
    assert_eq!(literals(source), ["x \\\" y", "p \"q\" ", "z", ""]);
}
