//! The agent, and the three ways to send it a text.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use agtmux_testkit::real_agents::install::install;
use agtmux_testkit::real_agents::options::PaneSize;
use agtmux_testkit::real_agents::poll_until;
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::{EvidenceMode, ReportedState, ScreenState};
use agtmux_testkit::real_agents::{self, ConformanceAgent, LaunchMode};

const STEP_TIMEOUT: Duration = Duration::from_secs(45);

fn claude() -> &'static dyn ConformanceAgent {
    real_agents::ALL[0]
}

/// The directories of the agent's programs, or the reason why it is not installed.
pub(crate) fn programs() -> Result<Vec<PathBuf>, String> {
    let (package, version) = claude().package();
    install(claude().registry(), package, version).map(|installed| installed.program_dirs)
}

/// A unique text of this size.
pub(crate) fn text(kind: &str, n: usize, size: usize) -> String {
    let mut text = format!("{kind} {n}:");
    let mut line = text.len();
    let mut word = n * 31 + kind.len();
    while text.len() < size {
        word = (word * 7919 + 13) % 99_991;
        let next = format!("w{word}");
        let blank = if line > 60 { '\n' } else { ' ' };
        line = if line > 60 { 0 } else { line + next.len() + 1 };
        text.push(blank);
        text += &next;
    }
    text
}

pub(crate) struct SendBench {
    sandbox: AgentSandbox,
}

/// One send: the duration of the command and its result.
pub(crate) struct BenchSend {
    pub(crate) wall: Duration,
    pub(crate) verified: String,
    pub(crate) by: String,
}

impl SendBench {
    pub(crate) fn start(program_dirs: &[PathBuf], mode: EvidenceMode) -> Self {
        let agent = claude();
        let size = PaneSize(120, 40);
        let options = SandboxOptions { agent, program_dirs, mode, trusted: true, size, save_hook_payloads: false };
        let sandbox = AgentSandbox::open(&options);
        sandbox.launch(agent, &LaunchMode::Plain);
        let ready = agent.screen_pattern(ScreenState::Ready).expect("the agent has a ready screen");
        poll_until(STEP_TIMEOUT, || ready.matches(&sandbox.capture()).then_some(())).expect("the agent starts");
        let bench = Self { sandbox };
        bench.wait_until_idle();
        bench
    }

    /// Runs `agtmux send`, as a script would.
    pub(crate) fn send(&self, text: &str) -> BenchSend {
        let mut command = self.sandbox.agtmux_command();
        command.args(["send", &self.sandbox.pane, "--json", "--text", text]).stdin(Stdio::null());
        let start = Instant::now();
        let output = command.output().expect("agtmux can be started");
        let wall = start.elapsed();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let field = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
        self.wait_for_arrival(text);
        BenchSend { wall, verified: field("verified"), by: field("by") }
    }

    /// Sends by hand: paste, a fixed wait, Enter. There is no proof of delivery.
    pub(crate) fn send_by_hand(&self, text: &str, wait: Duration) -> Duration {
        let start = Instant::now();
        self.paste(text);
        std::thread::sleep(wait);
        self.sandbox.press("Enter");
        let wall = start.elapsed();
        self.wait_for_arrival(text);
        wall
    }

    /// The time that the agent itself needs from Enter to its request to the model. The time includes the agent's own
    /// hook, which the agent calls before this request.
    pub(crate) fn measure_agent(&self, text: &str) -> Duration {
        self.paste(text);
        std::thread::sleep(Duration::from_millis(500));
        let start = Instant::now();
        self.sandbox.press("Enter");
        self.wait_for_arrival(text) - start
    }

    /// Pastes from a file, because a large text does not fit into an argument.
    fn paste(&self, text: &str) {
        let file = self.sandbox.workspace.home.join("typed");
        std::fs::write(&file, text).expect("the directory is writable");
        self.sandbox.server.run(&["load-buffer", "-b", "typed", &file.to_string_lossy()]);
        self.sandbox.server.run(&["paste-buffer", "-p", "-r", "-d", "-b", "typed", "-t", &self.sandbox.pane]);
    }

    /// Waits for the model request with this text and for the agent to become idle. Returns the time of the request.
    fn wait_for_arrival(&self, text: &str) -> Instant {
        let contains_text = |parts: &[String]| parts.iter().any(|part| part == text);
        let found = poll_until(STEP_TIMEOUT, || {
            let request = self
                .sandbox
                .model
                .requests()
                .into_iter()
                .find(|request| !request.is_side_request && contains_text(&request.prompt_parts))?;
            request.answer_ended.map(|_| request.at)
        });
        self.wait_until_idle();
        found.expect("the text arrives unchanged")
    }

    fn wait_until_idle(&self) {
        let state = || self.sandbox.watch.state_reports().last().map(|report| report.state);
        let is_idle = || matches!(state(), Some(ReportedState::Idle | ReportedState::Completed));
        poll_until(STEP_TIMEOUT, || is_idle().then_some(())).expect("the agent becomes idle");
        // Check the screen too, not only the state that agtmux reports.
        let is_running = |screen: &str| screen.contains("esc to interrupt");
        poll_until(STEP_TIMEOUT, || (!is_running(&self.sandbox.capture().screen)).then_some(()))
            .expect("the agent becomes idle");
    }
}
