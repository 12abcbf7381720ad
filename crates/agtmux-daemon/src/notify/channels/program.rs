//! Runs programs for notices: the program of the channel `command`, and helpers such as curl.

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use agtmux_api::wire::Notice;
use agtmux_core::sanitize;
use agtmux_tmux::ssh::ProcessGroup;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, Command};
use tokio::time::timeout;

use super::DeliveryResult;

/// The most bytes of an error message that are read.
const MAX_ERROR_BYTES: u64 = 1000;
/// How long the messages of a program are read after it has ended.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(100);

/// Runs the configured program with the notice on stdin. The command is split at spaces, and no shell is involved.
pub(super) async fn run(command: &str, notice: &Notice) -> DeliveryResult {
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else { return Err("notify.command is empty".into()) };
    let mut line = document(notice)?;
    line.push('\n');
    let mut command = Command::new(program);
    run_with_input(command.args(words), line.as_bytes()).await
}

/// The notice as JSON, safe to print on a terminal.
pub(super) fn document(notice: &Notice) -> Result<String, String> {
    let json = serde_json::to_string(notice).map_err(|error| error.to_string())?;
    Ok(sanitize::in_json(&json).into_owned())
}

/// Runs the command until it ends. A failure contains a line that the program printed on stderr. If the future
/// is dropped, the program and its process group are killed.
pub(super) async fn run_with_input(command: &mut Command, input: &[u8]) -> DeliveryResult {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let started = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start '{program}': {error}"))?;
    let mut group = ProcessGroup::new(started);
    let ended = write_and_wait(&mut group, &program, input).await.map_err(|error| error.to_string())?;
    match ended {
        (status, _) if status.success() => Ok(()),
        (status, message) if message.is_empty() => Err(format!("'{program}' failed: {status}")),
        (status, message) => Err(format!("'{program}' failed: {status}: {message}")),
    }
}

async fn write_and_wait(group: &mut ProcessGroup, program: &str, input: &[u8]) -> io::Result<(ExitStatus, String)> {
    let child = group.child();
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let mut printed = Vec::new();
    let status = {
        let mut exchange = pin!(write_and_read(stdin, input, stderr, &mut printed));
        let ended = tokio::select! {
            ended = child.wait() => Some(ended),
            () = &mut exchange => None,
        };
        match ended {
            // A process that the program left in the background may keep stderr open.
            Some(ended) => {
                let _ = timeout(LAST_WORDS_TIMEOUT, exchange).await;
                ended
            }
            None => child.wait().await,
        }
    };
    let message = String::from_utf8_lossy(&printed);
    Ok((status?, sanitize::for_column(error_line(&message, program), 200)))
}

/// The line that begins with the name of the program, as is usual for messages. Otherwise the last line.
fn error_line<'a>(message: &'a str, program: &str) -> &'a str {
    let own = message.lines().find(|line| line.strip_prefix(program).is_some_and(|rest| rest.starts_with(": ")));
    own.or_else(|| message.lines().rev().find(|line| !line.trim().is_empty())).unwrap_or_default().trim()
}

async fn write_and_read(stdin: Option<ChildStdin>, input: &[u8], stderr: Option<ChildStderr>, printed: &mut Vec<u8>) {
    let write = async {
        if let Some(mut stdin) = stdin {
            // The program need not read its input.
            let _ = stdin.write_all(input).await;
        }
    };
    let read = async {
        if let Some(mut stderr) = stderr {
            let _ = (&mut stderr).take(MAX_ERROR_BYTES).read_to_end(printed).await;
            // The program must not wait until the rest of its messages is read.
            let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        }
    };
    tokio::join!(write, read);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run_script(script: &str) -> DeliveryResult {
        run_with_input(Command::new("sh").args(["-c", script]), b"input").await
    }

    #[tokio::test]
    async fn a_program_is_done_when_it_ends() {
        for script in [
            "cat >/dev/null",
            "exit 0",
            "exec 2>&-; cat >/dev/null",
            // A process in the background keeps stderr open.
            "sleep 5 & exit 0",
        ] {
            let ended = timeout(Duration::from_secs(10), run_script(script)).await;
            assert_eq!(ended.expect("it ends"), Ok(()), "{script}");
        }
    }

    #[tokio::test]
    async fn a_failure_contains_the_message_of_the_program() {
        let error = run_script("echo first >&2; printf 'last \\033[2J\\n\\n' >&2; exit 3").await.expect_err("it fails");
        assert_eq!(error, "'sh' failed: exit status: 3: last \\x1b[2J");
        let error = run_script("echo 'sh: no entry' >&2; echo more >&2; exit 1").await.expect_err("it fails");
        assert!(error.ends_with(": sh: no entry"), "{error}");
        let error = run_script("yes failed | head -c 3000000 >&2; exit 1").await.expect_err("it fails");
        assert!(error.ends_with("failed"), "{error}");
        let missing = run_with_input(&mut Command::new("/nonexistent/program"), b"").await.expect_err("missing");
        assert!(missing.starts_with("cannot start '/nonexistent/program'"), "{missing}");
    }
}
