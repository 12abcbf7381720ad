//! Agents whose executable was renamed: their own hooks identify them.

use agtmux_testkit::agtmux::{SOON, agtmux, configure, items, list, start, stop, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use serde_json::Value;

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

/// A pane with a shell.
struct ShellPane {
    world: TestWorld,
    server: TestTmuxServer,
    pane: String,
}

impl ShellPane {
    fn open() -> Self {
        let world = world();
        configure(&world, "[actions]\nallow_from_agents = true\n");
        let server = world.tmux("default");
        let pane = server.new_session("work", "PS1='$ ' exec sh -i");
        start(&world);
        Self { world, server, pane }
    }

    fn type_line(&self, pane: &str, line: &str) {
        self.server.run(&["send-keys", "-t", pane, "-l", line]);
        self.server.run(&["send-keys", "-t", pane, "Enter"]);
    }

    /// Starts a program under this name that executes typed lines, and waits until it is in the foreground.
    #[track_caller]
    fn start_program(&self, name: &str) {
        let program = self.world.shell_copy(name);
        self.type_line(&self.pane, &format!("{} -c 'while read -r line; do eval \"$line\"; done'", program.display()));
        self.wait_for_item(&format!("{name} to be listed"), |item| item["command"] == name);
    }

    /// Makes the program in this pane call the hook of an agent.
    fn call_hook(&self, pane: &str, agent: &str, event: &str) {
        self.type_line(
            pane,
            &format!("printf '{{\"session_id\":\"s-1\",\"prompt\":\"go\"}}' | {AGTMUX} hook {agent} {event}"),
        );
    }

    #[track_caller]
    fn wait_for_item(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, SOON, || {
            let listing = list(&self.world);
            let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == self.pane.as_str()).cloned();
            item.filter(&is_wanted).ok_or_else(|| listing.to_string())
        })
    }
}

#[test]
fn the_hook_of_a_renamed_agent_identifies_it_until_it_ends() {
    let shell = ShellPane::open();
    shell.start_program("foo");
    shell.call_hook(&shell.pane, "claude", "SessionStart");
    let first = shell.wait_for_item("the agent", |item| item["agent_type"] == "claude" && item["state"] == "idle");
    assert!(first["agent_id"].is_string(), "the event that identified the agent counts, too: {first}");
    shell.call_hook(&shell.pane, "claude", "UserPromptSubmit");
    shell.wait_for_item("the turn", |item| item["state"] == "running");
    stop(&shell.world);
    start(&shell.world);
    let again = shell.wait_for_item("the agent after a restart", |item| item["state"] == "running");
    assert_eq!((&again["runtime_id"], &again["agent_type"]), (&first["runtime_id"], &first["agent_type"]));
    let key = agtmux(&shell.world, &["send", &shell.pane, "--key", "Enter"]);
    assert_eq!(key.code, Some(0), "{key:?}");
    shell.type_line(&shell.pane, "exit");
    shell.wait_for_item("the end of the agent", |item| item["agent_type"].is_null());
}

#[test]
fn a_hook_from_outside_the_pane_identifies_nothing() {
    let shell = ShellPane::open();
    let other = shell.server.new_session("other", "PS1='$ ' exec sh -i");
    shell.start_program("foo");
    // Neither another pane nor the shell of the pane itself can name the program an agent.
    let forged = format!("TMUX_PANE={} {AGTMUX} hook codex SessionStart </dev/null", shell.pane);
    shell.type_line(&other, &format!("{forged}; echo forged=$?"));
    wait_for("the forged event to be sent", SOON, || {
        shell.server.run(&["capture-pane", "-p", "-t", &other]).contains("forged=0").then_some(())
    });
    // A pane has one agent at most, so this event would change nothing if the first one had counted.
    shell.call_hook(&shell.pane, "claude", "SessionStart");
    shell.wait_for_item("the agent", |item| item["agent_type"] == "claude");
}
