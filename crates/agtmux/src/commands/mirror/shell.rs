//! `agtmux mirror-shell DIR`: the process that tmux starts in the pane of a shared terminal. This process replaces
//! itself by the user's shell, so that no process of agtmux stays in the pane. The shell is a login shell, as in other
//! panes of tmux.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use agtmux_api::mirror_files::{MirrorFiles, MirrorSpec};
use agtmux_core::mirror::MirrorShell;

use crate::error::CliExit;
use crate::message::CliMessage;

pub(super) fn run(dir: &Path) -> ExitCode {
    let files = MirrorFiles::at(dir);
    let error = match files.read_spec() {
        Ok(spec) => command(&files, &spec, |name| std::env::var_os(name)).exec(),
        Err(error) => error,
    };
    CliMessage::new(format!("cannot start the shell of the shared terminal: {error}")).print_stderr();
    CliExit::NotExecutable.into()
}

/// Builds the command that starts the shell. The shell reads the user's start files as usual, and then agtmux's start
/// file.
fn command(files: &MirrorFiles, spec: &MirrorSpec, variable: impl Fn(&str) -> Option<OsString>) -> Command {
    let mut command = Command::new(&spec.program);
    let name = Path::new(&spec.program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    // A login shell would read the file that ENV names before the person's profile, which may set ENV as well.
    let is_login = spec.shell != MirrorShell::Posix;
    command.arg0(if is_login { format!("-{name}") } else { name });
    let start = files.start(spec.shell);
    // Bash and zsh find agtmux's start file through an environment variable. That file restores the user's value of the
    // variable.
    let mut replace = |name: &str, kept: &str, value: &Path| {
        match variable(name) {
            Some(old) => command.env(kept, old),
            None => command.env_remove(kept),
        };
        command.env(name, value);
    };
    match spec.shell {
        MirrorShell::Bash | MirrorShell::Posix => replace("ENV", "AGTMUX_ENV", &start),
        MirrorShell::Zsh => replace("ZDOTDIR", "AGTMUX_ZDOTDIR", &files.zsh_dir()),
        MirrorShell::Fish => {}
    }
    match spec.shell {
        MirrorShell::Bash => drop(command.arg("--posix")),
        MirrorShell::Zsh => {}
        MirrorShell::Posix => drop(command.arg("-i")),
        MirrorShell::Fish => {
            command.arg("-l").arg("-C").arg(format!("source {}", fish_quoted(&start.to_string_lossy())));
        }
    }
    // If the directory no longer exists, the shell starts in the directory that tmux gave to the pane.
    if Path::new(&spec.cwd).is_dir() {
        command.current_dir(&spec.cwd);
    }
    command
}

fn fish_quoted(path: &str) -> String {
    format!("'{}'", path.replace('\\', r"\\").replace('\'', r"\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(shell: MirrorShell, program: &str) -> MirrorSpec {
        MirrorSpec {
            mirror_id: "m".into(),
            nonce: "secret".into(),
            shell,
            program: program.into(),
            cwd: "/".into(),
            socket: "/s".into(),
            server_pid: 1,
            server_start: 2,
            session: "$0".into(),
            pane: 3,
            for_pane: None,
            process: None,
            adopted: false,
        }
    }

    #[test]
    fn the_nonce_is_neither_in_the_arguments_nor_in_the_environment() {
        let files = MirrorFiles::at(Path::new("/mirrors/it's"));
        for (shell, program) in [
            (MirrorShell::Bash, "/bin/bash"),
            (MirrorShell::Zsh, "/bin/zsh"),
            (MirrorShell::Fish, "/bin/fish"),
            (MirrorShell::Posix, "/bin/dash"),
        ] {
            let command = command(&files, &spec(shell, program), |_| Some("own".into()));
            assert!(!format!("{command:?}").contains("secret"));
            let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            match shell {
                MirrorShell::Bash => assert_eq!(words, ["--posix"]),
                MirrorShell::Zsh => assert!(words.is_empty()),
                MirrorShell::Posix => assert_eq!(words, ["-i"]),
                MirrorShell::Fish => assert_eq!(words, ["-l", "-C", r"source '/mirrors/it\'s/start'"]),
            }
        }
    }
}
