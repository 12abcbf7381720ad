//! Runs the opencode plugin and the Pi extension in node with the events of the agents, and checks which events they
//! forward and in which order. Skipped without node.

use std::fs;
use std::path::{Path, PathBuf};

use agtmux_testkit::agtmux::{run, script, world};
use agtmux_testkit::{TestWorld, runnable_typescript, skip};
use serde_json::{Value, json};

/// Passes the events to the plugin one after the other, as opencode does.
const OPENCODE_DRIVER: &str = r#"
import { Agtmux } from "./agtmux.mjs"
const client = { session: { get: async ({ path }) => ({ data: { parentID: path.id === "from before" ? "top" : undefined } }) } }
const { event } = await Agtmux({ client })
for (const one of JSON.parse(process.env.EVENTS)) if (event) await event({ event: one })
"#;

const PI_DRIVER: &str = r#"
import { reportState } from "./state.ts"
const handlers = {}
reportState({ on: (name, handler) => { handlers[name] = handler } }, () => true)
const ctx = { sessionManager: { getSessionId: () => "s" } }
for (const one of JSON.parse(process.env.EVENTS)) handlers[one.type]?.(one, ctx)
"#;

/// The module of the Pi package in which setup writes the path of agtmux.
const PI_PROGRAM: &str = include_str!("../../../../extensions/pi/extensions/agtmux/program.ts");

/// Installs these files with a fake agtmux that records its input. Returns None if node cannot run them.
fn install_extension(world: &TestWorld, driver: &str, files: &[(&str, &str)]) -> Option<PathBuf> {
    let kept = world.home().join("kept");
    let record =
        format!("printf '{{\"event\":\"%s %s\",\"payload\":%s}}\\n' \"$2\" \"$3\" \"$(cat)\" >> {}", kept.display());
    let program = format!("const PROGRAM = {}", json!(script(world, "keep", &record)));
    for (file, source) in files {
        let text = source.replacen("const PROGRAM = \"agtmux\"", &program, 1);
        fs::write(world.home().join(file), text).expect("the world is writable");
    }
    let driver_file = world.home().join("driver.mjs");
    fs::write(&driver_file, driver).expect("the world is writable");
    if files.iter().any(|(file, _)| file.ends_with("ts")) {
        return runnable_typescript(world, &driver_file);
    }
    if node_runs_modules(world) {
        return Some(driver_file);
    }
    skip("no installed node can run the plugin");
    None
}

fn node_runs_modules(world: &TestWorld) -> bool {
    let probe = world.home().join("probe.mjs");
    fs::write(&probe, "export const one = 1\n").expect("the world is writable");
    world.command("node").arg(&probe).output().is_ok_and(|output| output.status.success())
}

/// Runs the driver with these events. Returns the forwarded events in order.
fn forwarded_events(
    world: &TestWorld,
    driver: &Path,
    events: &Value,
    variables: &[(&str, &str)],
) -> Vec<(String, Value)> {
    let mut node = world.command("node");
    node.arg(driver).env("EVENTS", events.to_string()).envs(variables.iter().copied());
    let done = run(&mut node);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let kept = fs::read_to_string(world.home().join("kept")).unwrap_or_default();
    let line = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        (record["event"].as_str().expect("a name").to_owned(), record["payload"].clone())
    };
    kept.lines().map(line).collect()
}

fn event_names(forwarded: &[(String, Value)]) -> Vec<&str> {
    forwarded.iter().map(|(name, _)| name.as_str()).collect()
}

fn install_opencode_plugin(world: &TestWorld) -> Option<PathBuf> {
    let plugin = include_str!("../../../../extensions/opencode/agtmux.js");
    install_extension(world, OPENCODE_DRIVER, &[("agtmux.mjs", plugin)])
}

fn session_event(kind: &str, session: &str, mut more: Value) -> Value {
    more["sessionID"] = json!(session);
    json!({"type": kind, "properties": more})
}

#[test]
fn the_opencode_plugin_forwards_state_events_in_order() {
    let world = world();
    let Some(driver) = install_opencode_plugin(&world) else { return };
    let busy = |session| session_event("session.status", session, json!({"status": {"type": "busy"}}));
    let events = json!([
        session_event("session.created", "a", json!({"info": {"id": "a"}})),
        busy("a"),
        session_event("message.part.updated", "a", json!({"part": {"text": "SECRET"}})),
        busy("a"),
        {"type": "unknown type"},
        session_event("permission.asked", "a", json!({"id": "p", "permission": "edit", "patterns": ["x"],
            "metadata": {"filepath": "/x", "diff": "SECRET"}})),
        session_event("permission.replied", "a", json!({"requestID": "p", "reply": "once"})),
        busy("a"),
        session_event("session.status", "a", json!({"status": {"type": "idle"}})),
        session_event("session.error", "a", json!({"error": {"name": "APIError", "data": {"message": "no", "responseBody": "SECRET"}}})),
        {"type": "session.error", "properties": {"error": {"name": "no session"}}},
        session_event("session.idle", "a", json!({})),
    ]);
    let forwarded = forwarded_events(&world, &driver, &events, &[]);
    let wanted = ["status", "permission.asked", "permission.replied", "status", "error", "idle"];
    let wanted = wanted.map(|name| format!("opencode {}{name}", if name.contains('.') { "" } else { "session." }));
    assert_eq!(event_names(&forwarded), wanted);
    assert!(
        forwarded.iter().all(|(_, payload)| payload["session_id"] == "a" && payload["child_id"].is_null()),
        "{forwarded:?}"
    );
    assert_eq!(forwarded[1].1["id"], forwarded[2].1["id"]);
    assert!(!format!("{forwarded:?}").contains("SECRET"), "{forwarded:?}");
}

#[test]
fn the_opencode_plugin_reports_child_sessions_under_their_parent() {
    let world = world();
    let Some(driver) = install_opencode_plugin(&world) else { return };
    let idle = |session| session_event("session.idle", session, json!({}));
    let events = json!([
        session_event("session.created", "top", json!({"info": {"id": "top"}})),
        session_event("session.created", "child", json!({"info": {"id": "child", "parentID": "top"}})),
        session_event("session.created", "grandchild", json!({"info": {"id": "grandchild", "parentID": "child"}})),
        idle("grandchild"),
        idle("from before"),
        idle("top"),
    ]);
    let forwarded = forwarded_events(&world, &driver, &events, &[]);
    let whose: Vec<_> = forwarded.iter().map(|(_, payload)| (&payload["session_id"], &payload["child_id"])).collect();
    let top = json!("top");
    assert_eq!(whose, [(&top, &json!("grandchild")), (&top, &json!("from before")), (&top, &Value::Null)]);
}

#[test]
fn a_nested_opencode_in_the_same_pane_forwards_nothing() {
    let world = world();
    let Some(driver) = install_opencode_plugin(&world) else { return };
    let events = json!([session_event("session.idle", "top", json!({}))]);
    let forwarded_count = |mark: &str| {
        // The previous call may have left no file.
        let _ = fs::remove_file(world.home().join("kept"));
        let pane = [("TMUX", "/s,1,0"), ("TMUX_PANE", "%1"), ("AGTMUX_OPENCODE", mark)];
        forwarded_events(&world, &driver, &events, &pane).len()
    };
    assert_eq!(forwarded_count("1 /s,1,0 %1"), 0, "the parent process is the outer opencode");
    assert_eq!(forwarded_count("1 /s,1,0 %2"), 1, "the variable of another pane is inherited through the tmux server");
    assert_eq!(forwarded_count(""), 1);
}

#[test]
fn the_opencode_plugin_ignores_a_missing_agtmux() {
    let world = world();
    let Some(driver) = install_opencode_plugin(&world) else { return };
    fs::remove_file(world.home().join("keep")).expect("removed");
    let events =
        json!([session_event("session.idle", "top", json!({})), session_event("session.idle", "other", json!({}))]);
    assert_eq!(forwarded_events(&world, &driver, &events, &[]), []);
}

#[test]
fn the_pi_extension_forwards_state_events_in_order() {
    let world = world();
    let files = [
        ("state.ts", include_str!("../../../../extensions/pi/extensions/agtmux/state.ts")),
        ("program.ts", PI_PROGRAM),
    ];
    let Some(driver) = install_extension(&world, PI_DRIVER, &files) else { return };
    let events = json!([
        {"type": "session_start", "reason": "startup"},
        {"type": "agent_start"},
        {"type": "ui_prompt_start", "kind": "confirm", "title": "Run it?"},
        {"type": "ui_prompt_end", "kind": "confirm", "title": "Run it?"},
        {"type": "agent_end", "messages": ["SECRET"]},
        {"type": "agent_before_settle", "outcome": "completed", "entries": ["SECRET"]},
        {"type": "agent_settled"},
        {"type": "agent_start"},
        {"type": "agent_settled"},
        {"type": "session_shutdown", "reason": "quit"},
    ]);
    let forwarded = forwarded_events(&world, &driver, &events, &[]);
    let wanted = ["session_start", "agent_start", "ui_prompt_start", "ui_prompt_end"];
    let wanted = wanted.iter().chain(&["agent_settled", "agent_start", "agent_settled", "session_shutdown"]);
    assert_eq!(event_names(&forwarded), wanted.map(|name| format!("pi {name}")).collect::<Vec<_>>());
    let outcomes: Vec<_> = forwarded.iter().filter_map(|(_, payload)| payload["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["completed", "aborted"], "a turn without an outcome was aborted");
    assert!(!format!("{forwarded:?}").contains("SECRET"), "{forwarded:?}");
}
