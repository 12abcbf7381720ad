//! A real Pi in a pane, with the package of this checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::soak;
use agtmux_testkit::model::ModelRequest;
use agtmux_testkit::real_agents::options::PaneSize;
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, ConformanceAgent, install};
use agtmux_testkit::{skip, skip_outside_soak, wait_for, wait_until};
use serde_json::{Value, json};

/// Pi starts slowly on a busy machine.
pub(super) const PI_TIMEOUT: Duration = Duration::from_secs(60);

/// Pi has drawn the effect of Enter after this time.
const ENTER_INTERVAL: Duration = Duration::from_secs(2);

/// A starting Pi has put the line back after this time.
const PUT_BACK_TIME: Duration = Duration::from_millis(400);

/// The directory of the package.
pub(super) const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../extensions/pi");

pub(super) struct PiFixture {
    pub(super) sandbox: AgentSandbox,
}

impl PiFixture {
    /// Pi with the package, started and ready for a prompt. Reports the test as skipped and returns None if Pi cannot be
    /// installed. The newest version runs only in the soak tests.
    #[track_caller]
    pub(super) fn start() -> Option<Self> {
        let fixture = Self::open()?;
        fixture.launch("pi");
        Some(fixture)
    }

    /// Like [`start`](Self::start), but Pi is not started yet.
    #[track_caller]
    pub(super) fn open() -> Option<Self> {
        if is_newest() && !soak() {
            skip_outside_soak();
            return None;
        }
        Self::open_core()
    }

    /// Like [`start`](Self::start), for tests that always run with both versions.
    #[track_caller]
    pub(super) fn start_core() -> Option<Self> {
        let fixture = Self::open_core()?;
        fixture.launch("pi");
        Some(fixture)
    }

    /// Like [`start_core`](Self::start_core), but Pi is not started yet.
    #[track_caller]
    pub(super) fn open_core() -> Option<Self> {
        let agent = pi();
        let version = if is_newest() { agent.other_versions()[0] } else { agent.package().1 };
        let program_dirs = match install::install_agent(agent, version) {
            Ok(installed) => installed.program_dirs,
            Err(why) => {
                skip(&why);
                return None;
            }
        };
        let sandbox = AgentSandbox::open(&SandboxOptions {
            agent,
            program_dirs: &program_dirs,
            mode: EvidenceMode::NoHooks,
            trusted: true,
            size: PaneSize(120, 40),
            save_hook_payloads: false,
        });
        let fixture = Self { sandbox };
        fs::remove_file(fixture.pi_dir().join("extensions/approval.ts")).expect("the sandbox wrote it");
        fixture.use_packages(&[Path::new(PACKAGE)]);
        Some(fixture)
    }

    /// Writes the settings of the package.
    pub(super) fn write_settings(&self, settings: &Value) {
        fs::write(self.pi_dir().join("agtmux.json"), settings.to_string()).expect("the world is writable");
    }

    pub(super) fn pi_dir(&self) -> PathBuf {
        self.sandbox.workspace.home.join(".pi/agent")
    }

    /// Writes these packages into the settings of Pi.
    pub(super) fn use_packages(&self, packages: &[&Path]) {
        self.change_pi_settings("packages", &json!(packages));
    }

    pub(super) fn change_pi_settings(&self, key: &str, value: &Value) {
        let file = self.pi_dir().join("settings.json");
        let mut settings: Value = serde_json::from_slice(&fs::read(&file).expect("settings")).expect("JSON");
        settings[key] = value.clone();
        fs::write(file, settings.to_string()).expect("the world is writable");
    }

    /// New panes, such as the shared terminal, start bash.
    pub(super) fn use_bash_in_panes(&self) {
        self.sandbox.server.run(&["set-option", "-g", "default-shell", "/bin/bash"]);
    }

    /// Installs an extension beside the package.
    pub(super) fn add_extension(&self, name: &str, source: &str) {
        fs::write(self.pi_dir().join("extensions").join(name), source).expect("the world is writable");
    }

    /// Starts Pi with this command line and waits until it takes a prompt.
    #[track_caller]
    pub(super) fn launch(&self, command: &str) {
        self.sandbox.type_text(command);
        self.sandbox.press("Enter");
        self.wait_for_screen("Pi to be ready", |screen| screen.contains("/128k") && screen.contains(" mock-1"));
    }

    #[track_caller]
    pub(super) fn wait_for_screen(&self, what: &str, mut shows: impl FnMut(&str) -> bool) {
        wait_for(what, PI_TIMEOUT, || {
            let screen = self.sandbox.capture().screen;
            if shows(&screen) { Ok(()) } else { Err(screen) }
        });
    }

    /// Types a prompt and waits until the model is asked.
    #[track_caller]
    pub(super) fn prompt(&self, text: &str) {
        self.type_line(text);
        self.wait_for_request(text);
    }

    /// Types a line and presses Enter until Pi has taken it. While Pi starts, it puts the line back into the box.
    #[track_caller]
    pub(super) fn type_line(&self, text: &str) {
        self.sandbox.paste(text);
        // A narrow box breaks the text into rows.
        let shown: String = text.chars().filter(|c| !c.is_whitespace()).take(30).collect();
        self.wait_for_screen("the typed text", |screen| input_box(screen).contains(&shown));
        let (mut pressed, mut gone): (Option<Instant>, Option<Instant>) = (None, None);
        self.wait_for_screen("the line to be taken", |screen| {
            if input_box(screen).contains(&shown) {
                gone = None;
                if pressed.is_none_or(|at| at.elapsed() > ENTER_INTERVAL) {
                    self.sandbox.press("Enter");
                    pressed = Some(Instant::now());
                }
                return false;
            }
            gone.get_or_insert_with(Instant::now).elapsed() > PUT_BACK_TIME
        });
    }

    /// Waits for a request whose prompt has a line that begins with this text, and for the end of the answer.
    #[track_caller]
    pub(super) fn wait_for_request(&self, text: &str) -> ModelRequest {
        wait_for(&format!("the answer to '{text}'"), PI_TIMEOUT, || {
            let found = self.sandbox.model.requests().into_iter().find(|request| request.asks(text));
            found.filter(|request| request.answer_ended.is_some()).ok_or_else(|| self.sandbox.capture().screen)
        })
    }

    /// Waits until this many requests with such a prompt have been answered, and the turn has ended.
    #[track_caller]
    pub(super) fn wait_for_turns(&self, text: &str, count: usize) {
        wait_for(&format!("{count} answers to '{text}'"), PI_TIMEOUT, || {
            let requests = self.sandbox.model.requests();
            let answered =
                requests.iter().filter(|request| request.asks(text) && request.answer_ended.is_some()).count();
            if answered == count { Ok(()) } else { Err(format!("{answered}\n{}", self.screen())) }
        });
        self.wait_for_idle();
    }

    /// How many requests have a prompt with a line that begins with this text.
    pub(super) fn request_count(&self, text: &str) -> usize {
        self.sandbox.model.requests().iter().filter(|request| request.asks(text)).count()
    }

    /// Starts a task as the skill tells the agent: with the helper, by its path.
    #[track_caller]
    pub(super) fn run_task(&self, name: &str, command: &str) {
        let helper = format!("{PACKAGE}/skills/tmux-task-manager/tmux-task-run.sh");
        let line = format!("RUN {helper} {name} -- '{command}'");
        self.type_line(&line);
        wait_for("the task to be started", PI_TIMEOUT, || {
            let started = self.task_events().iter().any(|event| event["type"] == "started" && event["task"] == name);
            if started { Ok(()) } else { Err(self.sandbox.capture().screen) }
        });
    }

    pub(super) fn task_events(&self) -> Vec<Value> {
        let (done, text, _) = self.sandbox.run_agtmux(&["task", "events", "--all", "--json", "--after", "0"]);
        let answer: Value = if done { serde_json::from_str(&text).expect("JSON") } else { Value::Null };
        answer["items"].as_array().cloned().unwrap_or_default()
    }

    /// The entries of all session files, oldest session first.
    pub(super) fn entries(&self) -> Vec<Value> {
        let mut files = session_files(&self.pi_dir().join("sessions"));
        files.sort();
        let lines = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect::<String>();
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The task messages in all session files.
    pub(super) fn task_messages(&self) -> Vec<Value> {
        self.messages("tmux-task-event")
    }

    /// The messages of this type in all session files.
    pub(super) fn messages(&self, custom_type: &str) -> Vec<Value> {
        let entries = self.entries().into_iter();
        entries.filter(|entry| entry["type"] == "custom_message" && entry["customType"] == custom_type).collect()
    }

    /// Waits until the conversation has this many task messages.
    #[track_caller]
    pub(super) fn wait_for_messages(&self, count: usize) -> Vec<Value> {
        self.wait_for_messages_of("tmux-task-event", count)
    }

    #[track_caller]
    pub(super) fn wait_for_messages_of(&self, custom_type: &str, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} messages {custom_type}"), PI_TIMEOUT, || {
            let messages = self.messages(custom_type);
            if messages.len() == count { Ok(messages) } else { Err(format!("{messages:#?}\n{}", self.screen())) }
        })
    }

    /// The texts that tools have returned to the model, oldest first, and whether each is an error.
    pub(super) fn tool_results(&self) -> Vec<(String, bool)> {
        let messages = self.entries().into_iter().map(|entry| entry["message"].clone());
        let results = messages.filter(|message| message["role"] == "toolResult");
        let text = |message: &Value| message["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        results.map(|message| (text(&message), message["isError"] == true)).collect()
    }

    /// Lets the model call a tool, and waits for the end of the turn. Returns the result of the tool.
    #[track_caller]
    pub(super) fn tool_result(&self, prompt: &str) -> (String, bool) {
        let before = self.tool_results().len();
        self.type_line(prompt);
        let results = wait_for(&format!("the result of '{prompt}'"), PI_TIMEOUT, || {
            let results = self.tool_results();
            if results.len() > before { Ok(results) } else { Err(self.screen()) }
        });
        self.wait_for_idle();
        results[before].clone()
    }

    /// Waits until no turn runs.
    #[track_caller]
    pub(super) fn wait_for_idle(&self) {
        self.wait_for_screen("the end of the turn", |screen| !screen.contains(" Working"));
    }

    #[track_caller]
    pub(super) fn quit(&self) {
        self.type_line("/quit");
        wait_until("Pi has ended", PI_TIMEOUT, || self.sandbox.shell_is_ready());
    }

    /// Whether the task has ended and its event is stored.
    pub(super) fn has_exited(&self, task: &str) -> bool {
        self.task_events().iter().any(|event| event["type"] == "exited" && event["task"] == task)
    }

    pub(super) fn screen(&self) -> String {
        self.sandbox.capture().screen
    }

    pub(super) fn project_file(&self, name: &str) -> PathBuf {
        self.sandbox.workspace.project.join(name)
    }
}

/// The text between the last two borders of the screen, without blanks.
fn input_box(screen: &str) -> String {
    let is_border = |line: &&str| line.starts_with('─');
    let from_last = screen.lines().rev().skip_while(|line| !is_border(line)).skip(1);
    let rows: String = from_last.take_while(|line| !is_border(line)).collect::<Vec<_>>().into_iter().rev().collect();
    rows.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether to use the newer version of Pi. `scripts/test` runs the tests of this directory a second time with it.
fn is_newest() -> bool {
    std::env::var_os("AGTMUX_TEST_PI").is_some_and(|version| version == "newest")
}

fn pi() -> &'static dyn ConformanceAgent {
    *real_agents::ALL.iter().find(|agent| agent.name() == "pi").expect("Pi is a tested agent")
}

fn session_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { session_files(&path) } else { vec![path] }).collect()
}
