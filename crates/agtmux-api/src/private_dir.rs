//! Creates directories that other users can neither read nor replace.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::unistd::{Group, User};
use rustix::process::geteuid;

use crate::paths::{CONTROL_DIR, PathError, STATE_FILES};

/// The maximum number of symbolic links in one path. The kernel has the same limit.
const MAX_LINKS: usize = 40;

/// Creates a directory that only the current user can access. If the directory exists and contains files of other
/// programs, its mode stays as it is. Fails if the path is a symbolic link or belongs to another user, or if another
/// user could write to the directory or replace a directory above it.
pub fn private_dir(path: &Path, variable: &'static str) -> Result<(), PathError> {
    let io_error = |source| PathError::Io { path: path.to_owned(), source };
    let refuse = |why: &str| PathError::Unsafe { path: path.to_owned(), why: why.into(), variable };
    if let Some(parent) = path.parent() {
        walk(parent, path, variable)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io_error(error)),
        _ => {}
    }
    let meta = fs::symlink_metadata(path).map_err(io_error)?;
    if meta.file_type().is_symlink() {
        return Err(refuse("is a symbolic link"));
    }
    if !meta.is_dir() {
        return Err(refuse("is not a directory"));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse("belongs to another user"));
    }
    let mode = meta.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    // A directory with other files, such as /tmp or a home directory, keeps its mode.
    if holds_only_ours(path) {
        return fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io_error);
    }
    let (others_write, sticky) = (mode & 0o022 != 0, mode & 0o1000 != 0);
    if others_write && !sticky { Err(refuse("can be written to by other users")) } else { Ok(()) }
}

/// Whether the directory is empty or contains only files of agtmux.
fn holds_only_ours(path: &Path) -> bool {
    let is_ours = |name: &OsString| {
        let name = name.to_string_lossy();
        STATE_FILES.contains(&&*name)
            || name == CONTROL_DIR
            || name.starts_with(".setup.json.agtmux-")
            || name.starts_with("agtmuxd.")
            || name.starts_with("state.db")
    };
    fs::read_dir(path).is_ok_and(|entries| entries.flatten().all(|entry| is_ours(&entry.file_name())))
}

/// Creates a directory, and fails if another user could replace it or a directory above it. The directory itself may be
/// a symbolic link and may be readable by others.
pub fn owned_dir(path: &Path, variable: &'static str) -> Result<(), PathError> {
    walk(path, path, variable)
}

/// Walks from the root to `dir`. Checks each directory and each symbolic link on the way, and creates directories that
/// do not exist. Errors are about `path`.
fn walk(dir: &Path, path: &Path, variable: &'static str) -> Result<(), PathError> {
    let io_error = |source| PathError::Io { path: dir.to_owned(), source };
    let mut current = PathBuf::from("/");
    let mut pending = names_reversed(dir);
    pending.push(current.clone().into_os_string());
    let mut links = 0;
    while let Some(name) = pending.pop() {
        if name == ".." {
            current.pop();
            continue;
        }
        let next = current.join(&name);
        let metadata = existing_or_created(&next).map_err(io_error)?;
        if let Some((why, remedy)) = danger(&next, &metadata) {
            return Err(PathError::UnsafeAncestor { dir: next, path: path.to_owned(), why, remedy, variable });
        }
        if !metadata.file_type().is_symlink() {
            current = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(io_error(rustix::io::Errno::LOOP.into()));
        }
        let target = fs::read_link(&next).map_err(io_error)?;
        if target.is_absolute() {
            current = PathBuf::from("/");
        }
        pending.extend(names_reversed(&target));
    }
    Ok(())
}

/// The components of a path, the last one first.
fn names_reversed(path: &Path) -> Vec<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

fn existing_or_created(path: &Path) -> io::Result<Metadata> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match fs::DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            fs::symlink_metadata(path)
        }
        found => found,
    }
}

/// Why another user could replace files below this directory or link, and how to prevent that. `None` if only root and
/// the current user could replace them.
fn danger(path: &Path, metadata: &Metadata) -> Option<(String, String)> {
    let kind = if metadata.file_type().is_symlink() { "is a symbolic link of" } else { "belongs to" };
    if !is_trusted_owner(metadata.uid()) {
        return Some((format!("{kind} another user (uid {})", metadata.uid()), String::new()));
    }
    let mode = metadata.permissions().mode();
    // In a directory with the sticky bit, such as /tmp, users can replace only what they own.
    if metadata.file_type().is_symlink() || mode & 0o1000 != 0 {
        return None;
    }
    let fix = |who: &str| format!("run `chmod {who}-w '{}'`, or ", path.display());
    if mode & 0o002 != 0 {
        return Some(("can be written to by every user".into(), fix("o")));
    }
    let shared_group = mode & 0o020 != 0 && !is_private_group(metadata.gid());
    shared_group.then(|| (format!("can be written to by the users of group {}", metadata.gid()), fix("g")))
}

/// Whether only the current user (or root) belongs to this group. Many systems give each user a private group with the
/// user's own name or number.
fn is_private_group(gid: u32) -> bool {
    let uid = geteuid().as_raw();
    gid == 0 || gid == uid || has_own_group(uid, gid).unwrap_or(false)
}

/// Whether this group is the user's primary group, has the same name as the user, and lists no other user as a member.
fn has_own_group(uid: u32, gid: u32) -> Option<bool> {
    let user = User::from_uid(uid.into()).ok()??;
    let group = Group::from_gid(gid.into()).ok()??;
    let is_alone = group.mem.iter().all(|member| *member == user.name);
    Some(user.gid == group.gid && user.name == group.name && is_alone)
}

fn is_trusted_owner(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw() || (Some(uid) == overflow_uid() && !has_all_users())
}

/// The uid that the kernel reports for files whose owners do not exist in this user namespace.
fn overflow_uid() -> Option<u32> {
    fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()
}

/// Whether this user namespace contains all users of the host. The namespaces of agent sandboxes do not: in a sandbox,
/// even `/` belongs to the overflow user.
fn has_all_users() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    struct TestDir(PathBuf);

    impl TestDir {
        fn new(name: &str) -> Self {
            let base = std::env::temp_dir().join(format!("agtmux-{name}-{}", std::process::id()));
            fs::create_dir_all(&base).expect("made");
            Self(base)
        }

        fn dir(&self, name: &str, mode: u32) -> PathBuf {
            let dir = self.0.join(name);
            fs::create_dir_all(&dir).expect("made");
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("set");
            dir
        }
    }

    impl Drop for TestDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn refusal(path: &Path) -> String {
        private_dir(path, "AGTMUX_STATE_DIR").err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_group_is_private_if_it_has_the_name_of_its_only_user() {
        assert_eq!(has_own_group(0, 0), Some(true), "root has the group root");
        let others = Group::from_name("tty").ok().flatten().map(|group| group.gid.as_raw());
        assert_ne!(others.and_then(|gid| has_own_group(0, gid)), Some(true));
    }

    #[test]
    fn a_directory_that_every_user_can_replace_is_refused_with_the_remedy() {
        let base = TestDir::new("replaceable");
        for (name, mode, expected) in [
            ("open", 0o777, "can be written to by every user"),
            ("others", 0o702, "can be written to by every user"),
            ("sticky", 0o1777, ""),
            ("readable", 0o755, ""),
        ] {
            let parent = base.dir(name, mode);
            let path = parent.join("deep/state");
            let refused = refusal(&path);
            assert!(refused.contains(expected) && refused.is_empty() == expected.is_empty(), "{name}: {refused}");
            assert_eq!(path.exists(), expected.is_empty(), "{name}");
            if !expected.is_empty() {
                assert!(refused.contains(&format!("chmod o-w '{}'", parent.display())), "{refused}");
                assert!(refused.contains("set AGTMUX_STATE_DIR to a path below"), "{refused}");
            }
            assert_eq!(owned_dir(&parent.join("config"), "AGTMUX_CONFIG").is_ok(), expected.is_empty(), "{name}");
        }
    }

    #[test]
    fn links_are_followed_and_their_directories_are_checked() {
        let base = TestDir::new("links");
        let (open, safe) = (base.dir("open", 0o777), base.dir("safe", 0o700));
        symlink(&open, safe.join("to-open")).expect("linked");
        symlink("safe", base.0.join("to-safe")).expect("linked");
        symlink("../safe", safe.join("up")).expect("linked");
        symlink("loop", safe.join("loop")).expect("linked");
        assert!(
            refusal(&safe.join("to-open/state")).contains("every user"),
            "{}",
            refusal(&safe.join("to-open/state"))
        );
        assert!(refusal(&safe.join("loop/state")).contains("symbolic links"), "{}", refusal(&safe.join("loop/state")));
        assert_eq!(refusal(&base.0.join("safe/../to-safe/up/state")), "");
        assert!(safe.join("state").is_dir());
    }

    #[test]
    fn directories_and_links_of_other_users_are_refused() {
        if !geteuid().is_root() {
            return;
        }
        let base = TestDir::new("owners");
        let (theirs, ours, group) = (base.dir("theirs", 0o755), base.dir("ours", 0o755), base.dir("group", 0o770));
        chown(&theirs, Some(65534), None).expect("root may");
        chown(&group, None, Some(4321)).expect("root may");
        let link = base.0.join("link");
        symlink(&ours, &link).expect("linked");
        std::os::unix::fs::lchown(&link, Some(65534), None).expect("root may");
        for (path, expected) in [
            (theirs.join("state"), "belongs to another user (uid 65534)"),
            (link.join("state"), "is a symbolic link of another user (uid 65534)"),
            (group.join("state"), "can be written to by the users of group 4321"),
        ] {
            assert!(refusal(&path).contains(expected), "{}", refusal(&path));
            assert!(!path.exists());
        }
        chown(&group, None, Some(0)).expect("root may");
        assert_eq!(refusal(&group.join("state")), "");
    }

    #[test]
    fn a_directory_with_other_files_keeps_its_mode() {
        let base = std::env::temp_dir().join(format!("agtmux-paths-{}", std::process::id()));
        let mode_of = |dir: &Path| fs::metadata(dir).expect("there").permissions().mode() & 0o7777;
        for (name, file, before, after) in [
            ("shared", Some("letter"), 0o1777, Some(0o1777)),
            ("home", Some("letter"), 0o755, Some(0o755)),
            ("open", Some("letter"), 0o777, None),
            ("own", Some("agtmuxd.lock"), 0o777, Some(0o700)),
            ("terminals", Some("mirrors"), 0o777, Some(0o700)),
            ("empty", None, 0o755, Some(0o700)),
        ] {
            let dir = base.join(name);
            fs::create_dir_all(&dir).expect("made");
            file.into_iter().for_each(|file| fs::write(dir.join(file), "").expect("written"));
            fs::set_permissions(&dir, fs::Permissions::from_mode(before)).expect("set");
            assert_eq!(private_dir(&dir, "AGTMUX_SOCKET").ok().map(|()| mode_of(&dir)), after, "{name}");
        }
        fs::remove_dir_all(&base).expect("removed");
    }
}
