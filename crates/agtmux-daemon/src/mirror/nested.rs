//! Finds programs in which the marks of the shell are lost: a nested shell, `su`, `ssh`.

use std::path::Path;

use agtmux_tmux::platform::ProcessInfo;

use super::terminal::SharedTerminal;
use super::{Mirrors, shell_files};

/// Programs that start a shell for another user or on another host.
const CARRIERS: [&str; 6] = ["su", "ssh", "mosh-client", "telnet", "machinectl", "nsenter"];

impl Mirrors {
    /// The name of the nested shell that the person has started. A command of an agent may start one, too, and is then
    /// a running command like any other.
    pub(super) fn nested_shell(&self, terminal: &SharedTerminal) -> Option<String> {
        let is_of_agent = terminal.view().state.running.as_ref().is_some_and(|running| running.exec.is_some());
        let (shell, _) = terminal.spec.process.filter(|_| !is_of_agent)?;
        let processes = self.0.discovery.processes();
        let foreground = processes.foreground_pgrp(shell).filter(|group| *group != shell)?;
        let leader = processes.process(foreground)?;
        let name = name_of(&leader);
        let reads_terminal = || {
            let stdin = processes.stdin_path(leader.pid);
            stdin.is_none_or(|path| path.starts_with("/dev/pts") || path.starts_with("/dev/tty"))
        };
        let is_nested =
            CARRIERS.contains(&&*name) || shell_files::is_shell(&name) && is_interactive(&leader) && reads_terminal();
        is_nested.then_some(name)
    }

    /// Whether the shell itself, and not a command, has the terminal.
    pub(super) fn is_shell_in_foreground(&self, terminal: &SharedTerminal) -> bool {
        let pid = terminal.spec.process.map(|(pid, _)| pid);
        pid.is_some() && pid.and_then(|pid| self.0.discovery.processes().foreground_pgrp(pid)) == pid
    }
}

fn name_of(process: &ProcessInfo) -> String {
    let first = process.argv.first().map_or(process.name.as_slice(), Vec::as_slice);
    let first = String::from_utf8_lossy(first);
    let base = Path::new(first.trim_start_matches('-')).file_name().unwrap_or_default();
    base.to_string_lossy().into_owned()
}

/// Whether a shell with these arguments reads commands from its terminal: it has no script and no command.
fn is_interactive(shell: &ProcessInfo) -> bool {
    shell.argv.iter().skip(1).all(|word| {
        let is_option = word.starts_with(b"-") || word.starts_with(b"+");
        let is_command = !word.starts_with(b"--") && word.contains(&b'c');
        is_option && !is_command
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shells_without_a_script_are_interactive() {
        let shell = |words: &[&str]| ProcessInfo {
            pid: 2,
            ppid: 1,
            pgrp: 2,
            tpgid: None,
            start: 0,
            stopped: false,
            zombie: false,
            name: "bash".into(),
            argv: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
            exe: None,
        };
        for words in [&["bash"][..], &["-bash"], &["/bin/bash", "-l"], &["zsh", "-f", "-i"], &["bash", "--norc"]] {
            assert!(is_interactive(&shell(words)), "{words:?}");
        }
        for words in [&["bash", "script"][..], &["sh", "-c", "x"], &["bash", "-lc", "x"], &["bash", "-x", "script"]] {
            assert!(!is_interactive(&shell(words)), "{words:?}");
        }
        assert_eq!(name_of(&shell(&["-/usr/bin/zsh"])), "zsh");
        assert_eq!(name_of(&shell(&[])), "bash");
    }
}
