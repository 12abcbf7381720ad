//! `agtmux task run`: starts a task, and with --wait stays with it for a while.

use std::path::{Path, PathBuf};

use agtmux_api::config::{Config, ConfigDuration};
use agtmux_api::wire::{
    TaskEvent, TaskEventsQuery, TaskLogs, TaskLogsQuery, TaskRunRequest, TaskSessionQuery, TaskStarted,
};
use agtmux_core::task::{TaskName, TaskSessionName};
use agtmux_tmux::{TaskSessionOwner, TmuxServer, is_listening, quoted_for_shell};
use clap::Args;
use serde_json::json;

use super::session_args::{KeeperArgs, TaskSessionArgs, project};
use super::wait::{self, TaskWaitOutcome};
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;
use crate::quit_signals::QuitSignals;

#[derive(Debug, Args)]
#[command(
    after_help = "A command of one word is read by your shell as it is; several words are quoted first, so that each stays one \
    word. The task runs in the current directory and goes on when this command, the daemon or the harness ends.\n\n\
    With --wait the exit code is the task's own (128 and the signal's number if one ended it) if it ends in time, else 0."
)]
pub(crate) struct TaskRunArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    #[command(flatten)]
    keeper: KeeperArgs,
    /// Stay so long, as 30s: print what it wrote and how it ended, or else leave it running
    #[arg(long, value_name = "DURATION")]
    wait: Option<ConfigDuration>,
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

pub(crate) async fn run(args: TaskRunArgs) -> Result<CliExit, CliError> {
    let place = args.session.resolve()?;
    let run = request(&args, &place)?;
    let daemon = DaemonClient::from_env()?;
    start_tmux_server(&daemon, &run).await?;
    let answer = daemon.act("/v1/tasks/run", &run).await.map_err(|error| explain_unknown_start(error, &run))?;
    let started: TaskStarted = parse(&answer)?;
    match args.wait {
        None => {
            print_started(&started, args.json)?;
            Ok(CliExit::Ok)
        }
        Some(patience) => wait_for_end(&daemon, &started, patience, args.json).await,
    }
}

fn request(args: &TaskRunArgs, place: &TaskSessionQuery) -> Result<TaskRunRequest, CliError> {
    let usage =
        |message: String| CliError::new(CliExit::Usage, CliMessage::new(message).hint("agtmux task run --help"));
    args.task.parse::<TaskName>().map_err(|error| usage(error.to_string()))?;
    place.session.parse::<TaskSessionName>().map_err(|error| usage(error.to_string()))?;
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
    Ok(TaskRunRequest {
        session: place.session.clone(),
        socket: place.socket.clone(),
        task: args.task.clone(),
        command,
        cwd: cwd.to_owned(),
        project,
        owner: args.keeper.pid()?,
    })
}

/// A daemon that did not come to its answer may have come to the start, and the next one finds it.
fn explain_unknown_start(error: CliError, run: &TaskRunRequest) -> CliError {
    if error.exit() != CliExit::DaemonFailed || error.code().is_some() {
        return error;
    }
    error.map_message(|message| {
        let message = message.because(format!("whether '{}' was started is not known", run.task));
        message.hint(format!("agtmux task list --session {}", run.session))
    })
}

/// Where no tmux server runs it is started from here: it then has this environment, as if one had typed `tmux`, and does not end
/// with the service that the daemon may be.
async fn start_tmux_server(daemon: &DaemonClient, run: &TaskRunRequest) -> Result<(), CliError> {
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
    let keeper = TaskSessionOwner { owner_id: daemon.paths.task_owner(), project, process: String::new() };
    let tmux = TmuxServer::new(&config.tmux.program, socket, config.tmux.command_timeout.0);
    // Somebody else may have been quicker: then the daemon finds their session.
    let _ = tmux.create_task_session(&run.session, &run.task, &keeper).await;
    Ok(())
}

/// Four lines that programs read: whatever the directory is called, each is one line, and none does anything to a terminal.
pub(super) fn print_started(started: &TaskStarted, json: bool) -> Result<(), CliError> {
    if json {
        let text = serde_json::to_vec(started).map_err(|error| CliError::io("write JSON", error))?;
        return output::line(&text);
    }
    let TaskStarted { session, window_id, task, cwd, .. } = started;
    let cwd = agtmux_core::sanitize::for_terminal(cwd);
    output::print(&format!("session={session}\nwindow_id={window_id}\ntask={task}\ncwd={cwd}\n"))
}

async fn wait_for_end(
    daemon: &DaemonClient,
    started: &TaskStarted,
    patience: ConfigDuration,
    json: bool,
) -> Result<CliExit, CliError> {
    // Before anything is said: whoever then presses Ctrl-C is told what becomes of it.
    let mut quit = QuitSignals::new()?;
    let query = TaskEventsQuery { run_id: Some(started.run_id.clone()), after: Some(0), ..TaskEventsQuery::default() };
    if !json {
        print_started(started, false)?;
    }
    let outcome = wait::wait_until_end(daemon, query, Some(patience.0), &mut quit).await?;
    if let TaskWaitOutcome::Interrupted(exit) = outcome {
        still_running_message(
            started,
            format!("'{}' was not waited for any longer, and is left running", started.task),
        )
        .print_stderr();
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
        TaskWaitOutcome::Ended(event) => Some(event),
        _ => None,
    };
    if json {
        let text = result_json(started, end.map(Box::as_ref), &lines);
        output::line(text.to_string().as_bytes())?;
    } else {
        output::lines(&lines.iter().map(|line| agtmux_core::sanitize::for_terminal(line)).collect::<Vec<_>>())?;
    }
    match outcome {
        TaskWaitOutcome::Ended(event) => exit_with_task(&event, json),
        TaskWaitOutcome::Removed => Err(wait::removed_error(&started.task)),
        _ => {
            if !json {
                let said = format!("'{}' still runs after {patience} and is left running", started.task);
                still_running_message(started, said).print_stderr();
            }
            Ok(CliExit::Ok)
        }
    }
}

fn result_json(started: &TaskStarted, end: Option<&TaskEvent>, lines: &[String]) -> serde_json::Value {
    let mut text = json!(started);
    text["finished"] = json!(end.is_some());
    text["exit_code"] = json!(end.and_then(|event| event.exit_code));
    text["signal"] = json!(end.and_then(|event| event.signal));
    text["output"] = json!(lines);
    text
}

fn exit_with_task(event: &TaskEvent, json: bool) -> Result<CliExit, CliError> {
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

fn still_running_message(started: &TaskStarted, said: String) -> CliMessage {
    let TaskStarted { task, session, .. } = started;
    CliMessage::new(said)
        .hint(format!("agtmux task logs {task} -f --session {session}"))
        .hint(format!("agtmux task wait {task} --session {session}"))
}
