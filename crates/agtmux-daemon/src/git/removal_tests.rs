use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::removal::Unsaved;
use super::test_repository::TestRepository;
use super::{RemovalRefusal, remove_worktree};

const BRANCH: &str = "topic/ü--x";

/// Something that a person or an agent does in a worktree.
#[derive(Debug, Clone, Copy)]
enum Step {
    NewFile,
    Change,
    Delete,
    StageChange,
    Commit,
    MergeIntoMain,
    SquashIntoMain,
    Push,
    Tag,
    OtherBranch,
    Detach,
    BackToBranch,
    Conflict,
    IgnoredFile,
    HideChange,
    Stash,
    ResetBack,
    NestedRepository,
}

const STEPS: [Step; 18] = [
    Step::NewFile,
    Step::Change,
    Step::Delete,
    Step::StageChange,
    Step::Commit,
    Step::MergeIntoMain,
    Step::SquashIntoMain,
    Step::Push,
    Step::Tag,
    Step::OtherBranch,
    Step::Detach,
    Step::BackToBranch,
    Step::Conflict,
    Step::IgnoredFile,
    Step::HideChange,
    Step::Stash,
    Step::ResetBack,
    Step::NestedRepository,
];

fn take(step: Step, n: usize, test: &TestRepository, tree: &Path) {
    let main = test.main();
    let text = format!("text {n}\n");
    // Some steps fail in some states, for example a commit without changes; then they change nothing.
    let git = |dir: &Path, args: &[&str]| test.try_git(dir, args);
    match step {
        Step::NewFile => test.write(tree, &format!("new-{n}/file"), &text),
        Step::Change => test.write(tree, "tracked", &text),
        Step::Delete => drop(fs::remove_file(tree.join("tracked"))),
        Step::StageChange => {
            test.write(tree, "tracked", &text);
            git(tree, &["add", "--all"]);
        }
        Step::Commit => {
            test.write(tree, &format!("committed-{n}"), &text);
            git(tree, &["add", "--all"]);
            git(tree, &["commit", "--quiet", "-m", &text]);
        }
        Step::MergeIntoMain => {
            git(&main, &["merge", "--quiet", "--no-edit", BRANCH]);
            git(&main, &["merge", "--abort"]);
        }
        Step::SquashIntoMain => {
            git(&main, &["merge", "--quiet", "--squash", BRANCH]);
            git(&main, &["commit", "--quiet", "-m", "squashed"]);
            git(&main, &["reset", "--quiet", "--hard"]);
        }
        Step::Push => drop(git(tree, &["push", "--quiet", "origin", "HEAD:refs/heads/pushed"])),
        Step::Tag => drop(git(tree, &["tag", &format!("tag-{n}")])),
        Step::OtherBranch => drop(git(tree, &["branch", &format!("other-{n}")])),
        Step::Detach => drop(git(tree, &["checkout", "--quiet", "--detach"])),
        Step::BackToBranch => drop(git(tree, &["checkout", "--quiet", BRANCH])),
        Step::Conflict => {
            test.write(&main, "tracked", &format!("other {n}\n"));
            test.commit(&main, "other");
            git(tree, &["merge", "--no-edit", "main"]);
        }
        Step::IgnoredFile => test.write(tree, "x.ignored", &text),
        Step::HideChange => {
            git(tree, &["update-index", "--assume-unchanged", "tracked"]);
            test.write(tree, "tracked", &text);
        }
        Step::Stash => drop(git(tree, &["stash", "--quiet", "--include-untracked"])),
        Step::ResetBack => drop(git(tree, &["reset", "--quiet", "--hard", "main"])),
        Step::NestedRepository => {
            git(tree, &["init", "--quiet", "nested"]);
            test.write(tree, "nested/file", &text);
        }
    }
}

/// All files of the worktree that are not ignored, with their content.
fn files(tree: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![tree.to_owned()];
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let name = path.strip_prefix(tree).expect("below").to_string_lossy().into_owned();
            if path.is_dir() && !name.ends_with(".git") {
                dirs.push(path);
            } else if !name.ends_with(".git") && !name.ends_with(".ignored") {
                found.insert(name, fs::read(&path).expect("readable"));
            }
        }
    }
    found
}

/// Whether the commit has all these files with this content.
fn is_kept(files: &BTreeMap<String, Vec<u8>>, commit: &BTreeMap<String, Vec<u8>>) -> bool {
    files.iter().all(|(name, content)| commit.get(name) == Some(content))
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

async fn check(steps: &[Step]) {
    let test = TestRepository::new();
    let (repository, tree) = test.add(BRANCH).await;
    for (n, step) in steps.iter().enumerate() {
        take(*step, n, &test, &tree.path);
    }
    let tree = test.worktree(&tree.path).await;
    let (before, commits) = (files(&tree.path), lines(&test.git(&tree.path, &["rev-list", "HEAD"])));
    let mut at_head = BTreeMap::new();
    for name in test.git(&tree.path, &["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "HEAD"]).lines() {
        let (_, text) = test.try_git(&tree.path, &["show", &format!("HEAD:{name}")]);
        at_head.insert(name.to_owned(), format!("{text}\n").into_bytes());
    }
    let is_saved = |reachable: &BTreeSet<String>| commits.is_subset(reachable);
    let all = || lines(&test.git(&test.main(), &["rev-list", "--all"]));
    match remove_worktree(&repository, &tree, false).await {
        Ok(removed) => {
            assert!(!tree.path.exists() && removed.path == tree.path);
            assert!(is_saved(&all()), "{steps:?}: commits are lost");
            assert!(is_kept(&before, &at_head), "{steps:?}: files are lost");
        }
        Err(RemovalRefusal::Unsaved(unsaved)) => {
            assert_eq!(files(&tree.path), before, "{steps:?}: a refusal changes nothing");
            let unmerged = unsaved.iter().any(|what| matches!(what, Unsaved::Commits(_)));
            let clean = is_kept(&before, &at_head);
            assert!(
                !clean
                    || unmerged
                    || unsaved.iter().any(|what| matches!(what, Unsaved::Unfinished(_) | Unsaved::Files(_))),
                "{steps:?}: {unsaved:?}"
            );
            remove_worktree(&repository, &tree, true).await.expect("force removes it");
            assert!(!tree.path.exists());
            assert!(is_saved(&all()), "{steps:?}: force loses commits");
        }
        Err(error) => panic!("{steps:?}: {error}"),
    }
}

/// 16 random repositories, 400 in a soak run.
#[test]
fn a_removal_never_loses_work() {
    let soak = std::env::var_os("AGTMUX_SOAK").is_some_and(|value| !value.is_empty());
    let cases = if soak { 400 } else { 16 };
    let mut runner =
        TestRunner::new(Config { cases, max_shrink_iters: 40, failure_persistence: None, ..Config::default() });
    let steps = prop::collection::vec(prop::sample::select(&STEPS[..]), 0..8);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let result = runner.run(&steps, |steps| {
        runtime.block_on(check(&steps));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn each_kind_of_unsaved_work_is_named_and_clean_worktrees_go() {
    for (steps, expected) in [
        (&[][..], None),
        (&[Step::IgnoredFile][..], None),
        (&[Step::Commit, Step::Push][..], None),
        (&[Step::Commit, Step::MergeIntoMain][..], None),
        (&[Step::NewFile][..], Some("1 uncommitted files (new-0/)")),
        (&[Step::HideChange][..], Some("1 uncommitted files (tracked)")),
        (&[Step::Commit][..], Some("1 commits that no other branch has")),
        (&[Step::Commit, Step::SquashIntoMain][..], Some("1 commits that no other branch has")),
        (&[Step::Detach, Step::Commit][..], Some("1 commits that no other branch has")),
        (&[Step::StageChange, Step::Commit, Step::Push, Step::Conflict][..], Some("a merge that is not finished")),
    ] {
        let test = TestRepository::new();
        let (repository, tree) = test.add(BRANCH).await;
        for (n, step) in steps.iter().enumerate() {
            take(*step, n, &test, &tree.path);
        }
        let tree = test.worktree(&tree.path).await;
        let done = remove_worktree(&repository, &tree, false).await;
        match (expected, done) {
            (None, Ok(removed)) => assert!(removed.branch_deleted, "{steps:?}: {removed:?}"),
            (Some(why), Err(error)) => assert!(error.to_string().contains(why), "{steps:?}: {error}"),
            (_, other) => panic!("{steps:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_main_worktree_and_locked_ones_stay() {
    let test = TestRepository::new();
    let (repository, tree) = test.add("fix").await;
    let main = test.worktree(&test.main()).await;
    assert!(matches!(remove_worktree(&repository, &main, true).await, Err(RemovalRefusal::Main)));
    test.git(&test.main(), &["worktree", "lock", tree.path.to_str().expect("text")]);
    let tree = test.worktree(&tree.path).await;
    assert!(matches!(remove_worktree(&repository, &tree, true).await, Err(RemovalRefusal::Locked)));
    assert!(tree.path.exists());
}

#[tokio::test]
async fn commits_in_a_submodule_are_not_lost() {
    let test = TestRepository::new();
    let source = test.path("source");
    test.git(test.main().parent().expect("a directory"), &["init", "--quiet", "source"]);
    test.write(&source, "file", "one\n");
    test.commit(&source, "one");
    test.git(&test.main(), &["submodule", "--quiet", "add", "../source", "sub"]);
    test.commit(&test.main(), "with a submodule");
    let (repository, tree) = test.add("fix").await;
    test.git(&tree.path, &["submodule", "--quiet", "update", "--init"]);
    let sub = tree.path.join("sub");
    test.write(&sub, "file", "two\n");
    test.commit(&sub, "two");
    test.commit(&tree.path, "newer submodule");
    test.git(&tree.path, &["push", "--quiet", "origin", "HEAD:refs/heads/pushed"]);
    let refused = remove_worktree(&repository, &test.worktree(&tree.path).await, false).await;
    assert!(
        matches!(&refused, Err(RemovalRefusal::Unsaved(unsaved)) if unsaved == &[Unsaved::Submodule]),
        "{refused:?}"
    );
    // `origin` of the submodule is not bare, so the commit is pushed to a branch that is not checked out there.
    test.git(&sub, &["push", "--quiet", "origin", "HEAD:refs/heads/pushed"]);
    let removed =
        remove_worktree(&repository, &test.worktree(&tree.path).await, false).await.expect("nothing is unsaved");
    assert!(removed.branch_deleted && !tree.path.exists());
}
