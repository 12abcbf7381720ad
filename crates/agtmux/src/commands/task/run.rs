//! `agtmux task run`: starts a task, and with --wait stays with it for a while.

use std::path::{Path, PathBuf};

use agtmux_api::config::{Config, Span};
use agtmux_api::wire::{TaskEvent, TaskEventsQuery, TaskLogs, TaskLogsQuery, TaskPlace, TaskRun, TaskStarted};
use agtmux_core::task::{TaskName, TaskSession};
use agtmux_tmux::{SlotKeeper, TmuxServer, is_listening, quoted_for_shell};
use clap::Args;
use serde_json::json;

use super::place::{KeeperArgs, PlaceArgs, project};
use super::wait::{self, Outcome};
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;
use crate::quit::Quit;

#[derive(Debug, Args)]
#[command(
    after_help = "A command of one word is read by your shell as it is; several words are quoted first, so that each stays one \
    word. The task runs in the current directory and goes on when this command, the daemon or the harness ends.\n\n\
    With --wait the exit code is the task's own (128 and the signal's number if one ended it) if it ends in time, else 0."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    keeper: KeeperArgs,
    /// Stay so long, as 30s: print what it wrote and how it ended, or else leave it running
    #[arg(long, value_name = "DURATION")]
    wait: Option<Span>,
    /// The project that the session belongs to; else AGTMUX_PROJECT says so, else it is the current directory
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The name of the task: 1 to 40 letters, digits, '.', '_' or '-'
    #[arg(value_name = "NAME")]
    task: String,
    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) async fn run(args: RunArgs) -> Result<Exit, CliError> {
    let place = args.place.place()?;
    let run = request(&args, &place)?;
    let daemon = Daemon::from_env()?;
    make_server(&daemon, &run).await?;
    let answer = daemon.act("/v1/tasks/run", &run).await.map_err(|error| it_may_run(error, &run))?;
    let started: TaskStarted = parse(&answer)?;
    match args.wait {
        None => {
            told(&started, args.json)?;
            Ok(Exit::Ok)
        }
        Some(patience) => stay(&daemon, &started, patience, args.json).await,
    }
}

fn request(args: &RunArgs, place: &TaskPlace) -> Result<TaskRun, CliError> {
    let usage = |message: String| CliError::new(Exit::Usage, Message::new(message).hint("agtmux task run --help"));
    args.task.parse::<TaskName>().map_err(|error| usage(error.to_string()))?;
    place.session.parse::<TaskSession>().map_err(|error| usage(error.to_string()))?;
    let cwd = std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?;
    let cwd = cwd.to_str().ok_or_else(|| usage("the path of the current directory is no UTF-8".into()))?;
    let command = match &args.command[..] {
        [whole] => whole.clone(),
        words => words.iter().map(|word| quoted_for_shell(word)).collect::<Vec<_>>().join(" "),
    };
    if command.trim().is_empty() {
        return Err(usage("there is no command to run".into()));
    }
    let project = project(args.project.as_ref()).map(|path| path.into_os_string().into_string());
    let project = project.transpose().map_err(|_| usage("the path of the project is no UTF-8".into()))?;
    Ok(TaskRun {
        session: place.session.clone(),
        socket: place.socket.clone(),
        task: args.task.clone(),
        command,
        cwd: cwd.to_owned(),
        project,
        keeper: args.keeper.pid()?,
    })
}

/// A daemon that did not come to its answer may have come to the start, and the next one finds it.
fn it_may_run(error: CliError, run: &TaskRun) -> CliError {
    if error.exit() != Exit::DaemonFault || error.code().is_some() {
        return error;
    }
    error.saying(|message| {
        let message = message.because(format!("whether '{}' was started is not known", run.task));
        message.hint(format!("agtmux task list --session {}", run.session))
    })
}

/// Where no tmux server runs it is started from here: it then has this environment, as if one had typed `tmux`, and does not end
/// with the service that the daemon may be.
async fn make_server(daemon: &Daemon, run: &TaskRun) -> Result<(), CliError> {
    let Some(socket) = run.socket.as_deref().map(Path::new).filter(|socket| !is_listening(socket)) else {
        return Ok(());
    };
    if let Some(dir) = socket.parent() {
        // As tmux does it, and only what is missing.
        let _ = std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(dir);
    }
    let config = Config::load(&daemon.paths.config)?;
    let project = run.project.clone().unwrap_or_else(|| run.cwd.clone());
    // For whom it is kept the daemon writes down with the launch.
    let keeper = SlotKeeper { owner: daemon.paths.task_owner(), project, process: String::new() };
    let tmux = TmuxServer::new(&config.tmux.program, socket, config.tmux.command_timeout.0);
    // Somebody else may have been quicker: then the daemon finds their session.
    let _ = tmux.make_task_session(&run.session, &run.task, &keeper).await;
    Ok(())
}

/// Four lines that programs read: whatever the directory is called, each is one line, and none does anything to a terminal.
pub(super) fn told(started: &TaskStarted, json: bool) -> Result<(), CliError> {
    if json {
        let text = serde_json::to_vec(started).map_err(|error| CliError::io("write JSON", error))?;
        return output::line(&text);
    }
    let TaskStarted { session, window_id, task, cwd, .. } = started;
    let cwd = agtmux_core::sanitize::for_terminal(cwd);
    output::print(&format!("session={session}\nwindow_id={window_id}\ntask={task}\ncwd={cwd}\n"))
}

async fn stay(daemon: &Daemon, started: &TaskStarted, patience: Span, json: bool) -> Result<Exit, CliError> {
    // Before anything is said: whoever then presses Ctrl-C is told what becomes of it.
    let mut quit = Quit::new()?;
    let query = TaskEventsQuery { run_id: Some(started.run_id.clone()), after: Some(0), ..TaskEventsQuery::default() };
    if !json {
        told(started, false)?;
    }
    let outcome = wait::until_end(daemon, query, Some(patience.0), &mut quit).await?;
    if let Outcome::Interrupted(exit) = outcome {
        still_runs(started, format!("'{}' was not waited for any longer, and is left running", started.task)).tell();
        return Ok(exit);
    }
    let asked = TaskLogsQuery {
        session: started.session.clone(),
        socket: Some(started.socket.clone()),
        task: started.window_id.to_string(),
        lines: None,
    };
    let logs: Option<TaskLogs> = daemon.get("/v1/tasks/logs", &asked).await.ok();
    // Its window may have another run by now, and what that writes is not ours.
    let logs = logs.filter(|logs| logs.run_id.as_ref() == Some(&started.run_id));
    let lines = logs.map(|logs| logs.lines).unwrap_or_default();
    let end = match &outcome {
        Outcome::Ended(event) => Some(event),
        _ => None,
    };
    if json {
        let text = document(started, end.map(Box::as_ref), &lines);
        output::line(text.to_string().as_bytes())?;
    } else {
        output::lines(&lines.iter().map(|line| agtmux_core::sanitize::for_terminal(line)).collect::<Vec<_>>())?;
    }
    match outcome {
        Outcome::Ended(event) => ended(&event, json),
        Outcome::TakenAway => Err(wait::taken_away(&started.task)),
        _ => {
            if !json {
                let said = format!("'{}' still runs after {patience} and is left running", started.task);
                still_runs(started, said).tell();
            }
            Ok(Exit::Ok)
        }
    }
}

fn document(started: &TaskStarted, end: Option<&TaskEvent>, lines: &[String]) -> serde_json::Value {
    let mut text = json!(started);
    text["finished"] = json!(end.is_some());
    text["exit_code"] = json!(end.and_then(|event| event.exit_code));
    text["signal"] = json!(end.and_then(|event| event.signal));
    text["output"] = json!(lines);
    text
}

fn ended(event: &TaskEvent, json: bool) -> Result<Exit, CliError> {
    let (line, code) = match (event.exit_code, event.signal) {
        (Some(code), _) => (format!("exit_code={code}"), code),
        (None, Some(signal)) => (format!("signal={signal}"), 128 + i32::from(signal.0)),
        (None, None) => ("exit_code=unknown".into(), 1),
    };
    if !json {
        output::line(line.as_bytes())?;
    }
    std::process::exit(code)
}

fn still_runs(started: &TaskStarted, said: String) -> Message {
    let TaskStarted { task, session, .. } = started;
    Message::new(said)
        .hint(format!("agtmux task logs {task} -f --session {session}"))
        .hint(format!("agtmux task wait {task} --session {session}"))
}
