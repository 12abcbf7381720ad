//! The command line: commands, their help texts and the exit codes.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::command_groups::{self, HelpLength};
use crate::commands::{
    adapters, ask, attach, audit, broadcast, completions, config, daemon, diff, doctor, emit, explain, handoff,
    history, hook, inbox, kill, last, list, man, mcp, menubar, mirror, new, notify, rename, replay, respond, resume,
    run, seen, send, setup, sidebar, status, target, task, view_output, wait, watch, web, worktree,
};
use crate::jq::{self, JqFilter};

const MORE_HELP: &str = "\
`agtmux COMMAND --help` explains a command. `agtmux --help` adds the exit codes.
Topics: agtmux help environment|exit-codes|formatting|json|references";

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    failed, timed out, or you declined a confirmation
  2    wrong usage or an invalid configuration; with `wait` and `send --wait`: an agent is gone
  3    the daemon is not running and was not started
  4    the daemon has another API version; run `agtmux daemon restart`
  5    the daemon rejected the request or did not answer
  6    with `wait` and `send --wait`: an agent asks something, and its state (waiting_approval or
       waiting_input) is not one of the states in --for
  7    with `ask`: the turn ended with an error
  8    with `ask`: the turn was interrupted
  124  with `ask`: the time given with --timeout is up
  126  with `agtmux run`: the program cannot be executed
  127  with `agtmux run`: the program was not found
  130  interrupted with Ctrl-C
  143  terminated";

/// See and control the AI coding agents that run in tmux
///
/// Without a command, opens the interface on a terminal. In a pipe or a script, lists the panes in which an agent runs.
#[derive(Debug, Parser)]
#[command(name = "agtmux", version, after_help = MORE_HELP, after_long_help = format!("{EXIT_CODES}\n\n{MORE_HELP}"))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// List panes, windows or sessions and the states of their agents
    ///
    /// Without a subcommand, lists the panes in which an agent runs.
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Answer the waiting agents, one after the other
    ///
    /// On a terminal, opens the interface with the waiting agents only. Otherwise, and with --plain, prints each dialog as
    /// plain lines and reads the answers from stdin. An answer is refused if the dialog has changed.
    Inbox(inbox::InboxArgs),
    /// Follow changes to panes, windows or sessions
    ///
    /// On a terminal, shows a table and keeps it up to date; press q or Ctrl-C to quit. In a pipe, prints one line of
    /// JSON per change (the events of the API, see docs/api.md): {schema_version, seq, at, type, scope, item}. When the
    /// daemon restarts, watch reconnects and continues after the last printed event. If the daemon crashed, watch
    /// starts a new daemon. Exits with 130 on Ctrl-C, and with 0 when the reader closes the pipe.
    Watch(watch::WatchArgs),
    /// Print how many agents wait, run or are idle, for a status bar
    ///
    /// Never starts the daemon. Prints "off" and exits with 3 if the daemon is not running; with --follow, waits for the
    /// daemon.
    Status(status::StatusArgs),
    /// Print a menu for SwiftBar, xbar, Argos or waybar
    ///
    /// The title shows the counts. Each waiting agent has a submenu with its question and its answers; an answer is refused if
    /// the dialog has changed. Below are the sessions, windows and panes, with the actions of each pane. Never starts the daemon.
    Menubar(menubar::MenubarArgs),
    /// Show the agents in a narrow pane
    ///
    /// Without a subcommand, shows the interface in this terminal, and ends when the other panes of the window have ended.
    Sidebar(sidebar::SidebarArgs),
    /// Send text or keys to an agent, and verify that it took the text
    ///
    /// Types the text into the agent's input box, presses Enter and checks that the agent accepted the text. The text
    /// goes only to the agent you name. Fails if the agent has an open dialog; use `agtmux respond` to answer it.
    Send(Box<send::SendArgs>),
    /// Send a prompt, wait for the end of its turn, print the answer
    ///
    /// Sends like `agtmux send`, waits like `agtmux wait --for finished`, and prints like `agtmux last`.
    Ask(Box<ask::AskArgs>),
    /// Print the last answer of an agent, as the agent wrote it
    Last(last::LastArgs),
    /// Answer an agent's open dialog
    ///
    /// Without ANSWER, shows the dialog and asks for the answer. Fails if no dialog is open, or if the dialog changes
    /// while agtmux answers. To answer only the dialog that you have seen, pass --if-dialog.
    Respond(Box<respond::RespondArgs>),
    /// Attach to the pane of an agent
    ///
    /// Fails if another process replaces the agent in the pane before agtmux has attached.
    Attach(Box<attach::AttachArgs>),
    /// Go to the next agent that waits for you
    ///
    /// Moves your tmux client to the pane of the agent, in any session, on any tmux server and host. Moves no other
    /// client: fails if it is not certain which client is yours.
    Next(attach::NextArgs),
    /// Go back to the pane where you were before
    ///
    /// Undoes the last move of `agtmux next` or `agtmux attach`.
    Back(attach::BackArgs),
    /// Print the contents of an agent's pane as plain text
    ViewOutput(Box<view_output::ViewOutputArgs>),
    /// Wait until agents reach a state, for use in scripts
    Wait(wait::WaitArgs),
    /// Interrupt or end an agent
    ///
    /// By default types Ctrl-C into the pane. With --signal TERM or KILL, signals the agent's process and its process
    /// group. Asks for confirmation unless --yes is given.
    Kill(Box<kill::KillArgs>),
    /// Mark a completed agent as seen
    ///
    /// After an agent completes a prompt, `agtmux list` marks the agent as (unseen). The mark disappears when you press
    /// a key in the agent's pane, or when you run this command.
    Seen(seen::SeenArgs),
    /// Restart an agent that has ended and continue its conversation
    Resume(Box<resume::ResumeArgs>),
    /// Start an agent in a new window, with its first prompt
    New(Box<new::NewArgs>),
    /// Give the last answer of one agent to another one
    Handoff(handoff::HandoffArgs),
    /// Send a text to several agents, one after the other
    Broadcast(broadcast::BroadcastArgs),
    /// Show what an agent has changed, with git diff
    Diff(diff::DiffArgs),
    /// Manage the git worktrees in which agents work
    #[command(subcommand)]
    Worktree(worktree::WorktreeCommand),
    /// Give an agent a name
    Rename(Box<rename::RenameArgs>),
    /// Run and manage background tasks in a tmux session
    ///
    /// Each task runs in its own window. `agtmux task events` prints when a task starts, ends, rings the bell, asks for
    /// input or disappears.
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Share a terminal with an agent and see what it runs there
    ///
    /// The agent runs commands with `agtmux mirror exec` and gets their output and exit code. You see them in a pane, and
    /// can type your own commands there. `agtmux mirror activity` lists your commands.
    #[command(subcommand)]
    Mirror(mirror::MirrorSubcommand),
    /// Let agents see each other, run tasks and share a terminal (MCP)
    Mcp(mcp::McpArgs),
    /// List the recorded actions: caller, action and outcome
    ///
    /// Includes rejected actions, and changes to tasks, hosts, adapters and web links.
    Audit(audit::AuditArgs),
    /// Test notifications, and list which were sent or held back
    ///
    /// The rules in the configuration decide when agtmux notifies you that an agent waits. docs/notifications.md
    /// explains them.
    #[command(subcommand)]
    Notify(notify::NotifyCommand),
    /// Explain the state of an agent, or of a saved screen
    Explain(explain::ExplainArgs),
    /// Show the past states of an agent and how long each lasted
    History(history::HistoryArgs),
    /// List the supported agents, and add your own
    ///
    /// Without a subcommand, lists every adapter with its health and its sources of evidence. An adapter lets agtmux
    /// recognise one type of agent; a manifest is the TOML file that describes an adapter.
    Adapters(adapters::AdaptersArgs),
    /// Report an event about an agent to the daemon
    ///
    /// Use this command in your own scripts and wrappers.
    Emit(Box<emit::EmitArgs>),
    /// Add hooks to the settings of your agents, or remove them
    ///
    /// Shows the changes and asks before it writes. Your own hooks and settings are kept.
    Setup(setup::SetupArgs),
    /// Run an agent and report its start and its exit
    Run(run::AgentRunArgs),
    /// Report a hook event to the daemon; called by the hooks of agents
    Hook(hook::HookArgs),
    /// Compute all states again from the stored events, and compare
    ///
    /// Exits with 1 at the first difference.
    Replay(replay::ReplayArgs),
    /// Start, stop and inspect the daemon
    #[command(subcommand)]
    Daemon(daemon::DaemonCommand),
    /// Manage the hosts that agtmux watches over ssh
    #[command(subcommand)]
    Target(target::TargetCommand),
    /// Internal: stream the state of this host to a hub over ssh
    Collect {
        /// Use stdin and stdout; this is the only transport
        #[arg(long, required = true)]
        stdio: bool,
    },
    /// Open the web dashboard for a browser and print a login link
    ///
    /// Opens a port on loopback, unless it is open already. The link works once and expires after two minutes.
    Web(web::WebArgs),
    /// Show and check the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Check your setup, and name the command that fixes each problem
    ///
    /// Checks tmux, the settings, the directories, the hooks of your agents, the daemon and what it watches. Never starts
    /// the daemon. Exits with 1 if there is a problem; warnings do not count.
    Doctor(doctor::DoctorArgs),
    /// Print the script that completes commands and names in your shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages
    Man(man::ManArgs),
    /// Show a demo with scripted agents on a private tmux server
    ///
    /// When the demo ends, agtmux removes the tmux server, the daemon and the files of the demo.
    Demo,
    /// Show your agents; if no tmux server is running, offer the demo
    Welcome,
}

/// All commands, as clap needs them, with `--jq` added.
pub(crate) fn definition() -> clap::Command {
    definition_with(HelpLength::Long)
}

fn definition_with(help: HelpLength) -> clap::Command {
    command_groups::group_commands(jq::add_option(Cli::command()), help)
}

/// A parsed command line, and the filter given with `--jq`.
type ParsedCli = Result<(Cli, Option<JqFilter>), clap::Error>;

/// Parses a command line.
pub(crate) fn parse(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> ParsedCli {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let is_short = arguments.get(1).is_some_and(|argument| argument == "-h");
    let help = if is_short { HelpLength::Short } else { HelpLength::Long };
    let mut matches = definition_with(help).try_get_matches_from(arguments)?;
    let filter = jq::from_matches(&matches);
    let cli = Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut definition()))?;
    Ok((cli, filter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parses(line: &str) -> bool {
        parse(line.split_whitespace()).is_ok()
    }

    #[test]
    fn the_command_definition_is_valid() {
        definition().debug_assert();
    }

    #[test]
    fn a_filter_implies_json() {
        let (cli, filter) = parse(["agtmux", "status", "--jq", ".daemon"]).expect("parses");
        assert!(matches!(cli.command, Some(CliCommand::Status(status::StatusArgs { json: true, .. }))), "{cli:?}");
        assert!(filter.is_some());
        let (cli, filter) = parse(["agtmux", "status"]).expect("parses");
        assert!(
            matches!(cli.command, Some(CliCommand::Status(status::StatusArgs { json: false, .. }))) && filter.is_none(),
            "{cli:?}"
        );
    }

    #[test]
    fn every_command_with_json_has_a_filter() {
        fn check(command: &clap::Command, with_json: &mut usize) {
            let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
            assert!(!has("json") || has(jq::OPTION), "{}", command.get_name());
            *with_json += usize::from(has("json"));
            command.get_subcommands().for_each(|inner| check(inner, with_json));
        }
        let mut with_json = 0;
        check(&definition(), &mut with_json);
        assert!(with_json > 30, "{with_json}");
    }

    #[test]
    fn every_documented_command_line_parses() {
        for line in [
            "agtmux",
            "agtmux ls",
            "agtmux inbox --plain",
            "agtmux list --json --all",
            "agtmux list panes --target host --session s --state running --agent claude --needs-action --json --all",
            "agtmux list panes --all-targets --target-session host/work",
            "agtmux list windows --target host --target-session host/s --session s --with-agent-status --json --all",
            "agtmux list sessions --all-targets --agent-summary --group-by session-name --json --all",
            "agtmux watch --target host --scope windows --format jsonl --interval 500ms --since 10m --once",
            "agtmux watch --since 2026-11-15T09:00:00Z --all --state waiting_input",
            "agtmux daemon logs -n 20 -f",
            "agtmux daemon run --detached",
            "agtmux daemon status --json",
            "agtmux config check some.toml",
            "agtmux status --json",
            "agtmux status --follow --json",
            "agtmux menubar --format waybar --follow",
            "agtmux sidebar",
            "agtmux sidebar toggle --client /dev/pts/3 --width 30 --every-window",
            "agtmux status --follow --format {waiting?!}",
            "agtmux setup --agent claude --agent codex --dry-run --yes --json",
            "agtmux setup --uninstall",
            "agtmux adapters --json",
            "agtmux adapters disable claude --json",
            "agtmux adapters enable claude",
            "agtmux adapters check otto.toml --json",
            "agtmux adapters new otto --stdout",
            "agtmux adapters record %3 --out somewhere",
            "agtmux explain --screen s --agent otto --manifest otto.toml",
            "agtmux explain --screen s --manifest otto.toml",
            "agtmux run --name reviewer -- claude --resume x",
            "agtmux run claude --model m",
            "agtmux hook codex notify --then notify-send -a x {}",
            "agtmux attach %3 --if-runtime x --if-state idle --if-updated-within 30s --print",
            "agtmux attach",
            "agtmux attach %3 --client /dev/pts/3",
            "agtmux next --client /dev/pts/3",
            "agtmux back",
            "agtmux target add vm1 --kind ssh --ssh-target me@vm1 --json",
            "agtmux target add vm1 --kind local",
            "agtmux target connect vm1",
            "agtmux target list --json",
            "agtmux target remove vm1 --yes",
            "agtmux target doctor vm1 --json",
            "agtmux collect --stdio",
            "agtmux view-output claude --lines 100 --ansi --follow --json",
            "agtmux view-output -f",
            "agtmux wait %1 %2 --for idle,completed --any --timeout 10m",
            "agtmux wait claude --for waiting_approval --for waiting_input --all --json",
            "agtmux resume runtime:ab12 --force-stale --request-ref again --json",
            "agtmux audit --since 1h --limit 20 --json",
            "agtmux audit %1",
            "agtmux mirror start --shell zsh --json",
            "agtmux mirror start --pane %1 --json",
            "agtmux notify test",
            "agtmux doctor --json",
            "agtmux doctor --report",
            "agtmux completions zsh",
            "agtmux man out",
            "agtmux notify test ntfy --json",
            "agtmux notify log --since 1h --limit 5 --json",
            "agtmux mirror exec --timeout 10m --cwd /tmp --json --raw -- -x",
            "agtmux mirror activity --follow --json",
            "agtmux mirror read --lines 20",
            "agtmux mirror stop --pane %5",
            "agtmux audit --since 2026-11-15T09:00:00Z",
            "agtmux send --text hi",
            "agtmux send %1 --text -item",
            "agtmux respond %1 --text --",
            "agtmux list panes --state running,idle --state error --sort age",
            "agtmux list windows -F #{window_index}:#{agtmux_state}",
            "agtmux ls -F #{pane_id}",
            "agtmux watch --sort place",
            "agtmux kill --signal TERM --yes",
            "agtmux seen %3 --json",
            "agtmux last claude --turns 3 --json",
            "agtmux new",
            "agtmux new claude --name x --in /tmp --prompt -x --session s --json -- --model opus",
            "agtmux new codex --split --target vm1 --request-ref r",
            "agtmux rename %1 reviewer --json",
            "agtmux list --ended --json",
            "agtmux diff claude -- --stat",
            "agtmux resume --all-from reboot --yes --json",
            "agtmux resume --all-from 2h",
            "agtmux new claude --worktree fix-login --base main",
            "agtmux worktree list --in /tmp --json",
            "agtmux worktree remove fix-login --force --yes",
            "agtmux handoff claude codex --note -x",
            "agtmux handoff claude --new codex --json",
            "agtmux broadcast --state idle --agent claude --text x --yes --json",
            "agtmux ask %1 --text -x --timeout 5m --jq .outcome",
            "agtmux explain",
            "agtmux history --since 1h",
            "agtmux task run --session s --wait 30s --json build -- make all",
            "agtmux task run build make -j 4",
            "agtmux task run --replace build make",
            "agtmux task list --json",
            "agtmux task logs build -f -n 20",
            "agtmux task input build --text -y --no-enter",
            "agtmux task stop @3 --window --json",
            "agtmux task restart build --json",
            "agtmux task prune-dead --json",
            "agtmux task kill-all --yes --json",
            "agtmux task wait build --timeout 10m",
            "agtmux task events --follow --all --after 7 --json",
            "agtmux task events --conversation --json",
            "agtmux task session-name /p id --json",
            "agtmux send %1 --text hi --wait --for idle,finished --timeout 5m --json",
            "agtmux list --jq .items[].state",
            "agtmux list panes --json --jq .items|length",
            "agtmux watch --format jsonl --jq .item.state",
        ] {
            assert!(parses(line), "{line}");
        }
    }

    #[test]
    fn conflicting_and_unknown_arguments_are_rejected() {
        for line in [
            "agtmux list panes --target host --all-targets",
            "agtmux watch --target host --all-targets",
            "agtmux list panes --state busy",
            "agtmux list panes --state running,",
            "agtmux list panes --sort colour",
            "agtmux list panes -F #{colour}",
            "agtmux list panes -F #{pane_id} --json",
            "agtmux list panes --target-session nosession",
            "agtmux list sessions --group-by window",
            "agtmux list panes --group-by session-name",
            "agtmux list panes --with-agent-status",
            "agtmux list --json windows",
            "agtmux watch --interval soon",
            "agtmux watch --interval -1s",
            "agtmux watch --since yesterday-ish",
            "agtmux daemon",
            "agtmux run",
            "agtmux setup --agent unknown",
            "agtmux adapters check",
            "agtmux adapters --json new x",
            "agtmux explain --screen s",
            "agtmux explain %3 --manifest otto.toml",
            "agtmux wait %1",
            "agtmux wait %1 --for busy",
            "agtmux wait %1 --for idle --any --all",
            "agtmux wait %1 --for idle --timeout soon",
            "agtmux attach %1 --print --json",
            "agtmux status --format {colour}",
            "agtmux menubar",
            "agtmux sidebar toggle --width 80",
            "agtmux status --format {waiting} --json",
            "agtmux view-output %1 --lines many",
            "agtmux ask %1",
            "agtmux new claude --split --window",
            "agtmux rename %1",
            "agtmux resume %1 --all-from reboot",
            "agtmux resume --all-from soonish",
            "agtmux list --ended --state idle",
            "agtmux new claude --base main",
            "agtmux handoff claude",
            "agtmux handoff claude codex --new codex",
            "agtmux broadcast --state idle",
            "agtmux worktree remove x --yes",
            "agtmux target",
            "agtmux target add vm1 --kind cloud",
            "agtmux collect",
            "agtmux run --name a/b -- claude",
            "agtmux task run build",
            "agtmux task",
            "agtmux task input build",
            "agtmux mirror start --pane %1 --shell zsh",
            "agtmux task logs build --follow --json",
            "agtmux send %1 --text hi --timeout 5m",
            "agtmux list --jq .items[",
            "agtmux list panes -F #{pane_id} --jq .items",
            "agtmux attach %1 --print --jq .socket",
            "agtmux task logs build --follow --jq .",
            "agtmux daemon stop --jq .",
        ] {
            assert!(!parses(line), "{line}");
        }
    }

    #[test]
    fn help_and_docs_list_the_same_exit_codes() {
        let document = include_str!("../../../docs/exit-codes.md");
        let codes = |text: &str, before: &str, after: &str| -> Vec<String> {
            let word = |line: &str| Some(line.strip_prefix(before)?.split_once(after)?.0.trim().to_owned());
            text.lines().filter_map(word).filter(|word| word.parse::<u8>().is_ok()).collect()
        };
        assert_eq!(codes(EXIT_CODES, "  ", " "), codes(document, "| ", " |"));
    }

    #[test]
    fn usage_errors_exit_with_2() {
        let error = parse(["agtmux", "list", "panes", "--state", "busy"]).expect_err("no such state");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("waiting_approval"), "{error}");
    }
}
