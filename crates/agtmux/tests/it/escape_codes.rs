//! Names, paths and texts of other programs never act on the terminal on which a command prints them.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;

use agtmux_testkit::agtmux::{SOON, items, listed_commands, run, world};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hostile_texts::assert_terminal_safe;
use agtmux_testkit::terminal::{printed_on_terminal, run_on_terminal};
use agtmux_testkit::{TestWorld, wait_for, wait_until};
use serde_json::Value;

/// Sets the title, sets a colour that agtmux does not use, clears the screen, deletes, turns the direction, and starts
/// another line.
const HOSTILE: &str = "evil\x1b]0;x\x07\x1b[95m\u{9b}2J\x7f\u{202e}\u{200b}\n%9";
const FOREIGN_COLOUR: &[u8] = b"\x1b[95m";

/// Commands that print nothing themselves: they start programs, wait for a terminal or talk to another program.
const SILENT: [&str; 7] = ["collect", "demo", "welcome", "hook", "run", "help", "man"];

/// A world in which every directory that agtmux uses, and the tmux server, have a hostile name.
struct HostileWorld {
    world: TestWorld,
    dir: PathBuf,
}

impl HostileWorld {
    fn new() -> Self {
        let world = world();
        let dir = world.dir().join(HOSTILE);
        std::fs::DirBuilder::new().mode(0o700).create(&dir).expect("any name will do");
        std::fs::write(dir.join("c.toml"), "actions.allow_from_agents = true\n").expect("written");
        Self { world, dir }
    }

    fn agtmux(&self, args: &[&str]) -> Command {
        let mut command = self.world.agtmux();
        command.args(args).env("AGTMUX_CONFIG", self.dir.join("c.toml")).env("AGTMUX_STATE_DIR", self.dir.join("s"));
        command.env("AGTMUX_SOCKET", self.socket());
        command
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("d.sock")
    }

    /// Waits for the agent and returns a reference to its runtime.
    #[track_caller]
    fn wait_for_agent(&self) -> String {
        wait_for("the idle agent", SOON, || {
            let listing = run(&mut self.agtmux(&["list", "panes", "--json"])).json();
            let agent = items(&listing).iter().find(|item| item["state"] == "idle");
            agent.and_then(|item| Some(format!("runtime:{}", item["runtime_id"].as_str()?))).ok_or(listing.to_string())
        })
    }

    /// Every command that prints, with arguments that succeed and arguments that fail.
    fn commands(&self, agent: &str) -> Vec<Vec<String>> {
        let file = self.dir.join("missing").display().to_string();
        let with_json: [&[&str]; 25] = [
            &["list", "panes", "--all"],
            &["list", "windows"],
            &["list", "sessions"],
            &["status"],
            &["daemon", "status"],
            &["explain", agent],
            &["history", agent],
            &["adapters"],
            &["view-output", agent],
            &["wait", agent, "--for", "idle"],
            &["target", "list"],
            &["emit", "--pane", "%0", "--source", "hook", "--event-type", "idle", "--dedupe-key", HOSTILE],
            &["send", agent, "hello"],
            &["resume", agent],
            &["seen", agent],
            &["task", "list", "--session", "pi-x-y"],
            &["setup", "--dry-run", "--agent", "claude"],
            &["mirror", "status"],
            &["audit"],
            &["last", agent],
            &["rename", agent, HOSTILE],
            &["list", "panes", "--ended"],
            &["worktree", "list", "--in", &file],
            &["notify", "log"],
            &["doctor"],
        ];
        let others: [&[&str]; 48] = [
            &["watch", "--once", "--all", "--format", "table"],
            &["watch", "--once", "--all", "--format", "jsonl"],
            &["list", "panes", "--all", "-F", "#{session_name} #{pane_title} #{pane_current_path}"],
            &["list", "panes", "-F", HOSTILE],
            &["emit", "--pane", "%0", "--source", "hook", "--event-type", HOSTILE],
            &["view-output", agent, "--ansi"],
            &["attach", agent, "--print"],
            &["attach", agent, "--json"],
            &["kill", agent, "--yes"],
            &["daemon", "start"],
            &["daemon", "logs"],
            &["daemon", "logs", "--path"],
            &["config", "path"],
            &["config", "show"],
            &["config", "check"],
            &["config", "check", &file],
            &["respond", agent, "approve"],
            &["inbox", "--plain"],
            &["adapters", "record", agent],
            &["adapters", "check", &file],
            &["adapters", "new", HOSTILE],
            &["adapters", "new", "mine"],
            &["web", "url"],
            &["replay", "--db", &file],
            &["explain", HOSTILE],
            &["list", "panes", "--session", HOSTILE],
            &["target", "add", HOSTILE],
            &["task", "logs", HOSTILE, "--session", HOSTILE],
            &["task", "run", HOSTILE, "--session", HOSTILE, "--", "true"],
            &["mirror", "exec", "--pane", "%0", HOSTILE],
            &["mirror", "start", "--pane", HOSTILE],
            &["mirror", "read", "--pane", "%0"],
            &["mirror", "activity", "--pane", HOSTILE],
            &["diff", agent],
            &["ask", agent, "--text", "hi", "--if-state", "error"],
            &["broadcast", "--state", "error", "--text", HOSTILE, "--yes"],
            &["new", HOSTILE],
            &["handoff", agent, HOSTILE],
            &["worktree", "remove", HOSTILE],
            &["next"],
            &["back"],
            &["sidebar", "toggle"],
            &["status", "--format", "{waiting} #[fg=red]"],
            &["menubar", "--format", "xbar"],
            &["menubar", "--format", "waybar"],
            &["completions", "bash"],
            &["mcp", "--print-config", "claude"],
            &[HOSTILE, HOSTILE],
        ];
        let json = with_json.iter().map(|args| [*args, &["--json"][..]].concat());
        let all = with_json.iter().chain(&others).map(|args| args.to_vec()).chain(json);
        all.map(|args| args.iter().map(|arg| (*arg).to_owned()).collect()).collect()
    }
}

#[track_caller]
fn assert_only_our_colours(printed: &[u8]) {
    assert_terminal_safe(printed, true);
    let has_foreign = printed.windows(FOREIGN_COLOUR.len()).any(|window| window == FOREIGN_COLOUR);
    assert!(!has_foreign, "a foreign colour in {}", printed.escape_ascii());
}

#[test]
fn every_command_prints_only_our_own_colours_on_a_terminal() {
    let hostile = HostileWorld::new();
    let server = hostile.world.tmux(HOSTILE);
    let agent = FakeAgent::start_on(&hostile.world, &server, HOSTILE);
    server.run(&["select-pane", "-t", &agent.pane, "-T", HOSTILE]);
    let agent = hostile.wait_for_agent();
    let commands = hostile.commands(&agent);
    for args in &commands {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (printed, status) = run_on_terminal(&mut hostile.agtmux(&args), 200);
        assert!(status.code().is_some_and(|code| code != 101), "{args:?}: {}", String::from_utf8_lossy(&printed));
        assert_only_our_colours(&printed);
        if args.contains(&"--json") && status.success() {
            let document = String::from_utf8_lossy(&printed);
            assert!(serde_json::from_str::<Value>(&document).is_ok(), "{args:?} printed {document}");
        }
    }
    let help = run(&mut hostile.agtmux(&["--help"])).text();
    let names = listed_commands(&help);
    let is_covered = |name: &str| SILENT.contains(&name) || commands.iter().any(|args| args[0] == name);
    let missing: Vec<&String> = names.iter().filter(|name| !is_covered(name)).collect();
    assert!(names.len() > 15 && missing.is_empty(), "of {names:?} this test lacks {missing:?}");
}

/// JSON in a pipe is escaped too, and is the same value as before.
#[test]
fn hostile_names_survive_in_json() {
    let hostile = HostileWorld::new();
    let server = hostile.world.tmux(HOSTILE);
    FakeAgent::start_on(&hostile.world, &server, "work");
    hostile.wait_for_agent();
    let piped = run(&mut hostile.agtmux(&["list", "panes", "--json"]));
    assert_terminal_safe(&piped.stdout, false);
    assert_eq!(items(&piped.json())[0]["identity"]["server"], HOSTILE);
}

#[test]
fn the_log_on_a_terminal_and_in_a_file_is_sanitized() {
    let hostile = HostileWorld::new();
    let server = hostile.world.tmux(HOSTILE);
    server.new_session("work", "cat");
    let printed = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("the socket", SOON, || hostile.socket().exists());
            wait_for("the pane", SOON, || {
                let listing = run(&mut hostile.agtmux(&["list", "panes", "--all", "--json"])).text();
                if listing.contains("%0") { Ok(()) } else { Err(listing) }
            });
            let stopped = run(&mut hostile.agtmux(&["daemon", "stop"]));
            assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
        });
        printed_on_terminal(hostile.agtmux(&["daemon", "run"]).env("AGTMUX_LOG", "debug"), 200)
    });
    assert_only_our_colours(&printed);
    let printed = String::from_utf8_lossy(&printed);
    let socket = printed.lines().find(|line| line.contains("ready")).unwrap_or_else(|| panic!("not ready: {printed}"));
    assert!(socket.contains("evil\\x1b]0;x\\x07\\x1b[95m\\x9b2J\\x7f\\u{202e}\\u{200b}\\n%9/d.sock"), "{socket}");
    assert!(socket.contains("\x1b["), "the log has colours on a terminal: {socket:?}");
    let started = run(hostile.agtmux(&["daemon", "start"]).env("AGTMUX_LOG", "debug"));
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let stopped = run(&mut hostile.agtmux(&["daemon", "stop"]));
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    let file = std::fs::read(hostile.dir.join("s/agtmuxd.log")).expect("the daemon writes its log");
    assert_terminal_safe(&file, false);
    assert!(String::from_utf8_lossy(&file).contains("\\x1b]0;x\\x07"), "{}", file.escape_ascii());
}
