//! Runs the programs in `examples/`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use agtmux_testkit::agtmux::{SOON, agtmux, items, list, run, world};
use agtmux_testkit::web::start_with_web;
use agtmux_testkit::{TestWorld, runnable_typescript, skip, wait_until};

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Whether this program is installed in at least this version.
fn has_program(program: &str, least: (u32, u32)) -> bool {
    let output = Command::new(program).arg("--version").output();
    let version_text = output.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).unwrap_or_default();
    let digits = version_text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut numbers = digits.split('.').map(|number| number.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let fine = version >= least;
    if !fine {
        skip(&format!("{program} {}.{} or newer is not installed ({})", least.0, least.1, version_text.trim()));
    }
    fine
}

/// Starts an agent that waits for input. Returns its pane id.
fn agent_waiting_for_input(world: &TestWorld) -> String {
    let pane = world.tmux("default").new_session("work", &world.fake_agent_command("claude"));
    wait_until("the agent", SOON, || items(&list(world)).iter().any(|item| item["agent_type"] == "claude"));
    let args = ["emit", "--pane", &pane, "--source", "hook", "--event-type", "waiting_input", "--dedupe-key", "1"];
    assert_eq!(agtmux(world, &args).code, Some(0));
    pane
}

fn assert_example_output(world: &TestWorld, command: &mut Command, pane: &str) {
    let done = run(command.envs(world.agtmux().get_envs().filter_map(|(name, value)| Some((name, value?)))));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.text(), format!("claude in {pane} asks: (unknown question)\n1 agents\n"));
}

#[test]
fn the_python_client_lists_waiting_agents() {
    if !has_program("python3", (3, 8)) {
        return;
    }
    let world = world();
    let web = start_with_web(&world);
    let pane = agent_waiting_for_input(&world);
    let script = example("python/waiting.py");
    assert_example_output(&world, world.command("python3").arg("-B").arg(&script), &pane);
    assert_example_output(
        &world,
        world.command("python3").arg("-B").arg(&script).args([&web.address.to_string(), &web.token]),
        &pane,
    );
}

#[test]
fn the_typescript_client_lists_waiting_agents() {
    let world = world();
    let Some(script) = runnable_typescript(&world, &example("typescript/waiting.ts")) else { return };
    let web = start_with_web(&world);
    let pane = agent_waiting_for_input(&world);
    assert_example_output(&world, world.command("node").arg(&script), &pane);
    let (host, port) = (web.address.ip().to_string(), web.address.port().to_string());
    assert_example_output(&world, world.command("node").arg(&script).args([&host, &port, &web.token]), &pane);
}

#[test]
fn the_shell_hook_reports_state_and_never_fails() {
    if !has_program("curl", (7, 50)) {
        return;
    }
    let world = world();
    let script = example("hook.sh");
    let hook = |event: &str, pane: &str, payload: &str| {
        let mut command = world.command("sh");
        let tmux = format!("{},1,0", world.tmux("default").socket().display());
        command.arg(&script).arg(event).env("TMUX_PANE", pane).env("TMUX", tmux).env("AGTMUX_SOCKET", world.socket());
        let mut child = command.stdin(Stdio::piped()).spawn().expect("sh starts");
        use std::io::Write;
        child.stdin.take().expect("a pipe").write_all(payload.as_bytes()).expect("the hook reads its stdin");
        assert!(child.wait().expect("sh exits").success(), "{event}");
    };
    hook("stop", "%0", r#"{"session_id": "s1"}"#);
    let pane = world.tmux("default").new_session("work", &world.fake_agent_command("claude"));
    wait_until("the agent", SOON, || items(&list(&world)).iter().any(|item| item["agent_type"] == "claude"));
    hook("session-start", &pane, r#"{"session_id": "s1", "cwd": "/tmp"}"#);
    hook("user-prompt-submit", &pane, r#"{"session_id": "s1", "prompt": "it's \"quoted\" \\ {x}"}"#);
    wait_until("the state running", SOON, || items(&list(&world))[0]["state"] == "running");
    hook("stop", &pane, "no JSON at all");
    hook("nonsense", &pane, "{}");
}
