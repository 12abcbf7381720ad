use agtmux_api::wire::{TaskRunRequest, TaskSessionQuery, TaskStarted};
use agtmux_client::parse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::task_session::task_session;
use super::wait_task::{TaskEnd, end_of};
use super::{task_news, terminal};
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "run_task",
    title: "Run a task in the background",
    description: "Start a command in the background and return at once. Use this for commands that take longer than a \
        minute and for those that do not end: builds, test suites, servers, watchers. The task runs in its own tmux \
        window, goes on when you end, and the user can look at it. Later results tell you when it has ended; wait_task \
        waits for its end; task_output reads its output.",
    needs: ToolNeeds::Commands,
    effect: ToolEffect::Changes,
    input: input_schema::<RunTaskArgs>,
    output: output_schema::<StartedTask>,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunTaskArgs {
    /// A name for the task: 1 to 40 letters, digits, '.', '_' or '-'.
    task: String,
    /// The command, for the user's shell.
    command: String,
    /// The working directory. Default: the directory in which this server was started, usually the project.
    cwd: Option<String>,
    /// End a task with the same name that is still running. Default: fail in this case.
    #[serde(default)]
    replace: bool,
    /// Wait up to this many seconds for the end of the task, at most 40. Default: do not wait.
    wait_s: Option<u64>,
    /// The tmux session of the task. Default: the session of this project.
    session: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StartedTask {
    task: String,
    session: String,
    /// The id of its tmux window, such as @12.
    window: String,
    cwd: String,
    /// `started`, `still_running` after waiting, or `ended`.
    status: &'static str,
    /// How the task ended; null if it runs.
    end: Option<TaskEnd>,
}

pub(super) async fn run(call: &ToolCall<'_>, args: RunTaskArgs) -> ToolResult {
    let session = task_session(call, args.session.as_deref()).await?;
    let cwd = terminal::directory(call, args.cwd.as_deref())?;
    let project = call.options.dir.to_str().map(str::to_owned);
    let TaskSessionQuery { session, socket } = session;
    let request = TaskRunRequest {
        session,
        socket,
        task: args.task,
        command: args.command,
        cwd,
        project,
        owner: None,
        replace: args.replace,
    };
    if request.command.trim().is_empty() {
        return Err(ToolError::new("the command is empty"));
    }
    // Events before the start are not news.
    task_news::begin(call).await?;
    (call.options.start_tmux)(request.clone()).await;
    let started: TaskStarted = parse(&call.daemon.act("/v1/tasks/run", &request).await?)?;
    let wait = args.wait_s.filter(|seconds| *seconds > 0);
    let end = match wait {
        Some(_) => {
            let session = TaskSessionQuery { session: started.session.clone(), socket: Some(started.socket.clone()) };
            end_of(call, &session, &started.window_id.to_string(), call.deadline(wait)).await?
        }
        None => None,
    };
    let status = match (&end, wait) {
        (Some(_), _) => "ended",
        (None, Some(_)) => "still_running",
        (None, None) => "started",
    };
    let facts = StartedTask {
        task: started.task,
        session: started.session,
        window: started.window_id.to_string(),
        cwd: untrusted::field(&started.cwd),
        status,
        end,
    };
    ToolAnswer::new(text(&facts), &facts)
}

fn text(facts: &StartedTask) -> String {
    let StartedTask { task, session, window, cwd, .. } = facts;
    let started = format!("Task '{task}' runs in window {window} of session {session}, in {cwd}.");
    match &facts.end {
        Some(end) => end.text(task),
        None => format!("{started}\nwait_task waits for its end; task_output reads its output. You need not poll."),
    }
}
