use std::fs;
use std::path::{Component, Path, PathBuf};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{WorktreeAddRequest, WorktreeAdded};

use super::{Worktrees, git_failed, repository_of};
use crate::actions::{RequestCaller, precondition};
use crate::git::{NewBranch, Repository, branch_name};

impl Worktrees {
    /// Makes a worktree for a branch. If the branch is already checked out in a worktree, returns that one.
    pub(crate) async fn add(&self, request: &WorktreeAddRequest, caller: &RequestCaller) -> ApiResult<WorktreeAdded> {
        let name = branch_name(&request.branch);
        self.actions.audited_worktree_of_new_agent(&name, caller, self.make(request, &name)).await
    }

    async fn make(&self, request: &WorktreeAddRequest, name: &str) -> ApiResult<WorktreeAdded> {
        let repository = repository_of(&request.dir).await?;
        check_names(&repository, request, name).await?;
        let top = repository.top.display().to_string();
        let done = |path: &Path, created: bool, copied: Vec<String>| WorktreeAdded {
            schema_version: SCHEMA_VERSION,
            path: path.display().to_string(),
            branch: name.to_owned(),
            repository: top.clone(),
            created,
            copied,
            setup: Some(self.config().worktrees.setup.clone()).filter(|setup| created && !setup.is_empty()),
        };
        let worktrees = repository.worktrees().await.map_err(git_failed)?;
        if let Some(known) = worktrees.iter().find(|worktree| worktree.branch.as_deref() == Some(name)) {
            if known.is_main {
                let message = format!("the branch '{name}' is checked out in the main worktree");
                return Err(precondition(message, format!("agtmux new AGENT --in {top}")));
            }
            return Ok(done(&known.path, false, Vec::new()));
        }
        let path = self.new_path(&repository.top, name)?;
        let branch = NewBranch { name: name.to_owned(), base: request.base.clone() };
        repository.add(&path.to_string_lossy(), &branch).await.map_err(git_failed)?;
        let copied = copy_files(&repository.top, &path, &self.config().worktrees.copy);
        Ok(done(&path, true, copied))
    }

    /// The directory of a new worktree: `worktrees.dir`, and below it the branch with `-` instead of `/`.
    fn new_path(&self, top: &Path, branch: &str) -> ApiResult<PathBuf> {
        let repository = top.file_name().map_or_else(|| "repository".into(), |name| name.to_string_lossy());
        let repository = repository.trim_end_matches(".git");
        let dir = self.config().worktrees.dir.replace("{repository}", repository);
        let path = normalized(&top.join(dir)).join(branch.replace('/', "-"));
        if path.exists() {
            let message = format!("'{}' already exists", path.display());
            return Err(precondition(message, "choose another branch name, or remove the directory"));
        }
        let parent = path.parent().unwrap_or(top);
        fs::create_dir_all(parent).map_err(|error| {
            precondition(format!("cannot create '{}': {error}", parent.display()), "set worktrees.dir")
        })?;
        Ok(path)
    }
}

async fn check_names(repository: &Repository, request: &WorktreeAddRequest, name: &str) -> ApiResult<()> {
    if !repository.is_branch_name(name).await.map_err(git_failed)? {
        let message = format!("'{}' is not a valid branch name", name.escape_debug());
        return Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("git help check-ref-format"));
    }
    let exists = repository.has_branch(name).await.map_err(git_failed)?;
    let base = request.base.as_deref().unwrap_or("HEAD");
    if !exists && !repository.is_commit(base).await.map_err(git_failed)? {
        let message = match &request.base {
            Some(base) => format!("'{}' is not a commit of the repository", base.escape_debug()),
            None => "the repository has no commit yet".to_owned(),
        };
        return Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("git commit, or name a base with --base"));
    }
    Ok(())
}

/// Removes `.` and `..` from an absolute path, without looking at symbolic links.
fn normalized(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// Copies files of the main worktree that are missing in the new one. Returns the names of the copied files.
fn copy_files(from: &Path, to: &Path, names: &[String]) -> Vec<String> {
    let is_below = |name: &&String| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let copy = |name: &&String| {
        let (source, copy) = (from.join(name), to.join(name));
        if !source.is_file() || copy.exists() {
            return false;
        }
        let made = copy.parent().is_none_or(|dir| fs::create_dir_all(dir).is_ok()) && fs::copy(&source, &copy).is_ok();
        if !made {
            tracing::warn!(file = %source.display(), "a file was not copied to a new worktree");
        }
        made
    };
    names.iter().filter(is_below).filter(copy).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_normalized_and_only_files_below_the_repository_are_copied() {
        assert_eq!(normalized(Path::new("/a/b/../c/./d")), PathBuf::from("/a/c/d"));
        let dir = tempfile::tempdir().expect("a directory");
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for (file, text) in
            [("from/.env", "x"), ("from/a/b", "y"), ("secret", "z"), ("to/kept", "old"), ("from/kept", "new")]
        {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().expect("a directory")).expect("writable");
            fs::write(path, text).expect("writable");
        }
        let names = [".env", "a/b", "../secret", "/etc/passwd", "missing", "kept", "a"].map(str::to_owned);
        assert_eq!(copy_files(&from, &to, &names), [".env", "a/b"]);
        assert_eq!(fs::read_to_string(to.join("kept")).expect("readable"), "old");
    }
}
