//! Checks the rules for names and texts: one name per type, plain words, short files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that hide the subject of a sentence. Name the daemon, the pane or the caller instead.
const VAGUE: [&str; 5] = ["nobody", "whoever", "somebody", "anybody", "whom"];

/// Names of the standard library. A type of ours must not have such a name, because it would mislead readers.
const STANDARD: [&str; 16] = [
    "Box", "Clone", "Default", "Drop", "Duration", "From", "Instant", "Into", "Iterator", "Option", "Ordering", "Path",
    "Result", "String", "Vec", "Arc",
];

const MAX_LINES: usize = 500;
const MAX_VAGUE_COMMENTS: usize = 20;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace").to_owned()
}

fn files_below(dir: &Path, wanted: &impl Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("readable").path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && name != "node_modules" && name != "evidence" {
            files_below(&path, wanted, found);
        } else if wanted(&path) {
            found.push(path);
        }
    }
}

pub(crate) fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files_below(&root().join("crates"), &|path| path.extension().is_some_and(|end| end == "rs"), &mut found);
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("text"))).collect()
}

/// The name of the type that this line defines, if other modules can see the type.
fn shared_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    if !["struct", "enum", "trait", "type", "union"].contains(&kind) {
        return None;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    // `$name` in a macro is not a name.
    (end > 0).then(|| &rest[..end])
}

fn vague_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphabetic());
    words.filter(|word| VAGUE.contains(&word.to_lowercase().as_str()))
}

pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[test]
fn no_two_types_that_other_modules_see_share_a_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources() {
        for (n, line) in text.lines().enumerate() {
            if let Some(name) = shared_type(line) {
                places.entry(name.to_owned()).or_default().push(format!("{}:{}", shown(&path), n + 1));
            }
        }
    }
    assert!(places.len() > 500, "the sources define many types, found {}", places.len());
    let standard: Vec<_> = places.iter().filter(|(name, _)| STANDARD.contains(&name.as_str())).collect();
    assert!(standard.is_empty(), "these shadow the standard library: {standard:#?}");
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "give each type a name of its own: {places:#?}");
}

#[test]
fn definitions_are_found() {
    assert_eq!(shared_type("pub struct Ledger {"), Some("Ledger"));
    assert_eq!(shared_type("    pub(super) enum Claim {"), Some("Claim"));
    assert_eq!(shared_type("pub(in crate::a) type Row<'a> = &'a str;"), Some("Row"));
    assert_eq!(shared_type("struct Private;"), None);
    assert_eq!(shared_type("        pub enum $name {"), None);
    assert_eq!(shared_type("pub fn run() {}"), None);
}

/// Checks the documents, and the recorded help texts and messages.
#[test]
fn texts_for_people_use_no_vague_words() {
    let mut pages = vec![root().join("README.md"), root().join("ARCHITECTURE.md"), root().join("CONTRIBUTING.md")];
    files_below(&root().join("docs"), &|path| path.extension().is_some_and(|end| end == "md"), &mut pages);
    let snapshots = root().join("crates/agtmux/tests/it/snapshots");
    files_below(&snapshots, &|path| path.extension().is_some_and(|end| end == "snap"), &mut pages);
    assert!(pages.len() > 40, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page).expect("text");
        let words: Vec<&str> = vague_words(&text).collect();
        assert!(words.is_empty(), "{}: {words:?}", shown(&page));
    }
}

#[test]
fn comments_use_few_vague_words() {
    let mut lines = Vec::new();
    for (path, text) in sources() {
        for (n, line) in text.lines().enumerate() {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            if vague_words(comment).next().is_some() {
                lines.push(format!("{}:{}: {}", shown(&path), n + 1, comment.trim()));
            }
        }
    }
    assert!(lines.len() < MAX_VAGUE_COMMENTS, "name the subject: {lines:#?}");
}

#[test]
fn no_source_file_is_too_long() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|(_, text)| text.lines().count() > MAX_LINES)
        .map(|(path, text)| format!("{} has {} lines", shown(path), text.lines().count()))
        .collect();
    assert!(long.is_empty(), "split these: {long:#?}");
}

/// These rules keep builds fast: every test binary links the whole workspace, and a file that is included by path is
/// compiled once per includer.
#[test]
fn every_crate_has_one_test_binary_and_no_file_is_included_by_path() {
    let attribute = ["#[path", " ="].concat();
    let included: Vec<String> =
        sources().iter().filter(|(_, text)| text.contains(&attribute)).map(|(path, _)| shown(path)).collect();
    assert!(included.is_empty(), "use modules, or the testkit: {included:?}");
    for member in fs::read_dir(root().join("crates")).expect("a directory") {
        let Ok(entries) = fs::read_dir(member.expect("readable").path().join("tests")) else { continue };
        let names: Vec<_> = entries.map(|entry| entry.expect("readable").file_name()).collect();
        assert_eq!(names, ["it"], "add a module to tests/it/main.rs");
    }
}
