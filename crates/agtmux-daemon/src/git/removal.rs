//! Removes a worktree without losing work: uncommitted files, commits that no other branch has, and unfinished merges
//! or rebases.

use std::path::{Path, PathBuf};

use super::repository::{Repository, Worktree, changed_files, unmerged_commits};
use super::{Git, GitError};

/// How many files and commits a refusal lists.
const MAX_LISTED: usize = 5;

/// Files of git that exist while an operation is unfinished, and the name of the operation.
const UNFINISHED: [(&str, &str); 6] = [
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisect"),
];

/// Work that the removal of a worktree would lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unsaved {
    /// Changed and untracked files.
    Files(Vec<String>),
    /// Commits that no other branch, tag or remote branch contains.
    Commits(Vec<String>),
    /// An operation of git that is not finished.
    Unfinished(&'static str),
    /// Commits in a submodule that no remote branch contains.
    Submodule,
}

/// Why a worktree is not removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemovalRefusal {
    #[error("the worktree contains work that would be lost: {}", describe(.0))]
    Unsaved(Vec<Unsaved>),
    #[error("this is the main worktree of the repository")]
    Main,
    #[error("the worktree is locked")]
    Locked,
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A worktree that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemovedWorktree {
    pub(crate) path: PathBuf,
    pub(crate) branch: Option<String>,
    /// Whether the branch was deleted, because another branch contains all its commits.
    pub(crate) branch_deleted: bool,
}

fn describe(unsaved: &[Unsaved]) -> String {
    let list = |items: &[String]| {
        let more = items.len().saturating_sub(MAX_LISTED);
        let listed = items.iter().take(MAX_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{listed} and {more} more") } else { listed }
    };
    let describe_one = |unsaved: &Unsaved| match unsaved {
        Unsaved::Files(files) => format!("{} uncommitted files ({})", files.len(), list(files)),
        Unsaved::Commits(commits) => {
            let short: Vec<String> = commits.iter().map(|commit| commit.chars().take(9).collect()).collect();
            format!("{} commits that no other branch has ({})", commits.len(), list(&short))
        }
        Unsaved::Unfinished(what) => format!("{what} that is not finished"),
        Unsaved::Submodule => "commits in a submodule that no remote branch has".to_owned(),
    };
    unsaved.iter().map(describe_one).collect::<Vec<_>>().join("; ")
}

/// Checks whether the worktree can be removed. `force` accepts unsaved work.
pub(crate) async fn check_removal(worktree: &Worktree, force: bool) -> Result<(), RemovalRefusal> {
    if worktree.is_main || worktree.is_bare {
        return Err(RemovalRefusal::Main);
    }
    if worktree.is_locked {
        return Err(RemovalRefusal::Locked);
    }
    if force || !worktree.path.exists() {
        return Ok(());
    }
    let unsaved = unsaved_work(worktree).await?;
    if unsaved.is_empty() { Ok(()) } else { Err(RemovalRefusal::Unsaved(unsaved)) }
}

/// Removes the worktree, after the checks of [`check_removal`]. Deletes its branch only if another branch contains all
/// its commits. With `force`, uncommitted files are lost, but commits never are: the branch stays.
pub(crate) async fn remove_worktree(
    repository: &Repository,
    worktree: &Worktree,
    force: bool,
) -> Result<RemovedWorktree, RemovalRefusal> {
    check_removal(worktree, force).await?;
    let git = Git::in_dir(&repository.top);
    if force && worktree.branch.is_none() {
        keep_detached_commits(&git, worktree).await?;
    }
    let path = worktree.path.to_string_lossy().into_owned();
    let populated = worktree.path.exists() && has_submodules(&Git::in_dir(&worktree.path)).await?;
    // git removes a worktree with submodules only by force. Without submodules, git itself checks once more that the
    // worktree has no uncommitted files.
    match force || populated {
        true => git.bytes(&["worktree", "remove", "--force", "--", &path]).await?,
        false => git.bytes(&["worktree", "remove", "--", &path]).await?,
    };
    let branch_deleted = match &worktree.branch {
        Some(branch) => delete_merged_branch(&git, branch).await?,
        None => false,
    };
    Ok(RemovedWorktree { path: worktree.path.clone(), branch: worktree.branch.clone(), branch_deleted })
}

async fn unsaved_work(worktree: &Worktree) -> Result<Vec<Unsaved>, GitError> {
    let git = Git::in_dir(&worktree.path);
    let mut unsaved = Vec::new();
    let mut files = changed_files(&git).await?;
    files.extend(hidden_changes(&git).await?);
    if !files.is_empty() {
        unsaved.push(Unsaved::Files(files));
    }
    let commits = unmerged_commits(&git, worktree.branch.as_deref()).await?;
    if !commits.is_empty() {
        unsaved.push(Unsaved::Commits(commits));
    }
    let own = git.text(&["rev-parse", "--absolute-git-dir"]).await?;
    let unfinished = UNFINISHED.iter().find(|(file, _)| Path::new(&own).join(file).exists());
    unsaved.extend(unfinished.map(|(_, what)| Unsaved::Unfinished(what)));
    if has_submodules(&git).await? && has_unpushed_submodule(&git).await? {
        unsaved.push(Unsaved::Submodule);
    }
    Ok(unsaved)
}

/// The changed files that `git status` does not show, because they are marked as unchanged or as not checked out.
async fn hidden_changes(git: &Git) -> Result<Vec<String>, GitError> {
    let output = git.bytes(&["ls-files", "-v", "-z"]).await?;
    let marked = output.split(|byte| *byte == 0).filter(|entry| entry.len() > 2);
    let marked = marked.filter(|entry| entry[0].is_ascii_lowercase() || entry[0] == b'S');
    let mut changed = Vec::new();
    for path in marked.map(|entry| String::from_utf8_lossy(&entry[2..]).into_owned()) {
        if std::fs::symlink_metadata(git.dir().join(&path)).is_err() {
            continue;
        }
        let stored = git.text(&["rev-parse", "--verify", "--quiet", &format!(":{path}")]).await;
        let current = git.text(&["hash-object", "--", &path]).await;
        if stored.ok() != current.ok() {
            changed.push(path);
        }
    }
    Ok(changed)
}

/// Whether a submodule is checked out in the worktree.
async fn has_submodules(git: &Git) -> Result<bool, GitError> {
    let status = git.text(&["submodule", "status", "--recursive"]).await?;
    Ok(status.lines().any(|line| !line.starts_with('-')))
}

/// Whether a submodule has commits that exist only in this worktree.
async fn has_unpushed_submodule(git: &Git) -> Result<bool, GitError> {
    let count = "git rev-list --count --all HEAD --not --remotes";
    let counts = git.text(&["submodule", "--quiet", "foreach", "--recursive", count]).await?;
    Ok(counts.lines().any(|count| count.trim() != "0"))
}

/// Keeps the commits of a worktree without a branch, as a branch with the name of the commit.
async fn keep_detached_commits(git: &Git, worktree: &Worktree) -> Result<(), GitError> {
    let Some(head) = worktree.head.as_ref().filter(|_| worktree.path.exists()) else { return Ok(()) };
    if unmerged_commits(&Git::in_dir(&worktree.path), None).await?.is_empty() {
        return Ok(());
    }
    let name: String = head.chars().take(12).collect();
    git.bytes(&["branch", "--force", "--no-track", &format!("kept-{name}"), head]).await.map(drop)
}

/// Deletes the branch if another branch, tag or remote branch contains all its commits, and if it has not moved since
/// that was checked. Returns whether the branch was deleted.
async fn delete_merged_branch(git: &Git, branch: &str) -> Result<bool, GitError> {
    let name = format!("refs/heads/{branch}");
    let Ok(commit) = git.text(&["rev-parse", "--verify", "--quiet", &name]).await else { return Ok(false) };
    let others = git
        .text(&[
            "for-each-ref",
            "--format=%(refname)",
            "--contains",
            &commit,
            "refs/heads",
            "refs/remotes",
            "refs/tags",
        ])
        .await?;
    if !others.lines().any(|other| other != name) {
        return Ok(false);
    }
    // Fails if the branch has moved, or if it is checked out elsewhere; then it stays.
    if list_branches_in_use(git).await?.iter().any(|used| used == branch) {
        return Ok(false);
    }
    git.succeeds(&["update-ref", "-d", &name, &commit]).await
}

async fn list_branches_in_use(git: &Git) -> Result<Vec<String>, GitError> {
    let Some(repository) = Repository::find(git.dir()).await? else { return Ok(Vec::new()) };
    Ok(repository.worktrees().await?.into_iter().filter_map(|worktree| worktree.branch).collect())
}
