//! `agtmux task logs`: what a task has written, and with -f what it writes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::task_files::older_log;
use agtmux_api::wire::{TaskEventsQuery, TaskLogs, TaskLogsQuery};
use agtmux_core::sanitize;
use agtmux_core::task::TaskEventKind;
use agtmux_tmux::platform::{self, Platform, Token};
use clap::Args;
use tokio::time::{Instant, sleep};

use super::events::{Signal, follow};
use super::place::PlaceArgs;
use crate::commands::watch::reader::Reader;
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;
use crate::quit::Quit;

/// Where nothing tells that the log has grown.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOG: Token = Token(1);
const BEGUN_WITHIN: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// Of what is there already, as much as one that does not follow is given.
const MOST_READ: u64 = 16 << 20;

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// The task, by its name or the id of its window
    task: String,
    /// Go on as it writes, until it ends
    #[arg(long, short)]
    follow: bool,
    /// Only the last lines
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<u32>,
    /// Print JSON
    #[arg(long, conflicts_with = "follow")]
    json: bool,
}

pub(crate) async fn run(args: LogsArgs) -> Result<Exit, CliError> {
    let (place, daemon) = (args.place.place()?, Daemon::from_env()?);
    let query = TaskLogsQuery { session: place.session, socket: place.socket, task: args.task, lines: args.lines };
    if args.follow {
        return from_here_on(daemon, query).await;
    }
    let answer = daemon.bytes("/v1/tasks/logs", &query).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let logs: TaskLogs = parse(&answer)?;
    print(&logs.lines)?;
    Ok(Exit::Ok)
}

/// Everything comes from the log itself, by one reader: so nothing is shown twice, and no line is torn.
async fn from_here_on(daemon: Daemon, query: TaskLogsQuery) -> Result<Exit, CliError> {
    let kept = when_kept(&daemon, &query).await?;
    let Some(mut tail) = kept.log.map(PathBuf::from).and_then(Tail::of) else {
        let logs: TaskLogs = daemon.get("/v1/tasks/logs", &query).await?;
        print(&logs.lines)?;
        let message = Message::new("what it writes is not kept, so it cannot be followed");
        return Err(CliError::failed(message.hint("agtmux view-output --follow shows its pane")));
    };
    let lines = tail.news(kept.dead);
    let most = query.lines.map_or(usize::MAX, |lines| lines as usize);
    print(&lines[lines.len().saturating_sub(most)..])?;
    match kept.run_id {
        Some(run_id) if !kept.dead => goes_on(daemon, tail, run_id).await,
        _ => Ok(Exit::Ok),
    }
}

/// The log of a task that was started just now is there in a moment.
async fn when_kept(daemon: &Daemon, query: &TaskLogsQuery) -> Result<TaskLogs, CliError> {
    let (query, until) = (TaskLogsQuery { lines: Some(0), ..query.clone() }, Instant::now() + BEGUN_WITHIN);
    loop {
        let kept: TaskLogs = daemon.get("/v1/tasks/logs", &query).await?;
        if kept.log.is_some() || kept.dead || kept.run_id.is_none() || Instant::now() >= until {
            return Ok(kept);
        }
        sleep(PAUSE).await;
    }
}

fn print(lines: &[String]) -> Result<(), CliError> {
    output::lines(&lines.iter().map(|line| sanitize::for_terminal(line)).collect::<Vec<_>>())
}

async fn goes_on(daemon: Daemon, mut tail: Tail, run_id: String) -> Result<Exit, CliError> {
    let (mut quit, mut reader) = (Quit::new()?, Reader::of_stdout());
    let query = TaskEventsQuery { run_id: Some(run_id), after: Some(0), ..TaskEventsQuery::default() };
    let mut events = follow(daemon, query);
    loop {
        print(&tail.news(false))?;
        tokio::select! {
            exit = quit.requested() => return Ok(exit),
            () = reader.left() => return Ok(Exit::Ok),
            () = tail.grows() => {}
            signal = events.recv() => match signal {
                Some(Signal::Event(event)) => {
                    if matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared) {
                        print(&tail.news(true))?;
                        Message::new(event.message.clone()).tell();
                        return Ok(Exit::Ok);
                    }
                }
                Some(Signal::Over) => {
                    print(&tail.news(true))?;
                    return Ok(Exit::Ok);
                }
                Some(Signal::Failed(error)) => return Err(error),
                None => return Ok(Exit::Ok),
            },
        }
    }
}

/// The end of a log that grows, and is put aside and begun anew when it is full.
struct Tail {
    path: PathBuf,
    file: File,
    inode: u64,
    /// A line that is not ended.
    open: Vec<u8>,
    platform: Option<Platform>,
}

impl Tail {
    /// With what is kept already as its first news.
    fn of(path: PathBuf) -> Option<Self> {
        let mut file = File::open(&path).ok()?;
        let (inode, size) = (file.metadata().ok()?.ino(), file.metadata().ok()?.len());
        file.seek(SeekFrom::Start(size.saturating_sub(MOST_READ))).ok()?;
        let open = before(&path, inode, MOST_READ.saturating_sub(size)).unwrap_or_default();
        let platform = platform::open(platform::Options { pty_events: false, force_portable: false }).ok();
        let platform = platform.filter(|platform| platform.watcher.watch_file(LOG, &path).is_ok());
        Some(Self { path, file, inode, open, platform })
    }

    async fn grows(&mut self) {
        match &mut self.platform {
            Some(platform) => {
                let told = tokio::time::timeout(LOOK_EVERY, platform.signals.recv()).await;
                if told == Ok(None) {
                    self.platform = None;
                }
            }
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    }

    /// Whole lines only, unless there will be no more.
    fn news(&mut self, is_end: bool) -> Vec<String> {
        let _ = self.file.read_to_end(&mut self.open);
        let replaced = File::open(&self.path).ok().and_then(|file| Some((file.metadata().ok()?.ino(), file)));
        if let Some((inode, file)) = replaced
            && inode != self.inode
        {
            (self.file, self.inode) = (file, inode);
            let _ = self.file.read_to_end(&mut self.open);
        }
        let end = match self.open.iter().rposition(|byte| *byte == b'\n') {
            _ if is_end => self.open.len(),
            Some(last) => last + 1,
            None => return Vec::new(),
        };
        let rest = self.open.split_off(end);
        agtmux_core::output::lines(&std::mem::replace(&mut self.open, rest))
    }
}

/// The end of what was put aside. If that is the file that is read already, it was put aside just now.
fn before(path: &Path, inode: u64, most: u64) -> Option<Vec<u8>> {
    let mut file = File::open(older_log(path)).ok()?;
    let about = file.metadata().ok().filter(|about| about.ino() != inode)?;
    file.seek(SeekFrom::Start(about.len().saturating_sub(most))).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use agtmux_api::task_files::BoundedLog;

    use super::*;

    #[test]
    fn a_log_is_read_from_what_was_put_aside_on_and_each_line_once() {
        let dir = std::env::temp_dir().join(format!("agtmux-tail-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("made");
        let path = dir.join("r.log");
        let mut log = BoundedLog::create(&path, 40).expect("made");
        log.append(b"one\ntwo\nthree\nfour\nfive\nsi").expect("written");
        let mut tail = Tail::of(path).expect("there");
        assert_eq!(tail.news(false), ["one", "two", "three", "four", "five"]);
        log.append(b"x\nseven\neight\nnine\nten").expect("written");
        assert_eq!(tail.news(false), ["six", "seven", "eight", "nine"]);
        assert_eq!(tail.news(false), Vec::<String>::new());
        assert_eq!(tail.news(true), ["ten"]);
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
