//! `agtmux new`: starts an agent in a new window, and sends its first prompt.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use agtmux_api::wire::{ActionOutcome, NewAction, NewPlace, NewReport, PromptDelivery, PromptStatus, Verification};
use agtmux_client::DaemonClient;
use agtmux_core::ids::TargetName;
use agtmux_core::task::project_slug;
use clap::{ArgGroup, Args};
use inquire::{InquireError, Select, Text};

use super::guards::CLIENT_NAME;
use super::task::session_args::socket;
use super::text_args::read_text;
use super::worktree::worktree_for;
use crate::agent_registry;
use crate::error::{CliError, CliExit, CliResult};
use crate::input::variable;
use crate::output;

#[derive(Debug, Default, Args)]
#[command(
    group(ArgGroup::new("place").args(["session", "window", "split"])),
    after_help = "\
agtmux opens a pane with your shell, types the agent's command into it, and waits until the agent runs. The prompt is \
typed when the agent waits for a prompt, and is verified like the text of `agtmux send`. It is never part of a command \
line. If the agent first asks something, for example whether you trust the directory, agtmux shows the question and \
keeps the prompt. The daemon sends the prompt as soon as the agent is ready.

The pane is not selected; `agtmux attach` goes to it. Inside tmux, the default is a new window after the current one. \
Outside tmux, it is a new window of the session that is named after the directory.

Exit codes:
  0  started, and the prompt was sent
  1  the agent did not start, or the prompt was not sent
  5  the daemon rejected the request; the message says whether a pane was opened
  6  the agent asks something; the prompt is kept until you have answered

Examples:
  agtmux new claude
  agtmux new codex --name fix --in ~/src/app --prompt 'fix the failing test'
  agtmux new claude --split --prompt - < task.md
  agtmux new claude --worktree fix-login --prompt 'fix the login'
  agtmux new gemini --target vm1 --in /srv/app -- --model gemini-2.5-pro"
)]
pub(crate) struct NewArgs {
    /// The agent: a name from `agtmux adapters`. Without AGENT on a terminal, agtmux asks
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// Give the agent a name, which references can use
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Start the agent in this directory [default: the current directory; with --target, the home directory]
    #[arg(long = "in", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Start the agent in a git worktree of its own for this branch. The branch and the worktree are created if needed.
    /// --in names the repository
    #[arg(long, value_name = "BRANCH", conflicts_with = "target")]
    worktree: Option<String>,
    /// Begin a new branch at this commit [default: the current commit of the main worktree]
    #[arg(long, value_name = "REF", requires = "worktree")]
    base: Option<String>,
    /// Send this prompt when the agent is ready; `-` reads the prompt from stdin
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// A prompt that is sent as it is, also if it is `-`.
    #[arg(skip)]
    exact_prompt: Option<String>,
    /// Start the agent on this host (see `agtmux target list`). The host needs agtmux
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Open a new window in this session; create the session if it does not exist
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Open a new window after the current window (default inside tmux)
    #[arg(long)]
    window: bool,
    /// Split the current pane
    #[arg(long)]
    split: bool,
    /// Idempotency key: repeated requests with the same key start one agent
    #[arg(long, value_name = "NAME")]
    request_ref: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Arguments for the agent
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl NewArgs {
    /// The arguments that start this agent in the current directory with this prompt.
    pub(super) fn with_prompt(agent: String, prompt: String, json: bool) -> Self {
        Self { agent: Some(agent), exact_prompt: Some(prompt), json, ..Self::default() }
    }
}

pub(crate) async fn run(args: Box<NewArgs>) -> CliResult {
    let answers = match &args.agent {
        Some(agent) => {
            let (dir, branch) = (args.dir.clone(), args.worktree.clone());
            let prompt =
                args.exact_prompt.clone().map_or_else(|| prompt(args.prompt.as_deref()), |text| Ok(Some(text)));
            NewAnswers { agent: agent.clone(), dir, branch, prompt: prompt? }
        }
        None => ask(&args)?,
    };
    let is_here = args.target.as_deref().is_none_or(|target| target == TargetName::LOCAL);
    let mut place = place(&args, is_here)?;
    let daemon = DaemonClient::from_env()?;
    let mut cwd = directory(answers.dir.as_deref(), is_here)?;
    if let Some(branch) = &answers.branch {
        let worktree = worktree_for(&daemon, cwd, branch, args.base.as_ref()).await?;
        // The agents of all worktrees of a repository share a session.
        if let (NewPlace::Project, Ok(name)) = (&place, project_slug(Path::new(&worktree.repository))) {
            place = NewPlace::Session(name);
        }
        cwd = worktree.path;
    }
    let action = NewAction {
        agent: answers.agent,
        arguments: args.arguments.clone(),
        cwd,
        name: args.name.clone(),
        prompt: answers.prompt,
        place,
        socket: is_here.then(|| socket().display().to_string()),
        target: args.target.clone(),
        request_ref: args.request_ref.clone(),
        client: Some(CLIENT_NAME.into()),
        ..NewAction::default()
    };
    let answer = daemon.act("/v1/actions/new", &action).await?;
    let done: ActionOutcome<NewReport> = output::parsed_answer(&answer, args.json, outcome_lines)?;
    exit_of(&done)
}

fn prompt(given: Option<&str>) -> CliResult<Option<String>> {
    match given {
        Some("-") => read_text(Path::new("-")).map(Some),
        given => Ok(given.map(str::to_owned)),
    }
}

/// What the user chose.
struct NewAnswers {
    agent: String,
    dir: Option<PathBuf>,
    branch: Option<String>,
    prompt: Option<String>,
}

/// Asks for the agent, and for the directory, the branch and the prompt if no option gives them.
fn ask(args: &NewArgs) -> CliResult<NewAnswers> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(CliError::usage("no agent given").hint("agtmux new AGENT   (`agtmux adapters` lists the agents)"));
    }
    let agent = Select::new("Which agent?", agent_registry::load()?.names()).prompt().map_err(cancelled)?;
    let here = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    let dir = match &args.dir {
        Some(dir) => Some(dir.clone()),
        None => Some(Text::new("Directory:").with_initial_value(&here).prompt().map_err(cancelled)?.into()),
    };
    let branch = match &args.worktree {
        Some(branch) => Some(branch.clone()),
        None if args.target.is_some() => None,
        None => ask_for("Branch:", "for a git worktree of its own; leave it empty to work in the directory itself")?,
    };
    let prompt = match prompt(args.prompt.as_deref())? {
        Some(text) => Some(text),
        None => ask_for("Prompt:", "the first prompt; leave it empty to type it yourself")?,
    };
    Ok(NewAnswers { agent, dir, branch, prompt })
}

/// Asks for a text. `None` if the user leaves it empty.
fn ask_for(question: &str, help: &str) -> CliResult<Option<String>> {
    let text = Text::new(question).with_help_message(help).prompt().map_err(cancelled)?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

fn cancelled(error: InquireError) -> CliError {
    match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => CliError::silent(CliExit::Interrupted),
        error => CliError::io("ask on the terminal", error),
    }
}

/// The absolute directory. Empty if the host is to choose its home directory.
fn directory(given: Option<&Path>, is_here: bool) -> CliResult<String> {
    let text = |path: PathBuf| {
        path.into_os_string().into_string().map_err(|path| {
            CliError::usage(format!("'{}' is not UTF-8", path.display())).hint("agtmux new AGENT --in DIR")
        })
    };
    match given {
        Some(dir) if !is_here && !dir.is_absolute() => {
            Err(CliError::usage("with --target, --in needs an absolute path on the host")
                .hint("agtmux new AGENT --target TARGET --in /srv/app"))
        }
        None if !is_here => Ok(String::new()),
        given => {
            let here = std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?;
            text(given.map_or_else(|| here.clone(), |dir| here.join(dir)))
        }
    }
}

fn place(args: &NewArgs, is_here: bool) -> CliResult<NewPlace> {
    if let Some(session) = &args.session {
        return Ok(NewPlace::Session(session.clone()));
    }
    let pane = variable("TMUX_PANE").filter(|_| is_here && variable("TMUX").is_some());
    match (pane, args.split, args.window) {
        (Some(pane), true, _) => Ok(NewPlace::Split(pane)),
        (Some(pane), false, _) => Ok(NewPlace::Window(pane)),
        (None, false, false) => Ok(NewPlace::Project),
        (None, ..) => Err(CliError::usage("--window and --split need a current pane, and this is not a tmux pane")
            .hint("agtmux new AGENT --session NAME")),
    }
}

fn outcome_lines(done: &ActionOutcome<NewReport>) -> Vec<String> {
    let report = &done.report;
    let name = report.name.as_ref().map(|name| format!(", named {name}")).unwrap_or_default();
    let id = done.runtime_id.as_ref().map(|id| format!(" as runtime:{id}")).unwrap_or_default();
    let place = format!("{} ({}) on {}", done.pane_id, report.session_name, done.server_label());
    let started = format!("{} started in {place}{id}{name}", report.agent_type);
    [Some(started), report.prompt.as_ref().map(prompt_line)].into_iter().flatten().collect()
}

fn prompt_line(prompt: &PromptDelivery) -> String {
    let reason = prompt.reason.as_deref().unwrap_or("no reason is known");
    match (prompt.status, prompt.sent.as_ref().map(|sent| sent.verified)) {
        (PromptStatus::Sent, Some(Verification::Confirmed)) => "the prompt was submitted".to_owned(),
        (PromptStatus::Sent, _) => "the prompt was typed; could not verify that it was submitted".to_owned(),
        (PromptStatus::Kept, _) => format!("the prompt is kept until the agent is ready: {reason}"),
        (PromptStatus::Failed, _) => format!("the prompt was not sent: {reason}"),
    }
}

fn exit_of(done: &ActionOutcome<NewReport>) -> CliResult {
    match done.report.prompt.as_ref().map(|prompt| prompt.status) {
        None | Some(PromptStatus::Sent) => Ok(()),
        Some(PromptStatus::Kept) => CliExit::AgentAsks.into_result(),
        Some(PromptStatus::Failed) => CliExit::Failed.into_result(),
    }
}
