//! The real agents use the MCP server, as `agtmux setup --mcp` registers it.

use std::fs;
use std::time::Duration;

use agtmux_testkit::real_agents::options::{AgentVersionChoice, PaneSize};
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, LaunchMode, poll_until};
use serde_json::{Value, json};

use super::driver::ScenarioDriver;
use super::run::install_agent;

/// Some agents need half a minute for a turn on a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Tests one agent. The error is the reason to skip the test.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == name).expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    let sandbox = AgentSandbox::open(&SandboxOptions {
        agent,
        program_dirs: &installed.program_dirs,
        mode: EvidenceMode::NoHooks,
        trusted: true,
        size: PaneSize(160, 50),
        save_hook_payloads: false,
    });
    sandbox.forbid_agent_actions();
    sandbox.server.run(&["set-option", "-g", "default-shell", "/bin/bash"]);
    let (done, _, error) = sandbox.run_agtmux(&["setup", "--mcp", "--agent", name, "--yes"]);
    assert!(done, "{error}");
    allow_tools(name, &sandbox);
    let driver = ScenarioDriver { agent, sandbox: &sandbox, mode: EvidenceMode::NoHooks, recorder: None };
    driver.start(&LaunchMode::Plain).unwrap_or_else(|error| panic!("{}", error.0));
    let client = McpClientRun { driver };
    client.use_all_tools();
    Ok(())
}

/// Lets the agent use the server without asking. The prompts of agents are tested elsewhere.
fn allow_tools(name: &str, sandbox: &AgentSandbox) {
    let home = &sandbox.workspace.home;
    let edit = |file: &str, change: &dyn Fn(&mut Value)| {
        let path = home.join(file);
        let mut settings: Value = serde_json::from_str(&fs::read_to_string(&path).expect("settings")).expect("JSON");
        change(&mut settings);
        fs::write(path, settings.to_string()).expect("the world is writable");
    };
    match name {
        "claude" => edit(".claude/settings.json", &|settings| {
            settings["permissions"]["allow"].as_array_mut().expect("a list").push(json!("mcp__agtmux"));
        }),
        "gemini" => edit(".gemini/settings.json", &|settings| settings["mcpServers"]["agtmux"]["trust"] = json!(true)),
        "codex" => {
            let path = home.join(".codex/config.toml");
            let text = fs::read_to_string(&path).expect("settings");
            let allowed = "args = [\"mcp\"]\ndefault_tools_approval_mode = \"approve\"";
            fs::write(path, text.replace("args = [\"mcp\"]", allowed)).expect("the world is writable");
        }
        _ => {}
    }
}

struct McpClientRun<'a> {
    driver: ScenarioDriver<'a>,
}

impl McpClientRun<'_> {
    fn use_all_tools(&self) {
        let sandbox = self.driver.sandbox;
        self.call("list_agents", "{}", &["(you)", "\"you\":true"]);
        // The person sees the command in the shared terminal.
        self.call("bash", r#"{"command":"echo seen-$((40+2))"}"#, &["seen-42"]);
        let (_, status, error) = sandbox.run_agtmux(&["mirror", "status", "--json"]);
        let status: Value = serde_json::from_str(&status).unwrap_or_else(|_| panic!("{error}"));
        let terminal = status["items"][0]["pane_id"].as_str().unwrap_or_else(|| panic!("no terminal: {status}"));
        let screen = sandbox.server.run(&["capture-pane", "-p", "-t", terminal]);
        assert!(screen.contains("seen-42"), "{screen}");
        self.call("run_task", r#"{"task":"t","command":"exit 7"}"#, &["runs in window @", "\"status\":\"started\""]);
        self.call("wait_task", r#"{"task":"t"}"#, &["exited with 7", "\"exit_code\":7"]);
        let output = format!(r#"{{"ref":"{}","lines":5}}"#, sandbox.pane);
        self.call("read_output", &output, &["<untrusted-", "\"full_screen\":"]);
        let respond = format!(r#"{{"ref":"{}","fingerprint":"x","answer":"approve"}}"#, sandbox.pane);
        self.call("respond", &respond, &["needs a permission that the user has not given"]);
    }

    /// Lets the model call a tool, and waits until the model has got a result with one of these texts: some agents show
    /// the model the text of a result, some the structured content.
    #[track_caller]
    fn call(&self, tool: &str, arguments: &str, expected: &[&str]) {
        let prompt = format!("MCP {tool} {arguments}");
        let sandbox = self.driver.sandbox;
        // The agent would queue a prompt during a turn.
        poll_until(RESPONSE_TIMEOUT, || self.is_at_rest().then_some(()));
        self.driver.submit(&prompt, |text| sandbox.paste(text)).unwrap_or_else(|error| panic!("{}", error.0));
        let has_result = |body: &str| {
            let after_prompt = body.rsplit_once(&format!("MCP {tool}")).map(|(_, after)| after.replace('\\', ""));
            after_prompt.is_some_and(|after| expected.iter().any(|text| after.contains(text)))
        };
        let got = || sandbox.model.requests().iter().any(|request| has_result(&request.body)).then_some(());
        let found = poll_until(RESPONSE_TIMEOUT, got);
        let last = || {
            let body = sandbox.model.requests().pop().map(|request| request.body).unwrap_or_default();
            body.rsplit_once(&format!("MCP {tool}"))
                .map_or(String::new(), |(_, after)| after.chars().take(1500).collect())
        };
        let screen = self.driver.screen_text();
        assert!(found.is_some(), "{tool}: no result with {expected:?}; the model got {}; {screen}", last());
    }

    fn is_at_rest(&self) -> bool {
        let (_, list, _) = self.driver.sandbox.run_agtmux(&["list", "panes", "--json"]);
        let list: Value = serde_json::from_str(&list).unwrap_or_default();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let agent = items.iter().find(|item| item["identity"]["pane_id"] == self.driver.sandbox.pane.as_str());
        agent.is_some_and(|agent| agent["state"] == "idle" || agent["state"] == "completed")
    }
}
