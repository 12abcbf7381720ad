//! What runs there, as the shell can tell.

use super::{HostShell, Question, ShellError};
use crate::input::given_up;
use crate::platform::{Process, Snapshot, rows};
use std::time::Duration;

/// How a host tells of its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// By `/proc`, and `ps` for their arguments.
    Proc,
    /// The same with the `ps` of busybox, which knows fewer words.
    ProcWithSmallPs,
    /// By `ps`, as on BSD and macOS.
    Ps,
}

/// What is asked of the process table: two lines.
pub(super) fn add(question: &mut Question, form: Form) -> (usize, usize) {
    let ps = |columns: &str| format!("LC_ALL=C TZ=UTC0 COLUMNS=4096 ps -axww -o {columns}");
    // grep names the file before each line, so that no name of a process can pass for another line.
    let stats = "LC_ALL=C grep -sH '' /proc/[0-9]*/stat";
    match form {
        Form::Proc => (question.add(stats), question.add(ps("pid=,args="))),
        Form::ProcWithSmallPs => {
            (question.add(stats), question.add("ps -o pid,args 2>/dev/null || ps w 2>/dev/null || ps"))
        }
        Form::Ps => (question.add(ps(rows::COLUMNS)), question.add(ps(rows::ARGS_COLUMNS))),
    }
}

pub(super) fn read(form: Form, rows: &[u8], args: &[u8]) -> Snapshot {
    match form {
        Form::Ps => Snapshot::from_ps(rows, args),
        Form::Proc | Form::ProcWithSmallPs => Snapshot::from_proc(rows, args),
    }
}

/// Sends it a signal if it is still that process and the clock there is before this second, in one line of the shell.
fn striking(form: Form, process: &Process, kill: bool, given_up: u64) -> Option<String> {
    let (pid, signal) = (process.pid, if kill { "KILL" } else { "TERM" });
    let is_it = match form {
        Form::Ps => {
            let start = rows::shown_start(process.start)?;
            format!("set -- $(LC_ALL=C TZ=UTC0 ps -p {pid} -o lstart=); [ \"$2 $3 $4 $5\" = '{start}' ]")
        }
        // The name is whatever the process chose, but only numbers follow its last parenthesis.
        Form::Proc | Form::ProcWithSmallPs => format!(
            "IFS= read -r agtmux_line </proc/{pid}/stat && set -- ${{agtmux_line##*) }} && [ \"${{20}}\" = {} ]",
            process.start
        ),
    };
    // Whoever asked has been told by then that it is not known.
    let in_time = format!("[ \"$(date +%s)\" -lt {given_up} ] || exit {LATE}");
    Some(format!("set -f; {in_time}; if {is_it}; then kill -{signal} {pid}; else (exit {GONE}); fi"))
}

/// How the line ends when that process is not there any more.
const GONE: i32 = 9;
/// How it ends when it was its turn too late.
const LATE: i32 = 8;

impl HostShell {
    pub async fn processes(&self, within: Duration) -> Result<Snapshot, ShellError> {
        let (mut question, form) = (Question::default(), self.facts().processes);
        let (rows, args) = add(&mut question, form);
        let answers = self.ask(question, within).await?;
        Ok(read(form, &answers[rows].stdout, &answers[args].stdout))
    }

    /// Sends TERM, or KILL, to this process and to no other that has got its number since. False if it has ended.
    pub async fn strike(&self, process: &Process, kill: bool, within: Duration) -> Result<bool, ShellError> {
        let given_up = given_up(self.now(), within);
        let named = Some(process).filter(|p| p.pid > 1);
        let line = named.and_then(|p| striking(self.facts().processes, p, kill, given_up));
        let Some(line) = line else { return Err(ShellError::Unfit("that process cannot be named".into())) };
        let mut question = Question::default();
        // In a shell of its own: what is set there is forgotten.
        question.add(format!("({line})"));
        let answers = self.ask(question, within).await?;
        match &answers[..] {
            [answer] if answer.status == 0 => Ok(true),
            [answer] if answer.status == GONE => Ok(false),
            [answer] if answer.status == LATE => Err(ShellError::Unfit("the host came to it too late".into())),
            [answer, ..] => Err(ShellError::Unfit(String::from_utf8_lossy(&answer.stderr).trim().to_owned())),
            [] => Err(ShellError::Unfit("it did not answer".into())),
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
        for form in [Form::Ps, Form::Proc] {
            let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep can be started");
            let mut question = Question::default();
            let (rows, args) = add(&mut question, form);
            let lines = question.lines();
            let line = |n: usize| said(&String::from_utf8_lossy(&lines[n])).0;
            let found = read(form, &line(rows), &line(args)).process(sleeper.id()).expect("it runs");
            assert_eq!(found.argv, [b"sleep".to_vec(), b"600".to_vec()], "{form:?}");
            let stranger = Process { start: found.start + 60, ..found.clone() };
            let line = |process: &Process, until: u64| striking(form, process, true, until).expect("it has a name");
            let strike = |process: &Process| said(&line(process, u64::MAX >> 1)).1;
            assert_eq!(said(&line(&found, 1_700_000_000)).1, Some(LATE), "{form:?}: it was given up long ago");
            assert_eq!(strike(&stranger), Some(GONE), "{form:?}");
            assert!(sleeper.try_wait().expect("a child").is_none(), "{form:?}: it was struck");
            assert_eq!(strike(&found), Some(0), "{form:?}");
            sleeper.wait().expect("it ends");
            assert_eq!(strike(&found), Some(GONE), "{form:?}: it has ended");
        }
    }
}
