//! What can be typed.

use clap::{Parser, Subcommand};

use crate::commands::{
    adapters, attach, audit, collect, config, daemon, emit, explain, history, hook, kill, list, replay, respond,
    resume, run, send, setup, status, target, task, view_output, wait, watch, web,
};

const EXIT_CODES: &str = "\
Exit codes:
  0    fine
  1    failed, or the answer is no
  2    wrong usage or a faulty configuration
  3    no daemon runs and none may be started
  4    the daemon is of another version: agtmux daemon restart
  5    the daemon refused the request or did not answer it
  126  run: the program cannot be executed
  127  run: there is no such program
  130  interrupted with Ctrl-C
  143  terminated

The daemon is started by the first command that needs it; AGTMUX_NO_AUTOSTART=1 forbids that.
Files: AGTMUX_CONFIG, AGTMUX_STATE_DIR and AGTMUX_SOCKET say where they are.";

/// One place to see every AI coding agent that runs in tmux.
///
/// Without a command it lists the panes in which an agent runs.
#[derive(Debug, Parser)]
#[command(name = "agtmux", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// List panes, windows or sessions and what their agents do
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Follow the agents as they change
    ///
    /// On a terminal a table is kept up to date; q or Ctrl-C ends it. In a pipe each change is a line of JSON:
    /// {schema_version, seq, at, type, scope, item}, where type is snapshot, upsert, remove or reset. When the daemon
    /// is restarted, watch goes on where it was; a daemon that stays away is started again. Ctrl-C exits with 130; a
    /// reader that goes away is a success.
    Watch(watch::WatchArgs),
    /// One line for a status bar: how many agents wait, run or idle. Never starts the daemon
    Status(status::StatusArgs),
    /// Type a text into an agent's input box and have it submitted, or press keys
    Send(Box<send::SendArgs>),
    /// Answer what an agent asks, only while it asks just that
    Respond(Box<respond::RespondArgs>),
    /// Go to an agent's pane, if it is still the one that was meant
    Attach(Box<attach::AttachArgs>),
    /// Show what an agent's pane has shown, as plain text
    ViewOutput(Box<view_output::ViewOutputArgs>),
    /// Wait until agents are in a state; for scripts
    Wait(wait::WaitArgs),
    /// Interrupt an agent, or end it
    Kill(Box<kill::KillArgs>),
    /// Start an agent that has ended again, in its pane and directory, with its own session
    Resume(Box<resume::ResumeArgs>),
    /// Run work in the background in a tmux session of its own, and hear of it when it ends, rings or asks
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// What was done to agents, by whom, and what came of it; refused actions, too
    Audit(audit::AuditArgs),
    /// Tell why an agent's state is what it is, or judge a saved screen
    Explain(explain::ExplainArgs),
    /// Tell how an agent's state has changed and how long each lasted
    History(history::HistoryArgs),
    /// Which agents are understood, how well, and from what; add one of your own
    Adapters(adapters::AdaptersArgs),
    /// Bring an event to the daemon, from a wrapper, a script or an adapter of your own
    Emit(Box<emit::EmitArgs>),
    /// Connect your agents: put our hooks into their settings, beside what is there, and take them out again
    Setup(setup::SetupArgs),
    /// Run an agent and tell when it starts and how it ends
    Run(run::AgentRunArgs),
    /// What the hooks of agents call: brings their events to the daemon. Never fails, never waits
    Hook(hook::HookArgs),
    /// Run a log of observations again and compare: exits with 1 at the first difference
    Replay(replay::ReplayArgs),
    /// Run, start, stop and look at the daemon
    #[command(subcommand)]
    Daemon(daemon::DaemonCommand),
    /// Watch other hosts by ssh
    #[command(subcommand)]
    Target(target::TargetCommand),
    /// What a hub runs here by ssh: passes on what is known of this host, and does what the hub asks for
    Collect(collect::CollectArgs),
    /// Let a browser in
    #[command(subcommand)]
    Web(web::WebCommand),
    /// Look at the settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Show agtmux at work on a private tmux server with scripted agents, and clean it up again
    Demo,
    /// What `make run` shows: your agents, or the demo where no tmux server runs
    Welcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parses(line: &str) -> bool {
        Cli::try_parse_from(line.split_whitespace()).is_ok()
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_documented_flag_is_there() {
        for line in [
            "agtmux",
            "agtmux ls",
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
            "agtmux audit --since 2026-11-15T09:00:00Z",
            "agtmux send --text hi",
            "agtmux kill --signal TERM --yes",
            "agtmux explain",
            "agtmux history --since 1h",
            "agtmux task run --session s --wait 30s --json build -- make all",
            "agtmux task run build make -j 4",
            "agtmux task list --json",
            "agtmux task logs build -f -n 20",
            "agtmux task input build --text -y --no-enter",
            "agtmux task stop @3 --window --json",
            "agtmux task restart build --json",
            "agtmux task prune-dead --json",
            "agtmux task kill-all --yes --json",
            "agtmux task wait build --timeout 10m",
            "agtmux task events --follow --all --after 7 --json",
            "agtmux task events --conversation",
            "agtmux task session-name /p id --json",
        ] {
            assert!(parses(line), "{line}");
        }
    }

    #[test]
    fn contradictions_and_unknown_words_are_refused() {
        for line in [
            "agtmux list panes --target host --all-targets",
            "agtmux watch --target host --all-targets",
            "agtmux list panes --state busy",
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
            "agtmux setup --agent nobody",
            "agtmux adapters check",
            "agtmux adapters --json new x",
            "agtmux explain --screen s",
            "agtmux explain %3 --manifest otto.toml",
            "agtmux wait %1",
            "agtmux wait %1 --for busy",
            "agtmux wait %1 --for idle --any --all",
            "agtmux wait %1 --for idle --timeout soon",
            "agtmux attach %1 --print --json",
            "agtmux view-output %1 --lines many",
            "agtmux audit %1",
            "agtmux target",
            "agtmux target add vm1 --kind cloud",
            "agtmux collect",
            "agtmux run --name a/b -- claude",
            "agtmux task run build",
            "agtmux task",
            "agtmux task input build",
            "agtmux task events --json --conversation",
            "agtmux task logs build --follow --json",
        ] {
            assert!(!parses(line), "{line}");
        }
    }

    #[test]
    fn the_documents_list_the_same_exit_codes() {
        let document = include_str!("../../../docs/exit-codes.md");
        let codes = |text: &str, before: &str, after: &str| -> Vec<String> {
            let word = |line: &str| Some(line.strip_prefix(before)?.split_once(after)?.0.trim().to_owned());
            text.lines().filter_map(word).filter(|word| word.parse::<u8>().is_ok()).collect()
        };
        assert_eq!(codes(EXIT_CODES, "  ", " "), codes(document, "| ", " |"));
    }

    #[test]
    fn usage_errors_exit_with_2() {
        let error = Cli::try_parse_from(["agtmux", "list", "panes", "--state", "busy"]).expect_err("no such state");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("waiting_approval"), "{error}");
    }
}
