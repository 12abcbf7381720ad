//! Checks that a command is complete before it is typed. An open quote would leave the shell waiting for more.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use agtmux_core::mirror::MirrorShell;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How long the check may take. If it takes longer, agtmux types the command anyway, and the shell reports any error.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Shell words that begin a construct of several parts, such as a loop.
const RESERVED: [&str; 13] =
    ["if", "for", "while", "until", "case", "select", "function", "begin", "switch", "repeat", "coproc", "time", "do"];

/// Returns why the shell would not accept the command. `None` if the command is complete, or if agtmux cannot check it.
pub(super) async fn find_error(shell: MirrorShell, program: &Path, command: &str) -> Option<String> {
    if is_plain(command) {
        return None;
    }
    tokio::time::timeout(TIMEOUT, ask_shell(shell, program, command)).await.ok().flatten()
}

/// Whether the command is one line of plain words. Such a command needs no check.
fn is_plain(command: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " _./=:,@%+-".contains(c);
    let first = command.split_whitespace().next().unwrap_or_default();
    command.chars().all(plain) && !RESERVED.contains(&first)
}

/// Lets the shell parse the command without running it.
async fn ask_shell(shell: MirrorShell, program: &Path, command: &str) -> Option<String> {
    let mut check = Command::new(program);
    match shell {
        // Patterns such as !(a) are valid in many interactive shells.
        MirrorShell::Bash => check.args(["--norc", "--noprofile", "-O", "extglob", "-n"]),
        MirrorShell::Zsh => check.args(["-f", "-n"]),
        MirrorShell::Fish => check.args(["--no-config", "-n"]),
        MirrorShell::Posix => check.arg("-n"),
    };
    check.env_remove("ENV").env_remove("BASH_ENV").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = check.kill_on_drop(true).spawn().ok()?;
    let mut input = child.stdin.take()?;
    let written = async move {
        // A shell that has seen an error may close the pipe early.
        let _ = input.write_all(command.as_bytes()).await;
        let _ = input.write_all(b"\n").await;
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), written);
    let output = output.ok()?;
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    // Bash warns about an open here-document, but accepts it.
    let is_open = message.contains("here-document") && message.contains("delimited by end-of-file");
    (!output.status.success() || is_open).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn error(command: &str) -> Option<String> {
        find_error(MirrorShell::Bash, Path::new("/bin/bash"), command).await
    }

    #[tokio::test]
    async fn incomplete_commands_are_found_and_complete_ones_accepted() {
        for incomplete in ["echo \"a", "if true", "(ls", "cat <<E\nx", "echo )", "for x in a; do"] {
            assert!(error(incomplete).await.is_some(), "{incomplete}");
        }
        for complete in [
            "true",
            "echo \"a b\"",
            "cat <<E\nx\nE\n",
            "ls !(a)",
            "for x in a; do echo $x; done",
            "# note",
            "git log -1",
        ] {
            assert_eq!(error(complete).await, None, "{complete}");
        }
    }
}
