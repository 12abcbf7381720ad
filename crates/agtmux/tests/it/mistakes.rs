//! Snapshots of the messages for likely mistakes. `INSTA_UPDATE=always cargo test --test it mistakes::` accepts a change.

use std::path::Path;

use agtmux_testkit::agtmux::{CommandResult, SOON, configure, items, list, run, soak, start, stop, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use regex::Regex;

use crate::hints::{NamedCommand, commands_in, hints};

const SCENES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/demo/scenes");

/// Runs a command line and returns it with its output and exit code.
fn attempt(world: &TestWorld, title: &str, variables: &[(&str, &str)], args: &[&str]) -> String {
    let result = run_in(world, variables, args);
    let mut line: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    line.push("agtmux".into());
    line.extend(args.iter().map(|arg| if arg.contains(' ') { format!("'{arg}'") } else { (*arg).to_owned() }));
    let code = result.code.map_or("none".into(), |code| code.to_string());
    let text = format!("## {title}\n$ {}\n{}{}[exit code {code}]\n\n", line.join(" "), result.text(), result.stderr);
    stable(world, &text)
}

/// Replaces the parts of the text that differ from run to run.
fn stable(world: &TestWorld, text: &str) -> String {
    let text = text.replace(&world.dir().display().to_string(), "$WORLD").replace(SCENES, "$SCENES");
    let rules = [
        (r"runtime:[0-9a-f]{32}", "runtime:ID"),
        (r"\b[0-9a-f]{16,32}\b", "HASH"),
        (r"\d+ ms\b", "N ms"),
        (r"\bpid \d+", "pid N"),
    ];
    rules.iter().fold(text, |text, (pattern, new)| {
        Regex::new(pattern).expect("a valid pattern").replace_all(&text, *new).into_owned()
    })
}

/// A title and a command line.
type Mistake = (&'static str, &'static [&'static str]);

const ON_THE_COMMAND_LINE: [Mistake; 13] = [
    ("unknown command", &["lst"]),
    ("unknown option", &["list", "--jsno"]),
    ("unknown state", &["list", "--state", "busy"]),
    ("session without its target", &["list", "--target-session", "work"]),
    ("invalid duration", &["wait", "%0", "--for", "idle", "--timeout", "10min5"]),
    ("nothing to wait for", &["wait", "%0"]),
    ("invalid time", &["history", "%0", "--since", "yesterday"]),
    ("no task and no command", &["task", "run"]),
    ("no session for tasks", &["task", "list"]),
    ("unknown agent for setup", &["setup", "--agent", "cluade"]),
    ("program not found", &["run", "cluade"]),
    ("status without a daemon", &["status"]),
    ("filter that is not closed", &["list", "--jq", ".items["]),
];

#[test]
fn mistakes_on_the_command_line() {
    let world = world();
    let texts = ON_THE_COMMAND_LINE.map(|(title, args)| attempt(&world, title, &[], args));
    insta::assert_snapshot!("command_line", texts.concat());
}

/// In this world agtmux can start a server for tasks.
#[test]
fn the_hints_for_mistakes_on_the_command_line_can_be_followed() {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", "exec cat");
    let followed = ON_THE_COMMAND_LINE.map(|(_, args)| follow_hints(&world, &[], args, "work"));
    assert!(!followed.concat().is_empty(), "no hint names a command");
}

#[test]
fn the_hints_before_anything_runs_can_be_followed() {
    let world = world();
    let no_daemon = follow_hints(&world, &[("AGTMUX_NO_AUTOSTART", "1")], &["list"], "%0");
    let no_server = follow_hints(&world, &[], &["list"], "%0");
    stop(&world);
    configure(&world, "[tmux]\ncommand_timeout = \"soon\"\n");
    let invalid = follow_hints(&world, &[], &["list"], "%0");
    configure(&world, "");
    for followed in [no_daemon, no_server, invalid] {
        assert!(!followed.is_empty(), "no hint names a command");
    }
}

/// Runs a command, and then every command that its hints name, with the same variables.
fn follow_hints(world: &TestWorld, variables: &[(&str, &str)], args: &[&str], reference: &str) -> Vec<NamedCommand> {
    let first = run_in(world, variables, args);
    let named: Vec<NamedCommand> = hints(&first).iter().flat_map(|hint| commands_in(hint, reference)).collect();
    named.iter().for_each(|next| follow(world, variables, (args, &first), next));
    named
}

/// Runs a command that a hint names. It must exist, and it must not fail as the first command did.
#[track_caller]
fn follow(
    world: &TestWorld,
    variables: &[(&str, &str)],
    (args, first): (&[&str], &CommandResult),
    next: &NamedCommand,
) {
    let mut next: Vec<&str> = next.iter().map(String::as_str).collect();
    // These do not end by themselves, or take long because the agents of these tests read no text. clap checks the words
    // before `--help`.
    if matches!(next[..], ["demo", ..] | ["daemon", "run", ..] | ["send", _, "--text", ..]) {
        next.push("--help");
    }
    let second = run_in(world, variables, &next);
    let is_usage_error = second.code == Some(2) && second.stderr.starts_with("error:");
    assert!(!is_usage_error, "{args:?} names {next:?}, which is wrong usage: {}", second.stderr);
    let headline = |result: &CommandResult| result.stderr.lines().next().map(str::to_owned);
    let is_same = second.code != Some(0) && headline(first) == headline(&second);
    assert!(!is_same, "{args:?} names {next:?}, which fails in the same way: {}", second.stderr);
}

fn run_in(world: &TestWorld, variables: &[(&str, &str)], args: &[&str]) -> CommandResult {
    run(world.agtmux().args(args).envs(variables.iter().copied()).current_dir(world.home()))
}

#[test]
fn mistakes_before_anything_runs() {
    let world = world();
    let mut text = attempt(&world, "the daemon may not be started", &[("AGTMUX_NO_AUTOSTART", "1")], &["list"]);
    text += &attempt(&world, "no tmux server runs", &[], &["list"]);
    stop(&world);
    configure(&world, "[tmux]\ncommand_timeout = \"soon\"\n");
    text += &attempt(&world, "invalid value in the configuration", &[], &["list"]);
    configure(&world, "[tmux]\nsockts = []\n");
    text += &attempt(&world, "unknown key in the configuration", &[], &["config", "check"]);
    configure(&world, "");
    insta::assert_snapshot!("before_anything_runs", text);
}

/// Installs a program that shows a screen of an agent.
fn install_agent(world: &TestWorld, name: &str, screen: &str, title: &str) {
    let screen = Path::new(SCENES).join(screen);
    let script = format!(
        "#!/bin/sh\nprintf '\\033]2;{title}\\033\\\\\\033[2J\\033[H'\ncat '{}'\nread -r line\n",
        screen.display()
    );
    world.install_script(name, &script);
}

/// A server with two Claudes that ask for approval, an idle Codex and a shell.
fn start_agents(world: &TestWorld) -> TestTmuxServer {
    install_agent(world, "claude", "claude-approval.txt", "✳ Fix the login test");
    install_agent(world, "codex", "codex-idle.txt", "Add rate limits | api");
    let server = world.tmux("default");
    let program = |name: &str| world.bin().join(name).display().to_string();
    server.new_session("work", &program("claude"));
    server.run(&["resize-window", "-t", "=work:", "-x", "120", "-y", "50"]);
    for command in [program("claude"), program("codex"), "sh".to_owned()] {
        server.run(&["new-window", "-d", "-t", "=work:", &command]);
    }
    start(world);
    wait_for("the states of all agents", SOON, || {
        let listing = list(world);
        let mut states: Vec<&str> = items(&listing).iter().filter_map(|item| item["state"].as_str()).collect();
        states.sort_unstable();
        let expected = ["idle", "waiting_approval", "waiting_approval"];
        if states == expected { Ok(()) } else { Err(listing.to_string()) }
    });
    server
}

const CODEX_SCREEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/demo/scenes/codex-idle.txt");

const WITH_AGENTS: [Mistake; 20] = [
    ("pane that does not exist", &["send", "%99", "--text", "hello"]),
    ("agent that does not exist", &["send", "cluade", "--text", "hello"]),
    ("several agents match", &["send", "claude", "--text", "hello"]),
    ("reference in the form of tmux", &["send", "work:1.0", "--text", "hello"]),
    ("pane without an agent", &["attach", "%3", "--if-state", "idle"]),
    ("nothing to send", &["send", "%2"]),
    ("text for an agent with an open dialog", &["send", "%0", "--text", "yes please"]),
    ("no agent given", &["send", "--text", "hello"]),
    ("answer without a dialog", &["respond", "%2", "approve"]),
    ("option that the dialog does not have", &["respond", "%0", "9"]),
    ("answer that agtmux does not know", &["respond", "%0", "yes"]),
    ("kill without an agent", &["kill"]),
    ("kill without a terminal to confirm on", &["kill", "%0"]),
    ("invalid task name", &["task", "run", "--session", "pi-work-1", "my task", "--", "make"]),
    ("task that does not exist", &["task", "logs", "--session", "pi-work-1", "build"]),
    ("invalid target name", &["target", "add", "my host"]),
    ("target that does not exist", &["target", "doctor", "vm9"]),
    ("filter that matches no agent", &["list", "--agent", "cluade"]),
    ("unknown agent for a saved screen", &["explain", "--screen", CODEX_SCREEN, "--agent", "cluade"]),
    ("unknown adapter", &["adapters", "disable", "cluade"]),
];

#[test]
fn mistakes_with_agents() {
    let world = world();
    let _server = start_agents(&world);
    let texts = WITH_AGENTS.map(|(title, args)| attempt(&world, title, &[], args));
    insta::assert_snapshot!("with_agents", texts.concat());
}

/// First runs all commands, because a command that is followed may end an agent.
#[test]
fn the_hints_for_mistakes_with_agents_can_be_followed() {
    let world = world();
    let _server = start_agents(&world);
    let mut named = Vec::new();
    for (_, args) in WITH_AGENTS {
        let first = run_in(&world, &[], args);
        for hint in hints(&first) {
            let named_agent = args.get(1).copied().filter(|word| word.starts_with('%'));
            let mut commands = commands_in(&hint, named_agent.unwrap_or("%2"));
            // Each answer to a dialog takes seconds, because these agents do not react.
            commands.truncate(if soak() { usize::MAX } else { 1 });
            named.extend(commands.into_iter().map(|next| (args, first.clone(), next)));
        }
    }
    assert!(named.len() >= 15, "{named:?}");
    named.sort_by_key(|(.., next)| next[0] == "kill");
    for (args, first, next) in &named {
        follow(&world, &[], (args, first), next);
    }
}
