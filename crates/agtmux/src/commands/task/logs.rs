//! `agtmux task logs`: prints the output of a task and follows it with -f.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::task_files::older_log;
use agtmux_api::wire::{TaskEventsQuery, TaskLogs, TaskLogsQuery, TaskStreamItem};
use agtmux_client::{DaemonClient, StreamSignal};
use agtmux_core::task::TaskEventKind;
use agtmux_tmux::platform::{self, Platform, WatchToken};
use clap::Args;
use tokio::time::{Instant, sleep};

use super::events::follow;
use super::session_args::TaskSessionArgs;
use crate::commands::watch::stdout_watcher::StdoutWatcher;
use crate::error::{CliError, CliResult};
use crate::message::CliMessage;
use crate::output;
use crate::quit_signals::QuitSignals;

/// How often to check the log when file events are not available.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const LOG: WatchToken = WatchToken(1);
const LOG_APPEARS_WITHIN: Duration = Duration::from_secs(2);
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// `--follow` first reads at most this many bytes at the end of the existing log. The limit is the same without
/// `--follow`.
const MAX_READ: u64 = 16 << 20;

#[derive(Debug, Args)]
pub(crate) struct TaskLogsArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// The task, by name or window id
    task: String,
    /// Keep printing new output until the task ends
    #[arg(long, short)]
    follow: bool,
    /// Print only the last N lines
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<u32>,
    /// Print JSON
    #[arg(long, conflicts_with = "follow")]
    json: bool,
}

pub(crate) async fn run(args: TaskLogsArgs) -> CliResult {
    let (task_session, daemon) = (args.session.resolve()?, DaemonClient::from_env()?);
    let query = TaskLogsQuery {
        session: task_session.session,
        socket: task_session.socket,
        task: args.task,
        lines: args.lines,
    };
    if args.follow {
        return follow_log(daemon, query).await;
    }
    let answer = daemon.get_bytes("/v1/tasks/logs", &query).await?;
    output::answer(&answer, args.json, |logs: &TaskLogs| logs.lines.clone())
}

/// Reads the existing and the new output from the same log file, so that no line is printed twice or split.
async fn follow_log(daemon: DaemonClient, query: TaskLogsQuery) -> CliResult {
    let kept = wait_for_log(&daemon, &query).await?;
    let Some(mut tail) = kept.log.map(PathBuf::from).and_then(LogFollower::open) else {
        let logs: TaskLogs = daemon.get("/v1/tasks/logs", &query).await?;
        output::lines(&logs.lines)?;
        return Err(CliError::failed("cannot follow the output: the task has no log")
            .hint("agtmux view-output --follow   (shows the pane of the task)"));
    };
    let lines = tail.new_lines(kept.dead);
    let most = query.lines.map_or(usize::MAX, |lines| lines as usize);
    output::lines(&lines[lines.len().saturating_sub(most)..])?;
    match kept.run_id {
        Some(run_id) if !kept.dead => follow_until_end(daemon, tail, run_id).await,
        _ => Ok(()),
    }
}

/// Waits for the log of a task that has just started.
async fn wait_for_log(daemon: &DaemonClient, query: &TaskLogsQuery) -> CliResult<TaskLogs> {
    let (query, until) = (TaskLogsQuery { lines: Some(0), ..query.clone() }, Instant::now() + LOG_APPEARS_WITHIN);
    loop {
        let kept: TaskLogs = daemon.get("/v1/tasks/logs", &query).await?;
        if kept.log.is_some() || kept.dead || kept.run_id.is_none() || Instant::now() >= until {
            return Ok(kept);
        }
        sleep(RETRY_PAUSE).await;
    }
}

async fn follow_until_end(daemon: DaemonClient, mut tail: LogFollower, run_id: String) -> CliResult {
    let (mut quit, mut reader) = (QuitSignals::new()?, StdoutWatcher::start());
    let query = TaskEventsQuery { run_id: Some(run_id), after: Some(0), ..TaskEventsQuery::default() };
    let mut events = follow(&daemon, query).await?;
    loop {
        output::lines(tail.new_lines(false))?;
        tokio::select! {
            exit = quit.received() => return Err(CliError::silent(exit)),
            () = reader.closed() => return Ok(()),
            () = tail.wait_for_growth() => {}
            signal = events.next() => match signal? {
                StreamSignal::Event(TaskStreamItem::Event(event)) => {
                    if matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared) {
                        output::lines(tail.new_lines(true))?;
                        CliMessage::new(event.message.clone()).print_stderr();
                        return Ok(());
                    }
                }
                StreamSignal::Event(TaskStreamItem::Over { .. }) => {
                    return output::lines(tail.new_lines(true));
                }
                StreamSignal::CaughtUp | StreamSignal::Disconnected(_) => {}
            },
        }
    }
}

/// Follows a log that grows. When the log is full, the log writer renames it and starts a new file.
struct LogFollower {
    path: PathBuf,
    file: File,
    inode: u64,
    /// The text after the last newline, which is the start of a line that is not complete yet.
    partial_line: Vec<u8>,
    platform: Option<Platform>,
}

impl LogFollower {
    /// Opens the log. The first call of `new_lines` returns its existing lines.
    fn open(path: PathBuf) -> Option<Self> {
        let LogParts { current: (mut file, inode), older } = LogParts::open(&path)?;
        let size = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(MAX_READ))).ok()?;
        let mut partial_line = Vec::new();
        if let Some((mut older, _)) = older {
            let older_size = older.metadata().ok()?.len();
            older.seek(SeekFrom::Start(older_size.saturating_sub(MAX_READ.saturating_sub(size)))).ok()?;
            older.read_to_end(&mut partial_line).ok()?;
        }
        let platform = platform::open(platform::PlatformOptions { pty_events: false, force_portable: false }).ok();
        let platform = platform.filter(|platform| platform.watcher.watch_file(LOG, &path).is_ok());
        Some(Self { path, file, inode, partial_line, platform })
    }

    async fn wait_for_growth(&mut self) {
        match &mut self.platform {
            Some(platform) => {
                let event = tokio::time::timeout(POLL_INTERVAL, platform.signals.recv()).await;
                if event == Ok(None) {
                    self.platform = None;
                }
            }
            None => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }

    /// Returns the new complete lines. With `is_end`, also returns a last line that has no newline.
    fn new_lines(&mut self, is_end: bool) -> Vec<String> {
        let _ = self.file.read_to_end(&mut self.partial_line);
        while let Some(parts) = LogParts::open(&self.path).filter(|parts| parts.current.1 != self.inode) {
            // The path names a new file now, so the old file is complete. Read its rest.
            let _ = self.file.read_to_end(&mut self.partial_line);
            // If the log was renamed twice since the last read, the older log has the lines between the old and the new
            // file.
            if let Some((mut older, _)) = parts.older.filter(|(_, inode)| *inode != self.inode) {
                let _ = older.read_to_end(&mut self.partial_line);
            }
            (self.file, self.inode) = parts.current;
            let _ = self.file.read_to_end(&mut self.partial_line);
        }
        let end = match self.partial_line.iter().rposition(|byte| *byte == b'\n') {
            _ if is_end => self.partial_line.len(),
            Some(last) => last + 1,
            None => return Vec::new(),
        };
        let rest = self.partial_line.split_off(end);
        agtmux_core::output::lines(&std::mem::replace(&mut self.partial_line, rest))
    }
}

/// The two files of a log, each with its inode: the current file, and the file that was renamed last. The log was not
/// renamed while the two files were opened.
struct LogParts {
    current: (File, u64),
    /// The file that was renamed last.
    older: Option<(File, u64)>,
}

impl LogParts {
    fn open(path: &Path) -> Option<Self> {
        let open = |path: &Path| {
            let file = File::open(path).ok()?;
            let inode = file.metadata().ok()?.ino();
            Some((file, inode))
        };
        loop {
            let (current, older) = (open(path)?, open(&older_log(path)));
            // If the log was renamed meanwhile, try again: the log may have another file between the two opened files.
            if path.metadata().ok()?.ino() == current.1 {
                return Some(Self { current, older });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agtmux_api::task_files::BoundedLog;

    use super::*;

    #[test]
    fn each_line_is_returned_once_across_a_log_rotation() {
        let dir = std::env::temp_dir().join(format!("agtmux-tail-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("made");
        let path = dir.join("r.log");
        let mut log = BoundedLog::create(&path, 40).expect("made");
        log.append(b"one\ntwo\nthree\nfour\nfive\nsi").expect("written");
        let mut tail = LogFollower::open(path).expect("there");
        assert_eq!(tail.new_lines(false), ["one", "two", "three", "four", "five"]);
        log.append(b"x\nseven\neight\nnine\nten").expect("written");
        assert_eq!(tail.new_lines(false), ["six", "seven", "eight", "nine"]);
        assert_eq!(tail.new_lines(false), Vec::<String>::new());
        // The log is renamed twice before it is read again.
        log.append(b"\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21").expect("written");
        assert_eq!(tail.new_lines(false), ["ten", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"]);
        assert_eq!(tail.new_lines(true), ["21"]);
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
