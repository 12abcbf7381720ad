//! `agtmux task run`: starts a task and, with --wait, waits for its end.

use std::path::{Path, PathBuf};

use agtmux_api::config::{Config, ConfigDuration};
use agtmux_api::wire::{
    TaskEvent, TaskEventsQuery, TaskLogs, TaskLogsQuery, TaskRunRequest, TaskSessionQuery, TaskStarted,
};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::task::{TaskName, TaskSessionName};
use agtmux_tmux::{TaskSessionOwner, TmuxServer, is_listening, quoted_for_shell};
use clap::Args;
use serde_json::json;

use super::session_args::{SessionOwnerArgs, TaskSessionArgs, project};
use super::wait::{self, TaskWaitOutcome};
use crate::error::{CliError, CliExit, CliResult};
use crate::message::CliMessage;
use crate::output;
use crate::quit_signals::QuitSignals;

#[derive(Debug, Args)]
#[command(
    after_help = "A single COMMAND argument is passed to your shell unchanged. Several arguments are quoted, so that \
    each stays one word. The task runs in the current directory. It keeps running when this command, the daemon or \
    the agent that started it ends.\n\n\
    With --wait, exits with the exit code of the task. If a signal ended the task, exits with 128 plus the signal \
    number. Exits with 0 if the task is still running when the time is up.\n\n\
    Examples:\n  agtmux task run build -- make -j4\n  agtmux task run --wait 5m test 'cargo test 2>&1 | tail'"
)]
pub(crate) struct TaskRunArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    #[command(flatten)]
    owner: SessionOwnerArgs,
    /// Wait until the task has ended, but not longer than this time, such as 30s, and print the output. If the time is
    /// up, the task keeps running
    #[arg(long, value_name = "DURATION")]
    wait: Option<ConfigDuration>,
    /// Replace a task with the same name even if that task is still running
    #[arg(long)]
    replace: bool,
    /// The directory of the project to which the session belongs [default: AGTMUX_PROJECT or the current directory]
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The name of the task: 1 to 40 letters, digits, '.', '_' or '-'
    #[arg(value_name = "NAME")]
    task: String,
    /// The command to run
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) async fn run(args: TaskRunArgs) -> CliResult {
    let task_session = args.session.resolve_in(args.project.as_ref())?;
    let run = request(&args, &task_session)?;
    let daemon = DaemonClient::from_env()?;
    start_tmux_server(&daemon, &run).await?;
    let answer = daemon.act("/v1/tasks/run", &run).await.map_err(|error| explain_unknown_start(error.into(), &run))?;
    let started: TaskStarted = parse(&answer)?;
    if args.session.session_name().is_none() {
        CliMessage::new(format!("no session is given; the task runs in session '{}'", started.session)).print_stderr();
    }
    match args.wait {
        None => print_started(&started, args.json),
        Some(patience) => wait_for_end(&daemon, &started, patience, args.json).await,
    }
}

fn request(args: &TaskRunArgs, task_session: &TaskSessionQuery) -> CliResult<TaskRunRequest> {
    let usage = |message: String| CliError::usage(message).hint("agtmux task run --help");
    args.task.parse::<TaskName>().map_err(|error| usage(error.to_string()))?;
    task_session.session.parse::<TaskSessionName>().map_err(|error| usage(error.to_string()))?;
    let cwd = std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?;
    let cwd = cwd.to_str().ok_or_else(|| usage("the path of the current directory is not UTF-8".into()))?;
    let command = match &args.command[..] {
        [whole] => whole.clone(),
        words => words.iter().map(|word| quoted_for_shell(word)).collect::<Vec<_>>().join(" "),
    };
    if command.trim().is_empty() {
        return Err(usage("the command is empty".into()));
    }
    let project = project(args.project.as_ref()).map(|path| path.into_os_string().into_string());
    let project = project.transpose().map_err(|_| usage("the path of the project is not UTF-8".into()))?;
    Ok(TaskRunRequest {
        session: task_session.session.clone(),
        socket: task_session.socket.clone(),
        task: args.task.clone(),
        command,
        cwd: cwd.to_owned(),
        project,
        owner: args.owner.pid()?,
        replace: args.replace,
    })
}

/// Adds a hint if the daemon did not answer, because the daemon may have started the task before the connection failed.
fn explain_unknown_start(error: CliError, run: &TaskRunRequest) -> CliError {
    if error.exit() != CliExit::DaemonFailed || error.code().is_some() {
        return error;
    }
    error
        .because(format!("task '{}' may have been started", run.task))
        .hint(format!("agtmux task list --session {}", run.session))
}

/// Starts the tmux server if it is not running. A server started by this command has the user's environment. If a
/// daemon that runs as a service started the server instead, the server would end with the daemon.
pub(crate) async fn start_tmux_server(daemon: &DaemonClient, run: &TaskRunRequest) -> CliResult {
    let Some(socket) = run.socket.as_deref().map(Path::new).filter(|socket| !is_listening(socket)) else {
        return Ok(());
    };
    if let Some(dir) = socket.parent() {
        // tmux creates the same directory with the same mode.
        let _ = std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(dir);
    }
    let config = Config::load(&daemon.paths.config)?;
    let project = run.project.clone().unwrap_or_else(|| run.cwd.clone());
    // The daemon stores the owner's process when it starts the task.
    let owner = TaskSessionOwner { owner_id: daemon.paths.task_owner(), project, process: String::new() };
    let tmux = TmuxServer::new(&config.tmux.program, socket, config.tmux.command_timeout.0);
    // If another process has created the session meanwhile, the daemon uses that one.
    let _ = tmux.create_task_session(&run.session, &run.task, &owner).await;
    Ok(())
}

/// Prints the started task as four lines that scripts can read, or as JSON.
pub(super) fn print_started(started: &TaskStarted, json: bool) -> CliResult {
    if json {
        return output::json(started);
    }
    let TaskStarted { session, window_id, task, cwd, .. } = started;
    output::lines([
        format!("session={session}"),
        format!("window_id={window_id}"),
        format!("task={task}"),
        format!("cwd={cwd}"),
    ])
}

async fn wait_for_end(daemon: &DaemonClient, started: &TaskStarted, patience: ConfigDuration, json: bool) -> CliResult {
    // Handle signals before any output, so that Ctrl-C prints that the task keeps running.
    let mut quit = QuitSignals::new()?;
    let query = TaskEventsQuery { run_id: Some(started.run_id.clone()), after: Some(0), ..TaskEventsQuery::default() };
    if !json {
        print_started(started, false)?;
    }
    let outcome = wait::wait_until_end(daemon, query, Some(patience.0), &mut quit).await?;
    if let TaskWaitOutcome::Interrupted(exit) = outcome {
        let text = format!("stopped waiting; task '{}' keeps running", started.task);
        still_running_message(started, text).print_stderr();
        return Err(CliError::silent(exit));
    }
    let logs_query = TaskLogsQuery {
        session: started.session.clone(),
        socket: Some(started.socket.clone()),
        task: started.window_id.to_string(),
        lines: None,
    };
    let logs: Option<TaskLogs> = daemon.get("/v1/tasks/logs", &logs_query).await.ok();
    // Another run may use the window by now. Its log is not the log of this run.
    let logs = logs.filter(|logs| logs.run_id.as_ref() == Some(&started.run_id));
    let lines = logs.map(|logs| logs.lines).unwrap_or_default();
    let end = match &outcome {
        TaskWaitOutcome::Ended(event) => Some(event),
        _ => None,
    };
    if json {
        output::json(&result_json(started, end.map(Box::as_ref), &lines))?;
    } else {
        output::lines(&lines)?;
    }
    match outcome {
        TaskWaitOutcome::Ended(event) => exit_with_task(&event, json),
        TaskWaitOutcome::Removed => Err(wait::removed_error(&started.task)),
        _ => {
            if !json {
                let text = format!("task '{}' is still running after {patience}", started.task);
                still_running_message(started, text).print_stderr();
            }
            Ok(())
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

fn exit_with_task(event: &TaskEvent, json: bool) -> CliResult {
    let (line, code) = match (event.exit_code, event.signal) {
        (Some(code), _) => (format!("exit_code={code}"), code),
        (None, Some(signal)) => (format!("signal={signal}"), 128 + i32::from(signal.0)),
        (None, None) => ("exit_code=unknown".into(), 1),
    };
    if !json {
        output::line(&line)?;
    }
    std::process::exit(code)
}

fn still_running_message(started: &TaskStarted, text: String) -> CliMessage {
    let TaskStarted { task, session, .. } = started;
    CliMessage::new(text)
        .hint(format!("agtmux task logs {task} -f --session {session}"))
        .hint(format!("agtmux task wait {task} --session {session}"))
}
