//! `agtmux task logs`: what a task has written, and with -f what it writes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use agtmux_api::wire::{TaskEventsQuery, TaskLogs, TaskLogsQuery};
use agtmux_core::sanitize;
use agtmux_core::task::TaskEventKind;
use agtmux_tmux::platform::{self, Platform, Token};
use clap::Args;

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
    // Before it is read: what comes after that is followed.
    let mut tail = None;
    if args.follow {
        let first: TaskLogs = daemon.get("/v1/tasks/logs", &TaskLogsQuery { lines: Some(1), ..query.clone() }).await?;
        tail = first.log.map(PathBuf::from).and_then(Tail::at_its_end);
    }
    let answer = daemon.bytes("/v1/tasks/logs", &query).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let logs: TaskLogs = parse(&answer)?;
    print(&logs.lines)?;
    match (args.follow, tail, logs.run_id) {
        (true, Some(tail), Some(run_id)) if !logs.dead => goes_on(daemon, tail, run_id).await,
        (true, None, _) => {
            let message = Message::new("what it writes is not kept, so it cannot be followed");
            Err(CliError::failed(message.hint("agtmux view-output --follow shows its pane")))
        }
        _ => Ok(Exit::Ok),
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
    fn at_its_end(path: PathBuf) -> Option<Self> {
        let mut file = File::open(&path).ok()?;
        // What is in an open line is shown with its end.
        let end = file.seek(SeekFrom::End(0)).ok()?;
        let inode = file.metadata().ok()?.ino();
        let platform = platform::open(platform::Options { pty_events: false, force_portable: false }).ok();
        let platform = platform.filter(|platform| platform.watcher.watch_file(LOG, &path).is_ok());
        let mut tail = Self { path, file, inode, open: Vec::new(), platform };
        tail.file.seek(SeekFrom::Start(end)).ok()?;
        Some(tail)
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
