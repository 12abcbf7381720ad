//! Read-only commands: `view-output`, `wait`, `audit`, and how references are resolved.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux, configure, items, kill, list, pid, run, start, stop, world};
use agtmux_testkit::{ChildGuard, TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

fn emit_state(world: &TestWorld, pane: &str, state: &str) {
    let key = format!("{pane}-{state}-{:?}", std::time::Instant::now());
    let args = ["emit", "--pane", pane, "--source", "hook", "--event-type", state, "--dedupe-key", &key];
    let done = agtmux(world, &args);
    assert!(done.code == Some(0) && done.text().contains("accepted"), "{done:?}");
}

/// Waits for an agent in this pane and returns its runtime id.
#[track_caller]
fn runtime_in(world: &TestWorld, pane: &str) -> String {
    wait_for(&format!("an agent in {pane}"), SOON, || {
        let listing = list(world);
        let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane).cloned();
        item.and_then(|item| item["runtime_id"].as_str().map(str::to_owned)).ok_or_else(|| listing.to_string())
    })
}

/// A world with a fake claude in %0.
fn world_with_claude() -> (TestWorld, TestTmuxServer, String) {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", &world.fake_agent_command("claude"));
    start(&world);
    let runtime = runtime_in(&world, "%0");
    (world, server, runtime)
}

fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|c| c == '\n' || !(c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}'..='\u{200f}')))
}

#[test]
fn view_output_prints_plain_text() {
    let world = world();
    let server = world.tmux("default");
    let show = "printf '\\033]2;evil\\033\\\\\\033[31mred\\033[0m\\342\\200\\256back\\n'; for i in $(seq 60); do echo line-$i; done; exec cat";
    server.new_session("work", show);
    start(&world);
    wait_for("the last line", SOON, || {
        let done = agtmux(&world, &["view-output", "%0"]);
        if done.text().contains("line-60") { Ok(()) } else { Err(done) }
    });
    let screen = agtmux(&world, &["view-output", "%0"]).text();
    assert!(!screen.contains("line-1\n") && screen.ends_with("line-60\n"), "{screen}");
    let some = agtmux(&world, &["view-output", "%0", "--lines", "3"]).text();
    assert_eq!(some, "line-58\nline-59\nline-60\n");
    let all = agtmux(&world, &["view-output", "%0", "--lines", "500"]).text();
    assert!(all.starts_with("red\\u{202e}back\nline-1\n") && is_plain(&all), "{all}");
    let coloured = agtmux(&world, &["view-output", "%0", "--lines", "500", "--ansi"]).text();
    assert!(coloured.contains("\u{1b}[31mred"), "{coloured:?}");
    assert!(!coloured.contains('\u{202e}') && !coloured.contains("\u{1b}]"), "{coloured:?}");
    let json = agtmux(&world, &["view-output", "%0", "--lines", "2", "--json"]).json();
    assert_eq!(json["lines"], serde_json::json!(["line-59", "line-60"]));
    assert_eq!((&json["pane_id"], &json["full_screen"], &json["title"]), (&"%0".into(), &false.into(), &"evil".into()));
    let refused = agtmux(&world, &["view-output", "%0", "--lines", "10001"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
}

/// A command that runs in the background and writes its output to a file.
struct BackgroundCommand {
    running: ChildGuard,
    file: std::path::PathBuf,
}

fn run_in_background(world: &TestWorld, args: &[&str]) -> BackgroundCommand {
    let file = world.dir().join(format!("output-{}", args.concat().replace(['/', ':'], "-")));
    let out = fs::File::create(&file).expect("the world is writable");
    let running = ChildGuard::start(world.agtmux().args(args).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped()));
    BackgroundCommand { running, file }
}

impl BackgroundCommand {
    fn text(&self) -> String {
        fs::read_to_string(&self.file).expect("the output file exists")
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        wait_for(&format!("'{text}' in the output"), SOON, || {
            let output = self.text();
            if output.contains(text) { Ok(()) } else { Err(output) }
        });
    }

    #[track_caller]
    fn wait_for_exit(mut self) -> (Option<i32>, String, String) {
        let status =
            wait_for("the command to exit", SOON, || self.running.try_wait().expect("the child can be waited for"));
        let mut stderr = String::new();
        self.running.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
        (status.code(), self.text(), stderr)
    }
}

#[test]
fn view_output_follow_prints_new_lines_until_the_agent_ends() {
    let world = world();
    let server = world.tmux("default");
    let agent = world.shell_copy("claude");
    let body = "while read -r line; do echo \"echo-$line\"; [ \"$line\" = quit ] && exit; done";
    server.new_session("work", &format!("stty -echo; {} -c '{body}'; exec cat", agent.display()));
    start(&world);
    runtime_in(&world, "%0");
    let line = |text: &str| server.run(&["send-keys", "-t", "%0", text, "Enter"]);
    for n in 0..40 {
        line(&format!("old{n}"));
    }
    line("first");
    wait_until("the first line", SOON, || server.run(&["capture-pane", "-p", "-t", "%0"]).contains("echo-first"));
    let follower = run_in_background(&world, &["view-output", "claude", "--follow"]);
    follower.wait_for("echo-first");
    for n in 0..40 {
        line(&format!("n{n}"));
    }
    follower.wait_for("echo-n39");
    line("quit");
    let (code, text, stderr) = follower.wait_for_exit();
    let expected: Vec<String> = (0..40).map(|n| format!("echo-n{n}")).collect();
    let followed: Vec<&str> = text.lines().filter(|line| line.starts_with("echo-n")).collect();
    assert_eq!(followed, expected, "each line once, in order");
    assert!(!text.contains("echo-old0\n"), "history is not printed: {text}");
    assert!(text.ends_with("echo-quit\n") && is_plain(&text), "{text:?}");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("%0 has ended"), "{stderr}");
}

#[test]
fn view_output_follow_redraws_full_screen_programs_until_ctrl_c() {
    let world = world();
    let server = world.tmux("default");
    server.new_session(
        "work",
        "for i in $(seq 60); do echo before; done; printf '\\033[?1049h\\033[Hpage one'; read -r x; printf '\\033[H\\033[2Jpage two'; exec cat",
    );
    start(&world);
    wait_until("the page", SOON, || server.run(&["capture-pane", "-p", "-t", "%0"]).contains("page one"));
    let follower = run_in_background(&world, &["view-output", "%0", "-f"]);
    follower.wait_for("page one");
    server.run(&["send-keys", "-t", "%0", "Enter"]);
    follower.wait_for("page two");
    assert!(!follower.text().contains("before"), "the normal screen is not printed: {:?}", follower.text());
    assert!(process::signal(follower.running.id(), Signal::INT), "the follower runs");
    let (code, text, stderr) = follower.wait_for_exit();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(is_plain(&text), "{text:?}");
}

/// Waits until the command has opened the event stream. The stream is the third socket of the command; the first two
/// are its socket pair for signals.
#[track_caller]
fn wait_until_following(waiter: &BackgroundCommand) {
    wait_until("the wait command to open the event stream", SOON, || {
        let files = fs::read_dir(format!("/proc/{}/fd", waiter.running.id())).into_iter().flatten().flatten();
        let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count() > 2
    });
}

#[test]
fn wait_ends_at_the_state_and_reports_the_outcome() {
    let (world, server, runtime) = world_with_claude();
    emit_state(&world, "%0", "running");
    let waiter = run_in_background(&world, &["wait", "claude", "--for", "waiting_approval,idle", "--timeout", "60s"]);
    wait_until_following(&waiter);
    emit_state(&world, "%0", "idle");
    let (code, text, stderr) = waiter.wait_for_exit();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(text, format!("idle claude %0 runtime:{runtime}\n"));
    let already = agtmux(&world, &["wait", "%0", "--for", "idle", "--json"]).json();
    assert_eq!((&already["outcome"], &already["agents"][0]["reached"]), (&"reached".into(), &"idle".into()));
    assert_eq!((&already["agents"][0]["ref"], &already["agents"][0]["gone"]), (&"%0".into(), &false.into()));
    let late = agtmux(&world, &["wait", "%0", "--for", "error", "--timeout", "50ms"]);
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(late.stderr.contains("timed out") && late.stderr.contains("agtmux explain %0"), "{}", late.stderr);
    let late = agtmux(&world, &["wait", "%0", "--for", "error", "--timeout", "50ms", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&late.text()).expect("a timeout also prints JSON");
    assert_eq!(
        (late.code, &result["outcome"], &result["agents"][0]["state"]),
        (Some(1), &"timeout".into(), &"idle".into())
    );
    let now = agtmux(&world, &["wait", "%0", "--for", "idle", "--timeout", "0s"]);
    assert_eq!(now.code, Some(0), "a state already reached needs no time: {now:?}");
    server.new_session("other", &world.fake_agent_command("codex"));
    runtime_in(&world, "%1");
    let one = agtmux(&world, &["wait", "%0", "%1", "--for", "idle", "--any", "--timeout", "20s"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    let both = agtmux(&world, &["wait", "%0", "%1", "--for", "idle", "--timeout", "100ms"]);
    assert_eq!(both.code, Some(1), "{both:?}");
    assert_eq!(agtmux(&world, &["wait", "missing", "--for", "idle"]).code, Some(5));
}

#[test]
fn wait_reports_a_gone_agent_even_if_another_agent_follows() {
    let world = world();
    let server = world.tmux("default");
    let agent = world.shell_copy("claude");
    let one = format!("{} -c \"while read -r line; do [ \\\"\\$line\\\" = quit ] && exit; done; :\"", agent.display());
    server.new_session("work", &format!("{one}; {one}; exec cat"));
    start(&world);
    let first = runtime_in(&world, "%0");
    emit_state(&world, "%0", "running");
    let reference = format!("runtime:{first}");
    let waiter = run_in_background(&world, &["wait", &reference, "--for", "idle"]);
    let patient = run_in_background(&world, &["wait", &reference, "--any", "--for", "idle"]);
    wait_until_following(&waiter);
    wait_until_following(&patient);
    server.run(&["send-keys", "-t", "%0", "quit", "Enter"]);
    wait_until("the second agent", SOON, || runtime_in(&world, "%0") != first);
    emit_state(&world, "%0", "idle");
    for waiter in [waiter, patient] {
        let (code, _, stderr) = waiter.wait_for_exit();
        assert_eq!(code, Some(2), "{stderr}");
    }
    let ended = agtmux(&world, &["wait", &reference, "--for", "idle"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn wait_survives_a_daemon_restart_and_requires_a_daemon() {
    let (world, ..) = world_with_claude();
    emit_state(&world, "%0", "running");
    let waiter = run_in_background(&world, &["wait", "claude", "--for", "idle", "--timeout", "60s"]);
    wait_until_following(&waiter);
    kill(pid(&world));
    start(&world);
    emit_state(&world, "%0", "idle");
    let (code, _, stderr) = waiter.wait_for_exit();
    assert_eq!(code, Some(0), "{stderr}");
    stop(&world);
    let none = run(world.agtmux().args(["wait", "claude", "--for", "idle"]).env("AGTMUX_NO_AUTOSTART", "1"));
    assert_eq!(none.code, Some(3), "{none:?}");
}

#[test]
fn wait_ends_when_the_turn_is_finished_or_the_agent_asks() {
    let (world, ..) = world_with_claude();
    emit_state(&world, "%0", "running");
    let finished = ["wait", "claude", "--for", "finished", "--timeout", "60s"];
    let waiter = run_in_background(&world, &finished);
    wait_until_following(&waiter);
    emit_state(&world, "%0", "idle");
    let (code, stdout, stderr) = waiter.wait_for_exit();
    assert_eq!((code, stdout.starts_with("idle claude %0")), (Some(0), true), "{stdout}{stderr}");

    emit_state(&world, "%0", "running");
    let waiter = run_in_background(&world, &finished);
    wait_until_following(&waiter);
    emit_state(&world, "%0", "waiting_approval");
    let (code, _, stderr) = waiter.wait_for_exit();
    assert_eq!(code, Some(6), "{stderr}");
    assert!(stderr.contains("try: agtmux respond claude"), "{stderr}");
}

#[test]
fn audit_lists_actions_with_their_results() {
    let (world, ..) = world_with_claude();
    let nothing = agtmux(&world, &["audit"]);
    assert!(nothing.code == Some(0) && nothing.stdout.is_empty(), "{nothing:?}");
    assert!(nothing.stderr.contains("no actions are recorded"), "{}", nothing.stderr);
    agtmux(&world, &["view-output", "%0", "--lines", "7"]);
    let refused = agtmux(&world, &["send", "nob\u{f6}dy", "--text", "hi"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let refused = agtmux(&world, &["attach", "runtime:feed", "--json"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let table = agtmux(&world, &["audit"]).text();
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("WHEN") && rows.len() >= 3, "{table}");
    assert!(rows[1].contains("view-output lines 7") && rows[1].contains("%0 on default"), "{table}");
    assert!(rows[1].contains("cli (agtmux ") && rows[1].ends_with("done"), "{table}");
    assert!(
        rows.last().is_some_and(|row| row.contains("attach") && row.contains("refused E_REF_NOT_FOUND")),
        "{table}"
    );
    let many = agtmux(&world, &["audit", "--limit", "10001"]);
    assert!(many.code == Some(5) && many.stderr.contains("at most 10000"), "{many:?}");
    let json = agtmux(&world, &["audit", "--json", "--limit", "1"]).json();
    assert_eq!(items(&json).len(), 1);
    assert_eq!((&items(&json)[0]["kind"], &items(&json)[0]["status"]), (&"attach".into(), &"refused".into()));
    assert_eq!(items(&agtmux(&world, &["audit", "--since", "2100-01-01T00:00:00Z", "--json"]).json()).len(), 0);
}

/// Runs a command in a new terminal and returns the terminal.
fn run_on_terminal(world: &TestWorld, command: &str) -> TestTmuxServer {
    let terminal = world.tmux("terminal");
    terminal.new_session("here", &format!("unset TMUX TMUX_PANE; {command}; echo code=$?; exec cat"));
    terminal
}

#[track_caller]
fn wait_for_text(terminal: &TestTmuxServer, text: &str) -> String {
    wait_for(&format!("'{text}' on the terminal"), SOON, || {
        let screen = terminal.run(&["capture-pane", "-p", "-J", "-t", "%0"]);
        if screen.contains(text) { Ok(screen) } else { Err(screen) }
    })
}

#[test]
fn an_ambiguous_name_opens_a_prompt_only_on_a_terminal() {
    let (world, server, _) = world_with_claude();
    server.new_session("other", &world.fake_agent_command("claude"));
    let second = runtime_in(&world, "%1");
    server.run(&["select-pane", "-t", "%1", "-T", "\u{202e}zebra"]);
    wait_for("the title", SOON, || {
        let listing = list(&world).to_string();
        if listing.contains("zebra") { Ok(()) } else { Err(listing) }
    });
    let refused = agtmux(&world, &["explain", "claude"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let candidates = "matches several agents: %0 (claude in %0 on host@default), %1 (claude in %1 on host@default)";
    assert!(refused.stderr.contains(candidates), "{}", refused.stderr);
    let unnamed = agtmux(&world, &["history"]);
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    assert!(unnamed.stderr.contains("no agent given"), "{}", unnamed.stderr);

    let terminal = run_on_terminal(&world, &format!("{AGTMUX} explain claude"));
    wait_for_text(&terminal, "Which one?");
    terminal.run(&["send-keys", "-t", "%0", "-l", " zebra"]);
    wait_until("one match to be left", SOON, || {
        let screen = terminal.run(&["capture-pane", "-p", "-t", "%0"]);
        screen.contains("%1 claude") && !screen.contains("%0 claude")
    });
    terminal.run(&["send-keys", "-t", "%0", "Enter"]);
    let screen = wait_for_text(&terminal, "code=");
    assert!(screen.contains(&format!("runtime:{second}")) && screen.contains("code=0"), "{screen}");
    terminal.kill_server();

    let terminal = run_on_terminal(&world, &format!("{AGTMUX} view-output"));
    wait_for_text(&terminal, "Which agent?");
    terminal.run(&["send-keys", "-t", "%0", "Escape"]);
    wait_for_text(&terminal, "code=130");
}

#[test]
fn config_may_be_yaml_but_not_both_toml_and_yaml() {
    let world = world();
    let toml = world.config_file();
    let yaml = toml.with_extension("yaml");
    fs::create_dir_all(toml.parent().expect("a directory")).expect("writable");
    fs::write(&yaml, "# mine\ntmux_bridge:\n  max_enter_retries: 7\nactions:\n  allow_from_agents: true\n")
        .expect("writable");
    let shown = |args: &[&str]| -> CommandResult { agtmux(&world, args) };
    let show = shown(&["config", "show"]);
    assert!(show.text().contains("max_enter_retries = 7  # default: 3"), "{show:?}");
    assert!(show.text().contains("config.yaml"), "{show:?}");
    assert_eq!(shown(&["config", "path"]).text(), format!("{}\n", yaml.display()));
    assert!(shown(&["config", "check"]).text().contains("config.yaml is valid"));
    for (text, words) in [
        ("tmux:\n  hooks: true\n  programm: x\n", ["line 3", "programm"]),
        ("tmux:\n  command_timeout: soon\n", ["line 2", "1500ms"]),
        ("tmux: [unclosed\n", ["line", "config.yaml"]),
        ("tmux:\n  command_timeout: 1ms\n", ["command_timeout", "out of range"]),
        ("- a\n- b\n", ["config.yaml", "map"]),
    ] {
        fs::write(&yaml, text).expect("writable");
        let checked = shown(&["config", "check"]);
        assert_eq!(checked.code, Some(2), "{text}: {checked:?}");
        assert!(words.iter().all(|word| checked.stderr.contains(word)), "{text}: {}", checked.stderr);
    }
    configure(&world, "");
    let both = shown(&["config", "check"]);
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(both.stderr.contains("config.toml") && both.stderr.contains("config.yaml"), "{}", both.stderr);
    assert_eq!(shown(&["daemon", "start"]).code, Some(2));
}
