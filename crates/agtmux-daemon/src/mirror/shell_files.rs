//! The files that the shell of a shared terminal reads when it starts. Their text is part of the executable. agtmux
//! writes a copy into the directory of each terminal, and inserts a random value (the nonce) that proves that a mark
//! comes from this shell.

use std::io;
use std::path::{Path, PathBuf};

use agtmux_api::mirror_files::MirrorFiles;
use agtmux_core::mirror::MirrorShell;
use agtmux_tmux::quoted_for_shell;

/// The text of two files: the functions that make the shell write marks, and the start file that loads these functions.
fn sources(shell: MirrorShell) -> (&'static str, &'static str) {
    match shell {
        MirrorShell::Bash => (include_str!("shells/marks.bash"), include_str!("shells/start.bash")),
        MirrorShell::Zsh => (include_str!("shells/marks.zsh"), include_str!("shells/start.zsh")),
        MirrorShell::Fish => (include_str!("shells/marks.fish"), include_str!("shells/start.fish")),
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

/// The known shell with this name or path, and the path of its program.
pub(super) fn find(shell: &str) -> Option<(MirrorShell, PathBuf)> {
    let name = Path::new(shell).file_name()?.to_str()?;
    let kind: MirrorShell = name.trim_start_matches('-').parse().ok()?;
    if shell.starts_with('/') {
        return Path::new(shell).is_file().then(|| (kind, PathBuf::from(shell)));
    }
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join(shell)).find(|file| file.is_file());
    found.map(|file| (kind, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supported_shells_are_found() {
        assert_eq!(find("/bin/sh"), None);
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
            assert!(start.contains("n0nce") && !start.contains('@'), "{start}");
            let mode = std::fs::metadata(files.start(*shell)).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
