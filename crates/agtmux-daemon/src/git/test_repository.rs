//! Repositories for tests, with a remote repository and a main worktree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{NewBranch, Repository, Worktree};

pub(crate) struct TestRepository {
    dir: tempfile::TempDir,
}

impl TestRepository {
    pub(crate) fn new() -> Self {
        let repository = Self { dir: tempfile::tempdir().expect("a temporary directory") };
        let dir = repository.dir.path();
        repository.git(dir, &["init", "--quiet", "--bare", "origin.git"]);
        repository.git(dir, &["init", "--quiet", "--initial-branch", "main", "main"]);
        repository.write(&repository.main(), "tracked", "one\n");
        repository.write(&repository.main(), ".gitignore", "*.ignored\n");
        repository.git(&repository.main(), &["remote", "add", "origin", "../origin.git"]);
        repository.commit(&repository.main(), "first");
        repository.git(&repository.main(), &["push", "--quiet", "origin", "main"]);
        repository
    }

    pub(crate) fn main(&self) -> PathBuf {
        self.dir.path().join("main")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs git as a user would, and returns its output. Fails the test if git fails.
    #[track_caller]
    pub(crate) fn git(&self, dir: &Path, args: &[&str]) -> String {
        let (success, output) = self.try_git(dir, args);
        assert!(success, "git {args:?} in {}: {output}", dir.display());
        output
    }

    pub(crate) fn try_git(&self, dir: &Path, args: &[&str]) -> (bool, String) {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .expect("git is installed");
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.success(), text.trim_end().to_owned())
    }

    pub(crate) fn write(&self, dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().expect("a file has a directory")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    pub(crate) fn commit(&self, dir: &Path, message: &str) {
        self.git(dir, &["add", "--all"]);
        self.git(dir, &["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    pub(crate) async fn found(&self) -> Repository {
        Repository::find(&self.main()).await.expect("git runs").expect("a repository")
    }

    /// Makes a worktree of this branch.
    pub(crate) async fn add(&self, branch: &str) -> (Repository, Worktree) {
        let repository = self.found().await;
        let path = self.path(&format!("wt-{}", branch.replace('/', "-")));
        let new = NewBranch { name: branch.to_owned(), base: None };
        repository.add(path.to_str().expect("text"), &new).await.expect("the worktree is made");
        let tree = self.worktree(&path).await;
        (repository, tree)
    }

    /// The worktree as git lists it now.
    pub(crate) async fn worktree(&self, path: &Path) -> Worktree {
        let real = fs::canonicalize(path).expect("the worktree exists");
        let trees = self.found().await.worktrees().await.expect("git runs");
        trees.into_iter().find(|tree| tree.path == real).expect("the worktree is listed")
    }
}
