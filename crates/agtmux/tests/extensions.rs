//! The plugin of opencode and the extension of Pi, run by node with events as the agents give them: what they pass on, in
//! which order, and what they keep to themselves. Without a node that can run them there is nothing to try.

#[path = "support/trial_agtmux.rs"]
mod agtmux;

use std::fs;
use std::path::{Path, PathBuf};

use agtmux::{run, script, world};
use agtmux_testkit::TestWorld;
use serde_json::{Value, json};

/// Gives the events to the plugin one after the other, as opencode does.
const OPENCODE_DRIVER: &str = r#"
import { Agtmux } from "./agtmux.mjs"
const client = { session: { get: async ({ path }) => ({ data: { parentID: path.id === "from before" ? "top" : undefined } }) } }
const { event } = await Agtmux({ client })
for (const one of JSON.parse(process.env.EVENTS)) if (event) await event({ event: one })
"#;

const PI_DRIVER: &str = r#"
import extension from "./agtmux.mts"
const handlers = {}
extension({ on: (name, handler) => { handlers[name] = handler } })
const ctx = { sessionManager: { getSessionId: () => "s" } }
for (const one of JSON.parse(process.env.EVENTS)) handlers[one.type]?.(one, ctx)
"#;

/// An extension with the program that it calls, which keeps what it is given. None where node cannot run it.
fn install_extension(world: &TestWorld, driver: &str, file: &str, source: &str) -> Option<PathBuf> {
    let kept = world.home().join("kept");
    let told =
        format!("printf '{{\"event\":\"%s %s\",\"payload\":%s}}\\n' \"$2\" \"$3\" \"$(cat)\" >> {}", kept.display());
    let program = script(world, "keep", &told);
    let text = source.replacen("\"agtmux\"", &json!(program).to_string(), 1);
    fs::write(world.home().join(file), text).expect("the world is writable");
    let driver_file = world.home().join("driver.mjs");
    fs::write(&driver_file, driver).expect("the world is writable");
    if node_runs(world, file) {
        return Some(driver_file);
    }
    eprintln!("skipped: there is no node here that can run {file}");
    None
}

/// Whether there is a node that knows this kind of file, whatever is in ours.
fn node_runs(world: &TestWorld, file: &str) -> bool {
    let probe = world.home().join(format!("probe-{file}"));
    let typed = if file.ends_with("ts") { ": number" } else { "" };
    fs::write(&probe, format!("export const one{typed} = 1\n")).expect("the world is writable");
    world.command("node").arg(&probe).output().is_ok_and(|output| output.status.success())
}

/// What was passed on of these events, in the order of its coming.
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
        let told: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        (told["event"].as_str().expect("a name").to_owned(), told["payload"].clone())
    };
    kept.lines().map(line).collect()
}

fn event_names(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(name, _)| name.as_str()).collect()
}

fn install_opencode_plugin(world: &TestWorld) -> Option<PathBuf> {
    install_extension(world, OPENCODE_DRIVER, "agtmux.mjs", include_str!("../../../extensions/opencode/agtmux.js"))
}

fn session_event(kind: &str, session: &str, mut more: Value) -> Value {
    more["sessionID"] = json!(session);
    json!({"type": kind, "properties": more})
}

#[test]
fn the_plugin_passes_on_what_matters_in_order() {
    let world = world();
    let Some(driver) = install_opencode_plugin(&world) else { return };
    let busy = |session| session_event("session.status", session, json!({"status": {"type": "busy"}}));
    let events = json!([
        session_event("session.created", "a", json!({"info": {"id": "a"}})),
        busy("a"),
        session_event("message.part.updated", "a", json!({"part": {"text": "SECRET"}})),
        busy("a"),
        {"type": "nothing like the others"},
        session_event("permission.asked", "a", json!({"id": "p", "permission": "edit", "patterns": ["x"],
            "metadata": {"filepath": "/x", "diff": "SECRET"}})),
        session_event("permission.replied", "a", json!({"requestID": "p", "reply": "once"})),
        busy("a"),
        session_event("session.status", "a", json!({"status": {"type": "idle"}})),
        session_event("session.error", "a", json!({"error": {"name": "APIError", "data": {"message": "no", "responseBody": "SECRET"}}})),
        {"type": "session.error", "properties": {"error": {"name": "no session"}}},
        session_event("session.idle", "a", json!({})),
    ]);
    let told = forwarded_events(&world, &driver, &events, &[]);
    let wanted = ["status", "permission.asked", "permission.replied", "status", "error", "idle"];
    let wanted = wanted.map(|name| format!("opencode {}{name}", if name.contains('.') { "" } else { "session." }));
    assert_eq!(event_names(&told), wanted);
    assert!(told.iter().all(|(_, payload)| payload["session_id"] == "a" && payload["child_id"].is_null()), "{told:?}");
    assert_eq!(told[1].1["id"], told[2].1["id"]);
    assert!(!format!("{told:?}").contains("SECRET"), "{told:?}");
}

#[test]
fn the_plugin_knows_whose_child_a_session_is() {
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
    let told = forwarded_events(&world, &driver, &events, &[]);
    let whose: Vec<_> = told.iter().map(|(_, payload)| (&payload["session_id"], &payload["child_id"])).collect();
    let top = json!("top");
    assert_eq!(whose, [(&top, &json!("grandchild")), (&top, &json!("from before")), (&top, &Value::Null)]);
}

#[test]
fn an_agent_that_another_one_started_in_the_same_pane_is_silent() {
    let world = world();
    let Some(driver) = install_opencode_plugin(&world) else { return };
    let events = json!([session_event("session.idle", "top", json!({}))]);
    let tell = |mark: &str| {
        // Removed by the one before.
        let _ = fs::remove_file(world.home().join("kept"));
        let pane = [("TMUX", "/s,1,0"), ("TMUX_PANE", "%1"), ("AGTMUX_OPENCODE", mark)];
        forwarded_events(&world, &driver, &events, &pane).len()
    };
    assert_eq!(tell("1 /s,1,0 %1"), 0, "it runs below the one with this number");
    assert_eq!(tell("1 /s,1,0 %2"), 1, "a server that an agent started passes its marks on to all panes");
    assert_eq!(tell(""), 1);
}

#[test]
fn an_agtmux_that_is_gone_is_no_fault_of_the_agents() {
    let world = world();
    let Some(driver) = install_opencode_plugin(&world) else { return };
    fs::remove_file(world.home().join("keep")).expect("removed");
    let events =
        json!([session_event("session.idle", "top", json!({})), session_event("session.idle", "other", json!({}))]);
    assert_eq!(forwarded_events(&world, &driver, &events, &[]), []);
}

#[test]
fn the_extension_passes_on_what_matters_in_order() {
    let world = world();
    let source = include_str!("../../../extensions/pi/agtmux.ts");
    let Some(driver) = install_extension(&world, PI_DRIVER, "agtmux.mts", source) else { return };
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
    let told = forwarded_events(&world, &driver, &events, &[]);
    let wanted = ["session_start", "agent_start", "ui_prompt_start", "ui_prompt_end"];
    let wanted = wanted.iter().chain(&["agent_settled", "agent_start", "agent_settled", "session_shutdown"]);
    assert_eq!(event_names(&told), wanted.map(|name| format!("pi {name}")).collect::<Vec<_>>());
    let outcomes: Vec<_> = told.iter().filter_map(|(_, payload)| payload["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["completed", "aborted"], "one that does not say how it ends was stopped");
    assert!(!format!("{told:?}").contains("SECRET"), "{told:?}");
}
