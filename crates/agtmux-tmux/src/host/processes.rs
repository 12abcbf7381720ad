//! What runs there, as the shell can tell.

use super::{HostShell, ShellBatch, ShellError};
use crate::input::deadline_second;
use crate::platform::{ProcessInfo, ProcessSnapshot, ps_rows};
use std::time::Duration;

/// How a host tells of its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessSource {
    /// By `/proc`, and `ps` for their arguments.
    Proc,
    /// The same with the `ps` of busybox, which knows fewer words.
    ProcWithBusyboxPs,
    /// By `ps`, as on BSD and macOS.
    Ps,
}

/// What is asked of the process table: two lines.
pub(super) fn add_process_listing(question: &mut ShellBatch, form: ProcessSource) -> (usize, usize) {
    let ps = |columns: &str| format!("LC_ALL=C TZ=UTC0 COLUMNS=4096 ps -axww -o {columns}");
    // grep names the file before each line, so that no name of a process can pass for another line.
    let stats = "LC_ALL=C grep -sH '' /proc/[0-9]*/stat";
    match form {
        ProcessSource::Proc => (question.add(stats), question.add(ps("pid=,args="))),
        ProcessSource::ProcWithBusyboxPs => {
            (question.add(stats), question.add("ps -o pid,args 2>/dev/null || ps w 2>/dev/null || ps"))
        }
        ProcessSource::Ps => (question.add(ps(ps_rows::COLUMNS)), question.add(ps(ps_rows::ARGS_COLUMNS))),
    }
}

pub(super) fn parse_processes(form: ProcessSource, rows: &[u8], args: &[u8]) -> ProcessSnapshot {
    match form {
        ProcessSource::Ps => ProcessSnapshot::from_ps(rows, args),
        ProcessSource::Proc | ProcessSource::ProcWithBusyboxPs => ProcessSnapshot::from_proc(rows, args),
    }
}

/// Sends it a signal if it is still that process and the clock there is before this second, in one line of the shell.
fn signal_line(form: ProcessSource, process: &ProcessInfo, kill: bool, given_up: u64) -> Option<String> {
    let (pid, signal) = (process.pid, if kill { "KILL" } else { "TERM" });
    let is_it = match form {
        ProcessSource::Ps => {
            let start = ps_rows::format_start(process.start)?;
            format!("set -- $(LC_ALL=C TZ=UTC0 ps -p {pid} -o lstart=); [ \"$2 $3 $4 $5\" = '{start}' ]")
        }
        // The name is whatever the process chose, but only numbers follow its last parenthesis.
        ProcessSource::Proc | ProcessSource::ProcWithBusyboxPs => format!(
            "IFS= read -r agtmux_line </proc/{pid}/stat && set -- ${{agtmux_line##*) }} && [ \"${{20}}\" = {} ]",
            process.start
        ),
    };
    // Whoever asked has been told by then that it is not known.
    let in_time = format!("[ \"$(date +%s)\" -lt {given_up} ] || exit {EXIT_TOO_LATE}");
    Some(format!("set -f; {in_time}; if {is_it}; then kill -{signal} {pid}; else (exit {EXIT_GONE}); fi"))
}

/// How the line ends when that process is not there any more.
const EXIT_GONE: i32 = 9;
/// How it ends when it was its turn too late.
const EXIT_TOO_LATE: i32 = 8;

impl HostShell {
    pub async fn processes(&self, within: Duration) -> Result<ProcessSnapshot, ShellError> {
        let (mut question, form) = (ShellBatch::default(), self.facts().process_source);
        let (rows, args) = add_process_listing(&mut question, form);
        let answers = self.run(question, within).await?;
        Ok(parse_processes(form, &answers[rows].stdout, &answers[args].stdout))
    }

    /// Sends TERM, or KILL, to this process and to no other that has got its number since. False if it has ended.
    pub async fn signal_process(
        &self,
        process: &ProcessInfo,
        kill: bool,
        within: Duration,
    ) -> Result<bool, ShellError> {
        let given_up = deadline_second(self.now(), within);
        let named = Some(process).filter(|p| p.pid > 1);
        let line = named.and_then(|p| signal_line(self.facts().process_source, p, kill, given_up));
        let Some(line) = line else { return Err(ShellError::Unsupported("that process cannot be named".into())) };
        let mut question = ShellBatch::default();
        // In a shell of its own: what is set there is forgotten.
        question.add(format!("({line})"));
        let answers = self.run(question, within).await?;
        match &answers[..] {
            [answer] if answer.status == 0 => Ok(true),
            [answer] if answer.status == EXIT_GONE => Ok(false),
            [answer] if answer.status == EXIT_TOO_LATE => {
                Err(ShellError::Unsupported("the host came to it too late".into()))
            }
            [answer, ..] => Err(ShellError::Unsupported(String::from_utf8_lossy(&answer.stderr).trim().to_owned())),
            [] => Err(ShellError::Unsupported("it did not answer".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn said(line: &str) -> (Vec<u8>, Option<i32>) {
        let output = Command::new("sh").args(["-c", line]).output().expect("a shell");
        (output.stdout, output.status.code())
    }

    /// What a host without `/proc` is asked works with the `ps` of this one, too.
    #[test]
    fn each_form_finds_a_process_and_strikes_only_that() {
        for form in [ProcessSource::Ps, ProcessSource::Proc] {
            let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep can be started");
            let mut question = ShellBatch::default();
            let (rows, args) = add_process_listing(&mut question, form);
            let lines = question.lines();
            let line = |n: usize| said(&String::from_utf8_lossy(&lines[n])).0;
            let found = parse_processes(form, &line(rows), &line(args)).process(sleeper.id()).expect("it runs");
            assert_eq!(found.argv, [b"sleep".to_vec(), b"600".to_vec()], "{form:?}");
            let stranger = ProcessInfo { start: found.start + 60, ..found.clone() };
            let line =
                |process: &ProcessInfo, until: u64| signal_line(form, process, true, until).expect("it has a name");
            let strike = |process: &ProcessInfo| said(&line(process, u64::MAX >> 1)).1;
            assert_eq!(said(&line(&found, 1_700_000_000)).1, Some(EXIT_TOO_LATE), "{form:?}: it was given up long ago");
            assert_eq!(strike(&stranger), Some(EXIT_GONE), "{form:?}");
            assert!(sleeper.try_wait().expect("a child").is_none(), "{form:?}: it was struck");
            assert_eq!(strike(&found), Some(0), "{form:?}");
            sleeper.wait().expect("it ends");
            assert_eq!(strike(&found), Some(EXIT_GONE), "{form:?}: it has ended");
        }
    }
}
