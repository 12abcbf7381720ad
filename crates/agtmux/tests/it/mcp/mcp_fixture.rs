//! A fake agent that runs `agtmux mcp` as a child. The test writes the requests and reads the responses.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux, configure, items, list, run, start, world};
use agtmux_testkit::dialog_agent::permission_dialog;
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_agtmux");
/// A call may wait for 40 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(50);

/// An agent with an MCP server. Fields are dropped in order: first the requests, whose end ends the MCP server.
pub(super) struct McpAgent {
    requests: File,
    pub(super) server: TestTmuxServer,
    pub(super) world: TestWorld,
    pub(super) pane: String,
    responses: Receiver<Value>,
    next_id: Cell<u64>,
    /// The notifications that have arrived while the test waited for responses.
    notifications: Cell<Vec<Value>>,
}

impl McpAgent {
    pub(super) fn start() -> Self {
        Self::with("", "")
    }

    /// An agent whose server has these options, and a daemon with these settings. The server has no TMUX and no
    /// TMUX_PANE, as with Codex.
    pub(super) fn with(options: &str, settings: &str) -> Self {
        Self::in_world(world(), options, settings)
    }

    fn in_world(world: TestWorld, options: &str, settings: &str) -> Self {
        configure(&world, settings);
        let server = world.tmux("default");
        let dir = world.home().join("project");
        fs::create_dir_all(&dir).expect("the world is writable");
        let [input, output] = ["in", "out"].map(|name| pipe(&world, name));
        let mcp =
            format!("env -u TMUX -u TMUX_PANE {PROGRAM} mcp {options} <{} >{}", input.display(), output.display());
        // The agent reads its terminal while the server runs.
        let keys = world.dir().join("keys");
        let script = format!("stty raw -echo; cd {}; {mcp} & cat >>{}", dir.display(), keys.display());
        let pane = server.new_session("work", &format!("exec {} -c '{script}'", world.shell_copy("claude").display()));
        server.run(&["set-option", "-g", "default-shell", "/bin/bash"]);
        server.run(&["resize-window", "-t", "=work:", "-x", "160", "-y", "50"]);
        start(&world);
        let requests = OpenOptions::new().read(true).write(true).open(&input).expect("a pipe");
        let fixture = Self {
            responses: read_lines(&output),
            server,
            world,
            pane,
            requests,
            next_id: Cell::new(1),
            notifications: Cell::default(),
        };
        fixture.wait_for_agent();
        fixture.initialize();
        fixture
    }

    fn wait_for_agent(&self) {
        wait_for("the agent to be listed", SOON, || {
            let listing = list(&self.world);
            let is_it = |item: &&Value| item["identity"]["pane_id"] == self.pane.as_str();
            items(&listing).iter().find(is_it).is_some_and(|item| item["agent_type"] == "claude").then_some(())
        });
    }

    fn initialize(&self) {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test client", "version": "1"}});
        let answer = self.request("initialize", &params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "agtmux", "{answer}");
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn write(&self, message: &Value) {
        writeln!(&self.requests, "{message}").expect("the server reads");
    }

    /// Sends a request and returns its response.
    #[track_caller]
    pub(super) fn request(&self, method: &str, params: &Value) -> Value {
        let id = self.next_id.replace(self.next_id.get() + 1);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.responses.recv_timeout(CALL_TIMEOUT);
            let message = message.unwrap_or_else(|error| panic!("no response to {method} {params}: {error}"));
            if message["id"] == id {
                return message;
            }
            let mut seen = self.notifications.take();
            seen.push(message);
            self.notifications.set(seen);
        }
    }

    pub(super) fn take_notifications(&self) -> Vec<Value> {
        self.notifications.take()
    }

    /// The result of a tool.
    #[track_caller]
    pub(super) fn result(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = answer["result"].clone();
        assert!(result.is_object(), "{tool}: {answer}");
        result
    }

    /// The structured content of a call that succeeds.
    #[track_caller]
    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Value {
        let result = self.result(tool, arguments);
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
        let tools = self.request("tools/list", &json!({}))["result"]["tools"].clone();
        let listed = tools.as_array().and_then(|tools| tools.iter().find(|listed| listed["name"] == tool));
        let schema = &listed.expect("the tool is listed")["outputSchema"];
        let problem = mismatch(schema, schema, &result["structuredContent"]);
        assert_eq!(problem, None, "{tool} {arguments}: {result}");
        result["structuredContent"].clone()
    }

    /// The text of a call that succeeds.
    #[track_caller]
    pub(super) fn text(&self, tool: &str, arguments: &Value) -> String {
        let result = self.result(tool, arguments);
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
        text_of(&result)
    }

    /// The text of a call that fails.
    #[track_caller]
    pub(super) fn error(&self, tool: &str, arguments: &Value) -> String {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        text_of(&result)
    }

    /// Draws on the terminal of this pane.
    pub(super) fn draw(&self, pane: &str, rows: &str) {
        let tty = self.server.run(&["display-message", "-p", "-t", pane, "#{pane_tty}"]);
        let mut tty = OpenOptions::new().write(true).open(tty.trim()).expect("the terminal of the pane");
        tty.write_all(rows.replace('\n', "\r\n").as_bytes()).expect("drawn");
    }

    /// Shows a dialog in this pane, and waits until agtmux knows it. Returns its fingerprint.
    #[track_caller]
    pub(super) fn ask_permission(&self, pane: &str, command: &str) -> String {
        self.draw(pane, &format!("\x1b[2J\x1b[H{}", permission_dialog(command)));
        wait_for(&format!("a dialog about {command}"), SOON, || {
            let listing = list(&self.world);
            let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane).cloned();
            let dialog = item.unwrap_or_default()["dialog"].clone();
            let fingerprint = dialog["fingerprint"].as_str().map(str::to_owned);
            fingerprint.filter(|_| dialog.to_string().contains(command))
        })
    }

    /// Another agent, which only shows what the test draws. Returns its pane and the file with the keys that it got.
    #[track_caller]
    pub(super) fn other_agent(&self, session: &str) -> (String, PathBuf) {
        let keys = self.world.dir().join(format!("{session}.keys"));
        let program = self.world.shell_copy("claude");
        let command = format!("exec {} -c 'stty raw -echo; cat >>{}'", program.display(), keys.display());
        let pane = self.server.new_session(session, &command);
        self.server.run(&["resize-window", "-t", &format!("={session}:"), "-x", "120", "-y", "40"]);
        wait_for("the other agent to be listed", SOON, || {
            let listing = list(&self.world);
            let mut listed = items(&listing).iter();
            listed
                .any(|item| item["identity"]["pane_id"] == pane.as_str() && item["runtime_id"].is_string())
                .then_some(())
        });
        (pane, keys)
    }

    #[track_caller]
    pub(super) fn audit(&self) -> Vec<Value> {
        items(&agtmux(&self.world, &["audit", "--json"]).json()).clone()
    }

    pub(super) fn screen(&self, pane: &str) -> String {
        self.server.run(&["capture-pane", "-p", "-J", "-t", pane])
    }
}

fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}

fn pipe(world: &TestWorld, name: &str) -> PathBuf {
    let path = world.dir().join(format!("mcp.{name}"));
    let made: CommandResult = run(world.command("mkfifo").arg(&path));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    path
}

/// Reads JSON lines in a thread. Opening for writing, too, returns without a writer at the other end.
fn read_lines(path: &Path) -> Receiver<Value> {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("a pipe");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(file).lines() {
            let Ok(line) = line else { return };
            let message =
                serde_json::from_str(&line).unwrap_or_else(|error| json!({"bad": line, "why": error.to_string()}));
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

/// How a value differs from a schema: a missing field or a wrong type. Clients reject such a result.
fn mismatch(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return mismatch(root, root.pointer(name.trim_start_matches('#'))?, value);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let found: Vec<Option<String>> = choices.iter().map(|choice| mismatch(root, choice, value)).collect();
        return if found.contains(&None) { None } else { found.into_iter().next().flatten() };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = &schema["type"];
    let fits =
        allowed.is_null() || allowed == kind || allowed.as_array().is_some_and(|all| all.iter().any(|one| one == kind));
    let wrong_type = (!fits).then(|| format!("{value} is not {allowed}"));
    let missing = || {
        let required = schema["required"].as_array().filter(|_| value.is_object())?;
        let missing = required.iter().find(|name| value.get(name.as_str().unwrap_or_default()).is_none());
        missing.map(|name| format!("{name} is missing"))
    };
    let in_fields = || {
        let fields = value.as_object().into_iter().flatten();
        fields.into_iter().find_map(|(name, field)| mismatch(root, schema["properties"].get(name)?, field))
    };
    let in_items = || value.as_array()?.iter().find_map(|item| mismatch(root, &schema["items"], item));
    wrong_type.or_else(missing).or_else(in_fields).or_else(in_items)
}
