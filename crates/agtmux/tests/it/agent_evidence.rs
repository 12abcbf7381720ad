//! Agent states from screens, titles, hooks, status files and logs. Fake agents draw recorded screens of real ones.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, agtmux, configure, items, list, start, stop, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A fake agent in one pane.
struct ScreenAgent {
    world: TestWorld,
    server: TestTmuxServer,
    kind: &'static str,
    pane: String,
    tty: PathBuf,
    pid: u32,
}

impl ScreenAgent {
    fn start(kind: &'static str) -> Self {
        Self::start_as(kind, |world| world.fake_agent_command(kind))
    }

    fn start_as(kind: &'static str, command: impl FnOnce(&TestWorld) -> String) -> Self {
        let world = world();
        let server = world.tmux("default");
        let pane = server.new_session("work", &command(&world));
        server.run(&["resize-window", "-t", "=work:", "-x", "120", "-y", "40"]);
        let shown = server.run(&["display-message", "-p", "-t", &pane, "#{pane_tty} #{pane_pid}"]);
        let (tty, pid) = shown.trim().split_once(' ').expect("two fields");
        let agent = Self { server, kind, tty: tty.into(), pid: pid.parse().expect("a pid"), pane, world };
        start(&agent.world);
        agent
    }

    /// Draws a screen on the agent's terminal.
    fn draw(&self, title: &str, screen: &[u8]) {
        let mut tty = fs::OpenOptions::new().write(true).open(&self.tty).expect("the pane's terminal");
        let mut drawn = format!("\x1b]2;{title}\x1b\\\x1b[2J\x1b[H").into_bytes();
        drawn.extend(screen.trim_ascii_end());
        tty.write_all(&drawn).expect("drawn");
    }

    /// Draws the recorded screen of a real agent.
    fn draw_recorded(&self, title: &str, case: &str) {
        let path =
            format!("{}/../agtmux-agents/evidence/screens/{}/{case}.ansi", env!("CARGO_MANIFEST_DIR"), self.kind);
        self.draw(title, &fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")));
    }

    fn hook(&self, event: &str, payload: &Value) {
        let file = self.world.dir().join("payload.json");
        fs::write(&file, payload.to_string()).expect("written");
        let args = ["emit", "--pane", &self.pane, "--agent", self.kind, "--source", "hook", "--event-type", event];
        let key = format!("{event}-{payload}");
        let mut command = self.world.agtmux();
        command.args(args).args(["--dedupe-key", &key, "--payload"]).arg(&file).stdin(Stdio::null());
        assert!(command.output().expect("ran").status.success());
    }

    #[track_caller]
    fn wait_for_state(&self, state: &str) -> Value {
        wait_for(&format!("{} in {state}", self.kind), SOON, || {
            let listing = list(&self.world);
            let item = items(&listing).iter().find(|item| item["agent_type"] == self.kind).cloned();
            item.filter(|item| item["state"] == state).ok_or_else(|| self.explain(&listing))
        })
    }

    fn explain(&self, listing: &Value) -> String {
        format!("{listing}\n{}", agtmux(&self.world, &["explain", &self.pane]).text())
    }
}

const CLAUDE_TITLE: &str = "✳ Claude Code";

#[test]
fn the_screen_sets_the_state_without_hooks() {
    let claude = ScreenAgent::start("claude");
    claude.draw_recorded(CLAUDE_TITLE, "claude-idle-start");
    claude.wait_for_state("idle");
    claude.draw_recorded(CLAUDE_TITLE, "claude-running-tool");
    claude.wait_for_state("running");
    claude.draw_recorded(CLAUDE_TITLE, "claude-parallel-approval");
    let item = claude.wait_for_state("waiting_approval");
    assert_eq!(item["needs_action"], true);
    assert_eq!(item["dialog"]["kind"], "approval");
    let options = item["dialog"]["options"].as_array().expect("options");
    assert!(options.len() >= 2 && options[0]["n"] == 1 && options[0]["label"] == "Yes", "{item}");
    claude.draw_recorded(CLAUDE_TITLE, "claude-approval-denied-3");
    let item = wait_for("the dialog to close", SOON, || {
        let listing = list(&claude.world);
        let item = items(&listing).iter().find(|item| item["agent_type"] == "claude").cloned();
        item.filter(|item| item["state"] == "idle" || item["state"] == "completed").ok_or(listing.to_string())
    });
    assert_eq!(item["dialog"], Value::Null);
}

#[test]
fn the_screen_corrects_the_state_of_a_hook() {
    let claude = ScreenAgent::start("claude");
    claude.draw_recorded(CLAUDE_TITLE, "claude-idle-start");
    claude.wait_for_state("idle");
    claude.hook("UserPromptSubmit", &json!({"session_id": "s", "prompt": "go"}));
    let item = claude.wait_for_state("running");
    assert!(item["agent_id"].is_string(), "{item}");
    // The user interrupts; no hook reports it.
    claude.draw_recorded(CLAUDE_TITLE, "claude-interrupt-stream");
    claude.wait_for_state("idle");
}

#[test]
fn the_title_sets_the_state_the_screen_does_not_show() {
    let codex = ScreenAgent::start("codex");
    codex.draw_recorded("⠼ Run mock task | proj", "codex-running-stream");
    codex.wait_for_state("running");
    codex.draw_recorded("[ ! ] Action Required | Run mock task | proj", "codex-ask-user");
    let item = codex.wait_for_state("waiting_input");
    assert_eq!(item["dialog"]["kind"], "input");
    codex.draw_recorded("Run mock task | proj", "codex-interrupted");
    codex.wait_for_state("idle");
}

/// No Cursor hook reports an approval, so only the screen shows it. The screens of this test are written by hand from
/// Cursor's documentation.
#[test]
fn an_agent_without_recordings_has_medium_confidence() {
    let cursor = ScreenAgent::start_as("cursor", |world| world.fake_agent_command("cursor-agent"));
    let session = |more: Value| {
        let mut payload = json!({"conversation_id": "c"});
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        payload
    };
    let becomes = |state: &str| {
        let item = cursor.wait_for_state(state);
        assert_eq!(item["confidence"], "medium", "{item}");
        item
    };
    cursor.draw("", "  → Plan, search, build anything\n\n  Run Everything\n".as_bytes());
    becomes("idle");
    cursor.hook("beforeSubmitPrompt", &session(json!({"prompt": "go"})));
    assert!(becomes("running")["agent_id"].is_string());
    cursor.hook("preToolUse", &session(json!({"tool_name": "Shell"})));
    let approval = "  $ touch a\r\n\r\n  Run this command?\r\n\r\n   → Run (once) (y)\r\n     Skip (esc or n)\r\n";
    cursor.draw("", approval.as_bytes());
    assert_eq!(becomes("waiting_approval")["dialog"]["question"], "Run this command?");
    let working = "  ⬢ Thinking\r\n\r\n  → Add a follow-up      ctrl+c to stop\r\n";
    cursor.draw("", working.as_bytes());
    becomes("running");
    cursor.hook("stop", &session(json!({"status": "completed"})));
    cursor.draw("", "  Done.\r\n\r\n  → Add a follow-up\r\n".as_bytes());
    becomes("completed");
    cursor.hook("beforeSubmitPrompt", &session(json!({"prompt": "again"})));
    cursor.hook("stop", &session(json!({"status": "error"})));
    becomes("error");
}

#[test]
fn a_status_file_sets_the_state() {
    let claude = ScreenAgent::start("claude");
    let sessions = claude.world.home().join(".claude/sessions");
    fs::create_dir_all(&sessions).expect("a directory");
    let write = |status: &str, waiting_for: &str| {
        let now = jiff::Timestamp::now().as_millisecond();
        let text = json!({"pid": claude.pid, "status": status, "waitingFor": waiting_for, "statusUpdatedAt": now});
        fs::write(sessions.join(format!("{}.json", claude.pid)), text.to_string()).expect("written");
        // When the pane has output, agtmux looks again for a missing status directory.
        claude.draw(CLAUDE_TITLE, b"an unknown screen");
    };
    write("busy", "");
    claude.wait_for_state("running");
    write("waiting", "permission prompt");
    claude.wait_for_state("waiting_approval");
    write("idle", "");
    claude.wait_for_state("idle");
}

/// A killed agent leaves its file behind, and its pid may be reused.
#[test]
fn a_status_file_of_an_earlier_process_is_ignored() {
    let claude = ScreenAgent::start("claude");
    let sessions = claude.world.home().join(".claude/sessions");
    fs::create_dir_all(&sessions).expect("a directory");
    let now = jiff::Timestamp::now().as_millisecond();
    let write = |status: &str, start: Option<u64>, at: i64| {
        let text = json!({"pid": claude.pid, "status": status, "waitingFor": "permission prompt",
                          "procStart": start.map(|start| start.to_string()), "statusUpdatedAt": at});
        fs::write(sessions.join(format!("{}.json", claude.pid)), text.to_string()).expect("written");
        claude.draw(CLAUDE_TITLE, b"an unknown screen");
    };
    // agtmux reads the file after each screen judgement.
    let judge_screen = || {
        claude.draw_recorded(CLAUDE_TITLE, "claude-running-tool");
        claude.wait_for_state("running");
        claude.draw_recorded(CLAUDE_TITLE, "claude-idle-start");
        claude.wait_for_state("idle");
    };
    write("waiting", None, now - 3_600_000);
    judge_screen();
    write("waiting", Some(1), now);
    judge_screen();
    let own = agtmux_tmux::platform::process_table(false).start_time(claude.pid).expect("the agent runs");
    write("busy", Some(own), jiff::Timestamp::now().as_millisecond());
    claude.wait_for_state("running");
    let history = agtmux(&claude.world, &["history", &claude.pane]).text();
    assert!(!history.contains("waiting_approval"), "{history}");
}

/// A fake codex with an open log file.
struct CodexWithLog {
    codex: ScreenAgent,
    log: PathBuf,
}

impl CodexWithLog {
    fn start(before: &str) -> Self {
        let mut log = PathBuf::new();
        let codex = ScreenAgent::start_as("codex", |world| {
            log = world.home().join(".codex/sessions/2026/01/02/rollout-2026-01-02-s.jsonl");
            fs::create_dir_all(log.parent().expect("a directory")).expect("the world is writable");
            fs::write(&log, before).expect("written");
            let shell = world.shell_copy("codex");
            format!("exec {} -c 'exec 9>>{}; while read -r line; do :; done'", shell.display(), log.display())
        });
        Self { codex, log }
    }

    fn record(at: jiff::Timestamp, kind: &str, error: bool) -> String {
        let payload = json!({"type": kind, "session_id": "s", "error": error.then(|| json!({"message": "mock"}))});
        format!("{}\n", json!({"timestamp": at.to_string(), "type": "event_msg", "payload": payload}))
    }

    fn append_record(&self, kind: &str, error: bool) {
        let mut file = fs::OpenOptions::new().append(true).open(&self.log).expect("the log exists");
        file.write_all(Self::record(jiff::Timestamp::now(), kind, error).as_bytes()).expect("written");
        // When the pane has output, agtmux looks again for a missing log.
        self.codex.draw("proj", b"an unknown screen");
    }
}

#[test]
fn the_open_log_of_the_agent_sets_the_state() {
    // The log begins with a record of an earlier process that was killed during a turn. The agent resumes its session.
    let before = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(1);
    let logged = CodexWithLog::start(&CodexWithLog::record(before, "task_started", false));
    let codex = &logged.codex;
    logged.append_record("session_meta", false);
    let item = wait_for("the session's name", SOON, || {
        let listing = list(&codex.world);
        let item = items(&listing).iter().find(|item| item["agent_id"].is_string()).cloned();
        item.ok_or_else(|| codex.explain(&listing))
    });
    assert_eq!(item["state"], "unknown", "{item}");
    for (kind, error, state) in [
        ("task_started", false, "running"),
        ("task_complete", true, "error"),
        ("task_started", false, "running"),
        ("task_complete", false, "completed"),
        ("task_started", false, "running"),
        ("turn_aborted", false, "idle"),
    ] {
        logged.append_record(kind, error);
        codex.wait_for_state(state);
    }
}

#[test]
fn rereading_a_log_adds_no_transition() {
    let logged = CodexWithLog::start("");
    let world = &logged.codex.world;
    stop(world);
    configure(world, "[state]\ncompleted_to_idle = '100ms'\n");
    start(world);
    logged.append_record("task_started", false);
    logged.codex.wait_for_state("running");
    logged.append_record("task_complete", false);
    logged.codex.wait_for_state("idle");
    stop(world);
    start(world);
    logged.append_record("task_started", false);
    logged.codex.wait_for_state("running");
    let history = agtmux(world, &["history", &logged.codex.pane, "--json"]).json();
    let ends = items(&history).iter().filter(|item| item["state"] == "completed").count();
    assert_eq!(ends, 1, "{history}");
}

#[test]
fn copy_mode_does_not_change_the_state() {
    let claude = ScreenAgent::start("claude");
    claude.draw_recorded(CLAUDE_TITLE, "claude-parallel-approval");
    let before = claude.wait_for_state("waiting_approval");
    claude.server.run(&["copy-mode", "-t", &claude.pane]);
    claude.server.run(&["send-keys", "-t", &claude.pane, "-X", "history-top"]);
    // A hook event makes agtmux capture the screen.
    claude.hook("Notification", &json!({"notification_type": "permission_prompt"}));
    claude.hook("SubagentStop", &json!({"agent_type": ""}));
    let after = claude.wait_for_state("waiting_approval");
    assert_eq!((&before["dialog"], &before["since"]), (&after["dialog"], &after["since"]));
}

#[test]
fn a_killed_agent_is_removed_while_its_screen_remains() {
    let world = world();
    let server = world.tmux("default");
    let shell = world.shell_copy("sh");
    let pane = server.new_session("work", &shell.to_string_lossy());
    start(&world);
    // The agent is started without `exec`, because the pane must outlive it.
    let command = world.fake_agent_command("claude");
    server.run(&["send-keys", "-t", &pane, command.trim_start_matches("exec "), "Enter"]);
    let found = |listing: &Value| items(listing).iter().any(|item| item["agent_type"] == "claude");
    wait_for("the agent", SOON, || Some(list(&world)).filter(found).ok_or(()));
    let shown = server.run(&["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    let named = |pid: &u32| process::argv(*pid).first().is_some_and(|argv0| argv0.ends_with(b"/claude"));
    let agents: Vec<u32> =
        process::descendants(shown.trim().parse().expect("a pid")).into_iter().filter(named).collect();
    assert!(!agents.is_empty() && agents.iter().all(|pid| process::signal(*pid, Signal::KILL)));
    wait_for("no agent", SOON, || Some(list(&world)).filter(|listing| !found(listing)).ok_or(()));
    assert!(server.panes().iter().any(|row| row.pane_id == pane), "the shell still runs");
}

#[test]
fn a_disabled_adapter_sets_no_state() {
    let claude = ScreenAgent::start("claude");
    claude.draw_recorded(CLAUDE_TITLE, "claude-idle-start");
    claude.wait_for_state("idle");
    let listed = agtmux(&claude.world, &["adapters", "--json"]).json();
    let item = |listed: &Value| {
        listed["items"].as_array().expect("items").iter().find(|item| item["name"] == "claude").cloned().expect("known")
    };
    assert_eq!((item(&listed)["health"].as_str(), item(&listed)["agents"].as_u64()), (Some("ok"), Some(1)));
    assert_eq!(agtmux(&claude.world, &["adapters", "disable", "claude"]).code, Some(0));
    let off = claude.wait_for_state("unknown");
    assert_eq!(off["reason_code"], "no_adapter");
    claude.draw_recorded(CLAUDE_TITLE, "claude-running-tool");
    let listed = agtmux(&claude.world, &["adapters", "--json"]).json();
    assert_eq!(item(&listed)["health"], "disabled");
    assert_eq!(agtmux(&claude.world, &["adapters", "enable", "claude"]).code, Some(0));
    claude.wait_for_state("running");
    let unknown = agtmux(&claude.world, &["adapters", "disable", "missing"]);
    assert_eq!(unknown.code, Some(5));
    assert!(unknown.stderr.contains("there is no adapter 'missing'"), "{}", unknown.stderr);
}
