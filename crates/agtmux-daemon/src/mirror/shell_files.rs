//! The files that the shell of a shared terminal reads when it starts. Their text is part of the executable. agtmux
//! writes a copy into the directory of each terminal, and inserts a random value (the nonce) that proves that a mark
//! comes from this shell.

use std::io;
use std::path::{Path, PathBuf};

use agtmux_api::mirror_files::MirrorFiles;
use agtmux_core::mirror::MirrorShell;
use agtmux_tmux::quoted_for_shell;

/// Shells that are started without marks.
const POSIX_SHELLS: [&str; 9] = ["sh", "dash", "ash", "ksh", "ksh93", "mksh", "oksh", "loksh", "yash"];

/// The functions that write the marks, and the file that loads them.
fn sources(shell: MirrorShell) -> (&'static str, &'static str) {
    match shell {
        MirrorShell::Bash => (include_str!("shells/marks.bash"), include_str!("shells/start.bash")),
        MirrorShell::Zsh => (include_str!("shells/marks.zsh"), include_str!("shells/start.zsh")),
        MirrorShell::Fish => (include_str!("shells/marks.fish"), include_str!("shells/start.fish")),
        MirrorShell::Posix => ("", include_str!("shells/start.sh")),
    }
}

pub(super) fn write(files: &MirrorFiles, shell: MirrorShell, nonce: &str) -> io::Result<()> {
    let (marks, start) = sources(shell);
    let dir = files.dir().to_str().ok_or_else(|| io::Error::other("the path of the state directory is not UTF-8"))?;
    let start = start.replace("@NONCE@", nonce).replace("@DIR@", &quoted_for_shell(dir));
    files.write(&files.marks(), marks.as_bytes())?;
    files.write(&files.start(shell), start.as_bytes())?;
    files.clear_input()
}

/// Writes the files that a running shell reads, once. `rows` is the number of screen rows of the line that reads them.
pub(super) fn write_adopted(files: &MirrorFiles, shell: MirrorShell, nonce: &str, rows: usize) -> io::Result<()> {
    let adopt = match shell {
        MirrorShell::Bash => include_str!("shells/adopt.bash"),
        MirrorShell::Zsh => include_str!("shells/adopt.zsh"),
        MirrorShell::Fish => include_str!("shells/adopt.fish"),
        MirrorShell::Posix => return Ok(()),
    };
    write(files, shell, nonce)?;
    let dir = files.dir().to_string_lossy();
    let adopt = adopt.replace("@NONCE@", nonce).replace("@ROWS@", &rows.to_string());
    files.write(&files.adopt(), adopt.replace("@DIR@", &quoted_for_shell(&dir)).as_bytes())
}

/// The shell with this name or path, and its path.
pub(super) fn find(shell: &str) -> Option<(MirrorShell, PathBuf)> {
    let name = Path::new(shell).file_name()?.to_str()?;
    let kind = kind(name)?;
    if shell.starts_with('/') {
        return Path::new(shell).is_file().then(|| (kind, PathBuf::from(shell)));
    }
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join(shell)).find(|file| file.is_file());
    found.map(|file| (kind, file))
}

fn kind(name: &str) -> Option<MirrorShell> {
    let name = name.trim_start_matches('-');
    if POSIX_SHELLS.contains(&name) { Some(MirrorShell::Posix) } else { name.parse().ok() }
}

/// Whether this is the name of a shell.
pub(super) fn is_shell(name: &str) -> bool {
    kind(name).is_some() || ["csh", "tcsh", "nu", "elvish", "xonsh", "pwsh"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supported_shells_are_found() {
        assert_eq!(find("/bin/sh"), Some((MirrorShell::Posix, "/bin/sh".into())));
        assert_eq!(find("/nonexistent/bash"), None);
        assert_eq!(find("python3"), None);
        assert!(matches!(find("bash"), Some((MirrorShell::Bash, path)) if path.is_absolute()));
    }

    #[test]
    fn the_files_contain_the_nonce_and_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a temporary directory");
        for shell in MirrorShell::ALL {
            let files = MirrorFiles::in_dir(dir.path(), shell.as_str());
            files.create().expect("created");
            write(&files, *shell, "n0nce").expect("written");
            let start = std::fs::read_to_string(files.start(*shell)).expect("read");
            assert!(start.contains("n0nce") || *shell == MirrorShell::Posix, "{start}");
            assert!(!start.contains('@'), "{start}");
            let mode = std::fs::metadata(files.start(*shell)).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
