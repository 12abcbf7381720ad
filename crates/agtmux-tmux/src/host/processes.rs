//! Lists and signals the processes of a host through its shell.

use super::{HostShell, ShellBatch, ShellError};
use crate::input::deadline_second;
use crate::platform::{ProcessInfo, ProcessSnapshot, ps_rows};
use std::time::Duration;

/// Where the list of processes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessSource {
    /// `/proc`. The arguments come from `ps`.
    Proc,
    /// Like `Proc`, but with the `ps` of busybox, which has fewer options.
    ProcWithBusyboxPs,
    /// Only `ps`, for example on BSD and macOS.
    Ps,
}

/// Adds two lines to the batch, which together list all processes. Returns the indexes of their outputs.
pub(super) fn add_process_listing(batch: &mut ShellBatch, source: ProcessSource) -> (usize, usize) {
    let ps = |columns: &str| format!("LC_ALL=C TZ=UTC0 COLUMNS=4096 ps -axww -o {columns}");
    // grep prints the file name before each line, so that a process name cannot forge a line.
    let stats = "LC_ALL=C grep -sH '' /proc/[0-9]*/stat";
    match source {
        ProcessSource::Proc => (batch.add(stats), batch.add(ps("pid=,args="))),
        ProcessSource::ProcWithBusyboxPs => {
            (batch.add(stats), batch.add("ps -o pid,args 2>/dev/null || ps w 2>/dev/null || ps"))
        }
        ProcessSource::Ps => (batch.add(ps(ps_rows::COLUMNS)), batch.add(ps(ps_rows::ARGS_COLUMNS))),
    }
}

pub(super) fn parse_processes(source: ProcessSource, rows: &[u8], args: &[u8]) -> ProcessSnapshot {
    match source {
        ProcessSource::Ps => ProcessSnapshot::from_ps(rows, args),
        ProcessSource::Proc | ProcessSource::ProcWithBusyboxPs => ProcessSnapshot::from_proc(rows, args),
    }
}

/// A shell line that signals the process. It sends no signal if the pid now belongs to another process, or if the
/// host's clock has reached the deadline.
fn signal_line(source: ProcessSource, process: &ProcessInfo, kill: bool, deadline: u64) -> Option<String> {
    let (pid, signal) = (process.pid, if kill { "KILL" } else { "TERM" });
    let is_same_process = match source {
        ProcessSource::Ps => {
            let start = ps_rows::format_start(process.start)?;
            format!("set -- $(LC_ALL=C TZ=UTC0 ps -p {pid} -o lstart=); [ \"$2 $3 $4 $5\" = '{start}' ]")
        }
        // The process name can contain parentheses, but the fields after it cannot.
        ProcessSource::Proc | ProcessSource::ProcWithBusyboxPs => format!(
            "IFS= read -r agtmux_line </proc/{pid}/stat && set -- ${{agtmux_line##*) }} && [ \"${{20}}\" = {} ]",
            process.start
        ),
    };
    // Do nothing after the deadline, because the caller has already been told that the result is unknown.
    let deadline_check = format!("[ \"$(date +%s)\" -lt {deadline} ] || exit {EXIT_TOO_LATE}");
    Some(format!(
        "set -f; {deadline_check}; if {is_same_process}; then kill -{signal} {pid}; else (exit {EXIT_GONE}); fi"
    ))
}

/// The signal line exits with this status if the process is gone.
const EXIT_GONE: i32 = 9;
/// The signal line exits with this status if the deadline has passed.
const EXIT_TOO_LATE: i32 = 8;

impl HostShell {
    pub async fn processes(&self, within: Duration) -> Result<ProcessSnapshot, ShellError> {
        let (mut batch, source) = (ShellBatch::default(), self.facts().process_source);
        let (rows, args) = add_process_listing(&mut batch, source);
        let outputs = self.run(batch, within).await?;
        Ok(parse_processes(source, &outputs[rows].stdout, &outputs[args].stdout))
    }

    /// Sends TERM or KILL to this process only. Returns false if the process has ended. Another process may have
    /// its pid now.
    pub async fn signal_process(
        &self,
        process: &ProcessInfo,
        kill: bool,
        within: Duration,
    ) -> Result<bool, ShellError> {
        let deadline = deadline_second(self.now(), within);
        let named = Some(process).filter(|p| p.pid > 1);
        let line = named.and_then(|p| signal_line(self.facts().process_source, p, kill, deadline));
        let Some(line) = line else {
            return Err(ShellError::Unsupported("the process has no valid pid or start time".into()));
        };
        // In a subshell, `set` and `exit` do not affect the shell that stays open.
        let answer = self.run_line(format!("({line})"), within).await?;
        match answer.status {
            0 => Ok(true),
            EXIT_GONE => Ok(false),
            EXIT_TOO_LATE => Err(ShellError::Unsupported("the host ran the command after its deadline".into())),
            _ => Err(ShellError::Unsupported(String::from_utf8_lossy(&answer.stderr).trim().to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn run_shell(line: &str) -> (Vec<u8>, Option<i32>) {
        let output = Command::new("sh").args(["-c", line]).output().expect("a shell");
        (output.stdout, output.status.code())
    }

    /// `ProcessSource::Ps` is meant for hosts without `/proc`, but its commands also work with the `ps` of this
    /// machine.
    #[test]
    fn each_source_finds_a_process_and_signals_only_that_one() {
        for source in [ProcessSource::Ps, ProcessSource::Proc] {
            let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep starts");
            let mut batch = ShellBatch::default();
            let (rows, args) = add_process_listing(&mut batch, source);
            let lines = batch.lines();
            let line = |n: usize| run_shell(&String::from_utf8_lossy(&lines[n])).0;
            let found =
                parse_processes(source, &line(rows), &line(args)).process(sleeper.id()).expect("the process runs");
            assert_eq!(found.argv, [b"sleep".to_vec(), b"600".to_vec()], "{source:?}");
            let other = ProcessInfo { start: found.start + 60, ..found.clone() };
            let line = |process: &ProcessInfo, until: u64| {
                signal_line(source, process, true, until).expect("a valid start time")
            };
            let send_kill = |process: &ProcessInfo| run_shell(&line(process, u64::MAX >> 1)).1;
            assert_eq!(
                run_shell(&line(&found, 1_700_000_000)).1,
                Some(EXIT_TOO_LATE),
                "{source:?}: the deadline has passed"
            );
            assert_eq!(send_kill(&other), Some(EXIT_GONE), "{source:?}");
            assert!(sleeper.try_wait().expect("a child").is_none(), "{source:?}: the other process was signalled");
            assert_eq!(send_kill(&found), Some(0), "{source:?}");
            sleeper.wait().expect("the process ends");
            assert_eq!(send_kill(&found), Some(EXIT_GONE), "{source:?}: the process has ended");
        }
    }
}
