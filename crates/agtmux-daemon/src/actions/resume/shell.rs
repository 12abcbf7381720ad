//! Detects a shell that waits for a command line.

use agtmux_core::text;
use agtmux_tmux::platform::{PaneProcesses, ProcessInfo};

/// Shells that understand `cd DIR && COMMAND` and the quoting of [`agtmux_tmux::quoted_for_shell`].
const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "busybox"];

/// Returns the shell that runs in the foreground and waits for a command. Fails with the reason if there is no such
/// shell.
pub(in crate::actions) fn shell_at_prompt(tree: &PaneProcesses, collects_lines: bool) -> Result<&ProcessInfo, String> {
    let Some(group) = tree.foreground_pgrp else { return Err("no program runs in the foreground of the pane".into()) };
    let holders: Vec<&ProcessInfo> = tree.processes.iter().filter(|p| p.pgrp == group && !p.zombie).collect();
    match holders.as_slice() {
        [one] if is_interactive_shell(one) && collects_lines && has_line_editor(one) => {
            Err(format!("'{}' is running a command or reading input", text::from_bytes(&one.name)))
        }
        [one] if is_interactive_shell(one) => Ok(*one),
        [one, ..] => Err(format!("'{}' runs in the foreground of the pane", text::from_bytes(&one.name))),
        [] => Err("another program runs in the foreground of the pane".into()),
    }
}

/// Whether this shell switches line mode off while it shows its prompt. If line mode is on, such a shell is busy, for
/// example with a loop or a `read`.
fn has_line_editor(process: &ProcessInfo) -> bool {
    let name = process.name.strip_prefix(b"-").unwrap_or(&process.name);
    [&b"bash"[..], b"zsh", b"fish"].contains(&name) && !process.argv.iter().any(|word| word == b"--noediting")
}

/// Whether the process is a shell that reads commands from the terminal, not from a script or `-c`.
fn is_interactive_shell(process: &ProcessInfo) -> bool {
    let name = text::from_bytes(process.name.strip_prefix(b"-").unwrap_or(&process.name));
    let reads_terminal = |word: &Vec<u8>| match word.as_slice() {
        [b'-', b'-', ..] => true,
        [b'-', letters @ ..] => !letters.contains(&b'c'),
        other => other == b"sh",
    };
    SHELLS.contains(&name.as_str()) && process.argv.iter().skip(1).all(reads_terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, argv: &[&str]) -> ProcessInfo {
        ProcessInfo {
            pid: 7,
            ppid: 1,
            pgrp: 7,
            tpgid: Some(7),
            start: 1,
            stopped: false,
            zombie: false,
            name: name.into(),
            argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
            exe: None,
        }
    }

    #[test]
    fn a_shell_at_its_prompt_is_distinguished_from_a_busy_one() {
        let tree = |processes: Vec<ProcessInfo>| PaneProcesses { foreground_pgrp: Some(7), processes };
        for argv in [&["-bash"][..], &["bash", "-l"], &["sh", "-i"], &["zsh"], &["bash", "--login"]] {
            let name = argv[0].trim_start_matches('-');
            assert!(shell_at_prompt(&tree(vec![process(name, argv)]), false).is_ok(), "{argv:?}");
        }
        for argv in [&["bash", "build.sh"][..], &["sh", "-c", "sleep 1"], &["vim"], &["bash", "-lc", "x"]] {
            assert!(shell_at_prompt(&tree(vec![process(argv[0], argv)]), false).is_err(), "{argv:?}");
        }
        let busy = tree(vec![process("bash", &["bash"]), process("sleep", &["sleep", "1"])]);
        assert!(shell_at_prompt(&busy, false).is_err());
        let collecting = |argv: &[&str]| shell_at_prompt(&tree(vec![process(argv[0], argv)]), true).is_ok();
        assert!(collecting(&["sh"]) && collecting(&["bash", "--noediting"]));
        assert!(!collecting(&["bash"]) && !collecting(&["zsh"]));
        assert!(
            shell_at_prompt(
                &PaneProcesses { foreground_pgrp: Some(8), processes: vec![process("sh", &["sh"])] },
                false
            )
            .is_err()
        );
    }
}
