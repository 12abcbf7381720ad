//! A repository and its worktrees.

use std::path::{Path, PathBuf};

use super::{Git, GitError};

/// A repository, found from a directory in it.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) git: Git,
    /// The top directory of the main worktree; for a bare repository, the directory of the repository.
    pub(crate) top: PathBuf,
}

/// One worktree of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Worktree {
    pub(crate) path: PathBuf,
    /// The commit; `None` in a bare repository.
    pub(crate) head: Option<String>,
    /// The branch, without `refs/heads/`. `None` if no branch is checked out.
    pub(crate) branch: Option<String>,
    pub(crate) is_main: bool,
    pub(crate) is_bare: bool,
    pub(crate) is_locked: bool,
}

/// What a list of worktrees shows about one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WorktreeFacts {
    /// The number of changed and untracked files.
    pub(crate) dirty: u32,
    /// The number of commits that the main worktree does not have, and the number that only the main worktree has.
    pub(crate) ahead: u32,
    pub(crate) behind: u32,
    /// Whether all commits are reachable from another branch, tag or remote branch.
    pub(crate) merged: bool,
}

/// A branch for a new worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewBranch {
    pub(crate) name: String,
    /// The commit at which the branch begins. `None`: the current commit of the main worktree.
    pub(crate) base: Option<String>,
}

/// The name of a branch for what the user typed: blanks become `-`.
pub(crate) fn branch_name(typed: &str) -> String {
    typed.split_whitespace().collect::<Vec<_>>().join("-")
}

impl Repository {
    /// Finds the repository of a directory. `None` if the directory is in no repository.
    pub(crate) async fn find(dir: &Path) -> Result<Option<Self>, GitError> {
        let git = Git::in_dir(dir);
        if !git.succeeds(&["rev-parse", "--git-dir"]).await? {
            return Ok(None);
        }
        let worktrees = list(&git).await?;
        let top = worktrees.first().map(|main| main.path.clone()).ok_or(GitError::Unreadable("worktree list"))?;
        Ok(Some(Self { git, top }))
    }

    /// The worktrees, the main one first.
    pub(crate) async fn worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        list(&self.git).await
    }

    /// Whether this is a valid name for a branch.
    pub(crate) async fn is_branch_name(&self, name: &str) -> Result<bool, GitError> {
        if name.starts_with('-') {
            return Ok(false);
        }
        self.git.succeeds(&["check-ref-format", "--branch", name]).await
    }

    pub(crate) async fn has_branch(&self, name: &str) -> Result<bool, GitError> {
        self.git.succeeds(&["show-ref", "--verify", "--quiet", &format!("refs/heads/{name}")]).await
    }

    /// Makes a worktree in a directory that does not exist. Checks out the branch, which is created if it does not
    /// exist.
    pub(crate) async fn add(&self, path: &str, branch: &NewBranch) -> Result<(), GitError> {
        let exists = self.has_branch(&branch.name).await?;
        let git = Git::in_dir(&self.top);
        let base = branch.base.as_deref().unwrap_or("HEAD");
        match exists {
            true => git.bytes(&["worktree", "add", "--", path, &branch.name]).await?,
            false => git.bytes(&["worktree", "add", "--no-track", "-b", &branch.name, "--", path, base]).await?,
        };
        Ok(())
    }

    /// Whether a text names a commit.
    pub(crate) async fn is_commit(&self, text: &str) -> Result<bool, GitError> {
        let commit = format!("{text}^{{commit}}");
        Ok(!text.starts_with('-')
            && self.git.succeeds(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await?)
    }

    /// The facts about a worktree, compared with the main worktree.
    pub(crate) async fn facts(&self, worktree: &Worktree, main: &Worktree) -> Result<WorktreeFacts, GitError> {
        let git = Git::in_dir(&worktree.path);
        let dirty = changed_files(&git).await?.len();
        let (mut ahead, mut behind) = (0, 0);
        if let (Some(main), Some(head)) = (&main.head, &worktree.head) {
            let range = format!("{main}...{head}");
            let counts = git.text(&["rev-list", "--left-right", "--count", &range]).await?;
            let mut counts = counts.split_whitespace().filter_map(|count| count.parse().ok());
            (behind, ahead) = (counts.next().unwrap_or(0), counts.next().unwrap_or(0));
        }
        let merged = unmerged_commits(&git, worktree.branch.as_deref()).await?.is_empty();
        Ok(WorktreeFacts { dirty: u32::try_from(dirty).unwrap_or(u32::MAX), ahead, behind, merged })
    }
}

/// The changed and untracked files, with changes in submodules, without ignored files. A directory of untracked files
/// counts as one.
pub(super) async fn changed_files(git: &Git) -> Result<Vec<String>, GitError> {
    let args =
        ["status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=none", "--no-renames"];
    let output = git.bytes(&args).await?;
    let entries = output.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
    Ok(entries.map(|entry| String::from_utf8_lossy(&entry[3..]).into_owned()).collect())
}

/// The newest commits of the worktree that no other branch, tag or remote branch contains: at most `MAX_COMMITS`.
pub(super) async fn unmerged_commits(git: &Git, branch: Option<&str>) -> Result<Vec<String>, GitError> {
    const MAX_COMMITS: &str = "--max-count=1000";
    if !git.succeeds(&["rev-parse", "--verify", "--quiet", "HEAD"]).await? {
        // The branch has no commit.
        return Ok(Vec::new());
    }
    // `--exclude` matches the whole name, and applies to the next option.
    let own = branch.map(|name| format!("--exclude={}", escape_glob(name)));
    let mut args = vec!["rev-list", MAX_COMMITS, "HEAD", "--not"];
    args.extend(own.as_deref());
    args.extend(["--branches", "--remotes", "--tags"]);
    Ok(git.text(&args).await?.lines().map(str::to_owned).collect())
}

/// A pattern that matches only this name.
fn escape_glob(name: &str) -> String {
    name.chars().flat_map(|c| ("*?[\\".contains(c)).then_some('\\').into_iter().chain([c])).collect()
}

async fn list(git: &Git) -> Result<Vec<Worktree>, GitError> {
    Ok(parse_list(&git.bytes(&["worktree", "list", "--porcelain", "-z"]).await?))
}

fn parse_list(output: &[u8]) -> Vec<Worktree> {
    let mut worktrees: Vec<Worktree> = Vec::new();
    for line in output.split(|byte| *byte == 0) {
        let line = String::from_utf8_lossy(line);
        let (key, value) = line.split_once(' ').unwrap_or((&line, ""));
        match (key, worktrees.last_mut()) {
            ("worktree", _) => {
                let is_main = worktrees.is_empty();
                worktrees.push(Worktree { path: value.into(), is_main, ..Worktree::default() });
            }
            ("HEAD", Some(tree)) => tree.head = Some(value.to_owned()).filter(|head| head.bytes().any(|b| b != b'0')),
            ("branch", Some(tree)) => tree.branch = Some(value.trim_start_matches("refs/heads/").to_owned()),
            ("bare", Some(tree)) => tree.is_bare = true,
            ("locked", Some(tree)) => tree.is_locked = true,
            _ => {}
        }
    }
    worktrees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_worktrees_is_read_with_any_path() {
        let output =
            b"worktree /a b\nc\0HEAD 0123\0branch refs/heads/main\0\0worktree /x\0HEAD 0000\0detached\0locked why\0\0";
        let trees = parse_list(output);
        assert_eq!(trees.len(), 2);
        let main = (&trees[0].path, trees[0].branch.as_deref(), trees[0].is_main, trees[0].is_locked);
        assert_eq!(main, (&PathBuf::from("/a b\nc"), Some("main"), true, false));
        let other = (trees[1].head.as_deref(), trees[1].branch.as_deref(), trees[1].is_main, trees[1].is_locked);
        assert_eq!(other, (None, None, false, true));
        assert!(parse_list(b"worktree /r.git\0bare\0\0")[0].is_bare);
    }

    #[test]
    fn blanks_in_a_typed_name_become_dashes() {
        assert_eq!(branch_name("  fix the  login "), "fix-the-login");
        assert_eq!(branch_name("feature/über"), "feature/über");
        assert_eq!(escape_glob("a[1]*"), "a\\[1]\\*");
    }
}
