//! Settings files on disk: replaced atomically, with a backup of the old content.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::plan::FileChange;

/// The largest settings file that setup reads.
const MAX_BYTES: u64 = 8 << 20;

/// Resolves symbolic links, also if the file or its directories do not exist yet.
pub(super) fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return found,
    }
    if fs::symlink_metadata(path).is_ok() {
        return Err(io::Error::new(ErrorKind::NotFound, "it or a directory above it is a broken symbolic link"));
    }
    match (path.parent(), path.file_name()) {
        (Some(dir), Some(name)) => Ok(resolve_links(dir)?.join(name)),
        _ => Ok(path.to_owned()),
    }
}

/// Reads a settings file. `None` if the file does not exist.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !meta.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if meta.len() > MAX_BYTES {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is larger than 8 MiB"));
    }
    fs::read(path).map(Some)
}

/// Applies the change if the file still has the content that the change was planned for. Returns the path of the
/// backup, if one was made.
pub(super) fn replace(change: &FileChange) -> io::Result<Option<PathBuf>> {
    let (path, before, after) = (change.target.as_path(), change.before.as_deref(), change.after.as_deref());
    if read(path)?.as_deref() != before.map(str::as_bytes) {
        return Err(io::Error::other("the file was changed meanwhile; nothing was written"));
    }
    let copied = before.filter(|_| change.keeps_copy);
    let backup = copied.map(|text| back_up(path, text)).transpose()?;
    match after {
        Some(text) => write(path, text)?,
        None => {
            fs::remove_file(path)?;
            remove_dirs(path, change.made_dirs);
        }
    }
    if let Some(newest) = &backup {
        remove_older_backups(path, newest);
    }
    Ok(backup)
}

/// The part of a backup's name between the name of the file and the time.
const BACKUP_INFIX: &str = ".agtmux-backup-";

/// Removes the backups of this file except the newest. Errors are ignored: an old backup is harmless.
fn remove_older_backups(path: &Path, newest: &Path) {
    let Some(prefix) = path.file_name().map(|name| format!("{}{BACKUP_INFIX}", name.to_string_lossy())) else { return };
    let is_time = |rest: &str| {
        let (time, number) = rest.split_once('-').unwrap_or((rest, ""));
        time.len() == "20260101T000000Z".len()
            && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'T' || byte == b'Z')
            && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_backup = |name: &str| name.strip_prefix(&prefix).is_some_and(is_time);
    let beside = path.parent().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    for entry in beside.filter(|entry| entry.file_name().to_str().is_some_and(is_backup)) {
        if entry.path() != newest && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes the directory of this file and then the parent directories, at most `count` in all. Stops at the first
/// directory that is not empty.
pub(super) fn remove_dirs(path: &Path, count: usize) {
    let _ = path.ancestors().skip(1).take(count).map(fs::remove_dir).find(Result::is_err);
}

fn back_up(path: &Path, text: &str) -> io::Result<PathBuf> {
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    for n in 1.. {
        let more = if n == 1 { String::new() } else { format!("-{n}") };
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{BACKUP_INFIX}{stamp}{more}"));
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&name) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
                return Ok(name.into());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no free name for a backup"))
}

/// Replaces the file atomically.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir)?;
    let mut draft = create_draft(path)?;
    draft.write_all(text.as_bytes())?;
    if let Ok(meta) = fs::metadata(path) {
        // Only root can change the owner; other users own the file already.
        let _ = std::os::unix::fs::chown(draft.path(), Some(meta.uid()), Some(meta.gid()));
        fs::set_permissions(draft.path(), Permissions::from_mode(meta.permissions().mode() & 0o7777))?;
    } else if text.starts_with("#!") {
        fs::set_permissions(draft.path(), Permissions::from_mode(0o755))?;
    }
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    Ok(())
}

const DRAFT_SUFFIX: &str = ".tmp";

/// The prefix of temporary files, such as `.settings.json.agtmux-`. Random letters follow.
fn draft_prefix(path: &Path) -> String {
    format!(".{}.agtmux-", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Creates a temporary file beside this file. The temporary file later replaces this file.
pub(super) fn create_draft(path: &Path) -> io::Result<NamedTempFile> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    tempfile::Builder::new().prefix(&draft_prefix(path)).suffix(DRAFT_SUFFIX).tempfile_in(dir)
}

/// Removes the temporary files of setups that were killed. The caller must hold the setup lock.
pub(super) fn remove_drafts(path: &Path) {
    let begins = draft_prefix(path);
    let is_draft = |name: &str| {
        let letters = name.strip_prefix(&begins).and_then(|rest| rest.strip_suffix(DRAFT_SUFFIX));
        letters.is_some_and(|letters| !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    let beside = path.parent().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    for entry in beside.filter(|entry| entry.file_name().to_str().is_some_and(is_draft)) {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_setup_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let names = ["settings.json", "settings.json.agtmux-backup-20260101T000000Z", ".settings.json.agtmux-.tmp"];
        let others = names.map(|name| dir.path().join(name));
        others.iter().for_each(|path| fs::write(path, "").expect("written"));
        let (_, draft) = create_draft(&others[0]).and_then(|draft| Ok(draft.keep()?)).expect("made");
        assert!(draft.exists());
        remove_drafts(&others[0]);
        assert!(!draft.exists() && others.iter().all(|path| path.exists()));
    }

    #[test]
    fn only_the_newest_backup_of_a_file_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let names = [
            "s.json.agtmux-backup-20260101T000000Z",
            "s.json.agtmux-backup-20260101T000000Z-2",
            "s.json.agtmux-backup-20260102T000000Z",
            "s.json.agtmux-backup-of-mine",
            "other.json.agtmux-backup-20260101T000000Z",
        ];
        names.iter().for_each(|name| fs::write(dir.path().join(name), "").expect("written"));
        remove_older_backups(&dir.path().join("s.json"), &dir.path().join(names[2]));
        let exist: Vec<bool> = names.iter().map(|name| dir.path().join(name).exists()).collect();
        assert_eq!(exist, [false, false, true, true, true]);
    }

    #[test]
    fn links_are_resolved_for_missing_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let real = dir.path().canonicalize().expect("it is there").join("real");
        fs::create_dir(&real).expect("made");
        let link = |name: &str, to: &str| std::os::unix::fs::symlink(to, dir.path().join(name)).expect("linked");
        link("link", "real");
        link("nowhere", "gone");
        let target = |path: &str| resolve_links(&dir.path().join(path));
        assert_eq!(target("link/a/b/c.json").ok(), Some(real.join("a/b/c.json")));
        assert!(target("nowhere").is_err() && target("nowhere/a/b.json").is_err());
    }
}
