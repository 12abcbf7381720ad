//! `agtmux task-exec SPEC`: the process that tmux starts in the pane of a task. It starts the task as its child, and
//! the task uses the pane's terminal. task-exec forwards signals and writes how the task ended to a file, even if no
//! daemon is running.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agtmux_api::task_files::{ExitRecord, RunFiles, RunSpec, end_marker};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::commands::run::job::{ChildEnd, ChildJob};
use crate::error::CliExit;
use crate::message::CliMessage;

/// The time limit for each of two waits: until a stopped terminal accepts the end mark, and until the log writer has
/// read the mark.
const TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Variables that describe a harness session. The task inherits them if a harness session started the task or the tmux
/// server, but they are wrong for the task. Settings such as `PI_CODING_AGENT_DIR` stay.
const REMOVED_VARIABLES: [&str; 5] =
    ["PI_MIRROR_PANE", "PI_LAST_RC", "AGTMUX_OWNER", "AGTMUX_KEEPER", "AGTMUX_PROJECT"];
const REMOVED_PREFIX: &[u8] = b"PI_SESSION";

pub(super) fn run(spec: &Path) -> ExitCode {
    let files = RunFiles::at(spec);
    let spec = match files.read_spec() {
        Ok(spec) => spec,
        Err(error) => {
            let what = format!("cannot start the task: cannot read '{}': {error}", spec.display());
            CliMessage::new(what).print_stderr();
            return CliExit::Failed.into();
        }
    };
    match start(&spec) {
        Ok(job) => {
            let end = job.wait();
            let unmarked = !has_terminal();
            let hung_up = job.was_hung_up() || end == ChildEnd::Killed(Signal::SIGHUP as i32) || unmarked;
            write_exit_record(&files, &spec, ExitRecord { unmarked, ..exit_record(end, hung_up) });
            job.exit_like_child(end)
        }
        Err(error) => {
            CliMessage::new(format!("cannot start the task in '{}': {error}", spec.cwd)).print_stderr();
            let code = CliExit::NotExecutable;
            write_exit_record(&files, &spec, exit_record(ChildEnd::Exited(code as i32), false));
            code.into()
        }
    }
}

fn start(spec: &RunSpec) -> std::io::Result<ChildJob> {
    std::env::set_current_dir(&spec.cwd)?;
    let shell = std::env::var_os("SHELL").filter(|shell| Path::new(shell).is_absolute());
    let words = [shell.unwrap_or_else(|| "/bin/sh".into()), "-c".into(), spec.command.clone().into()];
    ChildJob::start_with(&words, variables(std::env::vars_os(), spec))
}

fn variables(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    spec: &RunSpec,
) -> impl Iterator<Item = (OsString, OsString)> {
    let stale = |name: &OsString| {
        REMOVED_VARIABLES.iter().any(|stale| name == stale) || name.as_encoded_bytes().starts_with(REMOVED_PREFIX)
    };
    let set = [
        ("PI_TMUX_SESSION", spec.session.as_str()),
        ("AGTMUX_SESSION", spec.session.as_str()),
        ("AGTMUX_TASK", spec.task.as_str()),
        ("AGTMUX_RUN_ID", spec.run_id.as_str()),
        ("PWD", spec.cwd.as_str()),
    ];
    let set: Vec<(OsString, OsString)> = set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let names: Vec<OsString> = set.iter().map(|(name, _)| name.clone()).collect();
    inherited.filter(move |(name, _)| !stale(name) && !names.contains(name)).chain(set)
}

fn exit_record(end: ChildEnd, hung_up: bool) -> ExitRecord {
    match end {
        ChildEnd::Exited(code) => ExitRecord { code: Some(code), signal: None, hung_up, unmarked: false },
        ChildEnd::Killed(signal) => ExitRecord { code: None, signal: Some(signal), hung_up, unmarked: false },
    }
}

fn write_exit_record(files: &RunFiles, spec: &RunSpec, record: ExitRecord) {
    if let Err(error) = files.write_exit(&record) {
        // The daemon can still read the exit status from tmux.
        CliMessage::new(format!("cannot write the exit status of the task: {error}")).print_stderr();
    }
    match write_end_mark(&end_marker(&spec.run_id)) {
        true => wait_until_read(files),
        false if !record.unmarked => write_unmarked_exit(files, record),
        false => {}
    }
}

/// Records how the task ended, and that the output has no end mark, so that readers do not wait for the mark. Does
/// nothing if the daemon has already reported the end of the task and removed the run's files.
fn write_unmarked_exit(files: &RunFiles, record: ExitRecord) {
    if files.spec().exists() {
        let _ = files.write_exit(&ExitRecord { unmarked: true, ..record });
    }
}

/// Waits until the log writer has read the end mark, or until the run's files are gone. This process leads the
/// terminal's session: when this process exits, output that is still in the terminal is lost.
fn wait_until_read(files: &RunFiles) {
    let until = Instant::now() + TIMEOUT;
    let is_read = || files.read_output().is_some_and(|status| status.ended) || !files.spec().exists();
    while has_terminal() && !is_read() && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Whether this process still has its terminal. A hangup takes the terminal away.
fn has_terminal() -> bool {
    OpenOptions::new().read(true).open("/dev/tty").is_ok()
}

/// Writes the end mark after the task's output and returns whether that worked. Gives up after a timeout, because a
/// terminal stopped with Ctrl-S accepts no output.
fn write_end_mark(mark: &[u8]) -> bool {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let terminal = OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open("/dev/tty");
    let Ok(terminal) = terminal else { return false };
    let until = Instant::now() + TIMEOUT;
    let mut rest = mark;
    while !rest.is_empty() {
        match rustix::io::write(&terminal, rest) {
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::AGAIN) => {
                let left = until.saturating_duration_since(Instant::now());
                let Ok(left) = Timespec::try_from(left) else { return false };
                let mut watched = [PollFd::new(&terminal, PollFlags::OUT)];
                if !matches!(poll(&mut watched, Some(&left)), Ok(1..)) {
                    return false;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> RunSpec {
        RunSpec {
            run_id: "r".into(),
            socket: "/s".into(),
            session: "pi-x-1".into(),
            task: "build".into(),
            command: "make".into(),
            cwd: "/p".into(),
            log_bytes: 1,
            agent: None,
            agent_is_assumed: false,
        }
    }

    #[test]
    fn no_exit_file_is_created_after_the_run_files_are_removed() {
        let dir = std::env::temp_dir().join(format!("agtmux-taskexec-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("made");
        let (files, spec) = (RunFiles::in_dir(&dir, "r"), spec());
        let end = exit_record(ChildEnd::Exited(3), false);
        write_unmarked_exit(&files, end);
        assert_eq!(files.read_exit(), None);
        files.write_spec(&spec).expect("written");
        write_unmarked_exit(&files, end);
        assert_eq!(files.read_exit(), Some(ExitRecord { unmarked: true, ..end }));
        std::fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn a_task_gets_its_own_session_and_no_harness_variables() {
        let spec = spec();
        let inherited = [("PI_TMUX_SESSION", "old"), ("PATH", "/bin"), ("PWD", "/"), ("PI_CODING_AGENT_DIR", "/pi")];
        let stale = ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_MIRROR_PANE", "PI_LAST_RC", "AGTMUX_OWNER"];
        let inherited: Vec<_> = inherited.into_iter().chain(stale.map(|name| (name, "old"))).collect();
        let inherited = inherited.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let all: Vec<_> = variables(inherited, &spec).collect();
        let value = |name: &str| all.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>();
        for name in stale {
            assert_eq!(value(name), Vec::<OsString>::new(), "{name}");
        }
        assert_eq!(value("PI_CODING_AGENT_DIR"), ["/pi"]);
        assert_eq!(value("PI_TMUX_SESSION"), ["pi-x-1"]);
        assert_eq!(value("AGTMUX_SESSION"), ["pi-x-1"]);
        assert_eq!((value("PATH"), value("PWD")), (vec!["/bin".into()], vec!["/p".into()]));
    }
}
