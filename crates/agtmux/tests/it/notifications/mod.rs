//! Notifications with real tmux, a real D-Bus session and a server that speaks the protocol of ntfy.

mod channels;
mod https;
mod rules;
mod terminals;

use std::time::Duration;

use agtmux_testkit::TestWorld;
use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent, SETTINGS};
use agtmux_testkit::agtmux::{SOON, agtmux, configure, health, run, world};
use agtmux_testkit::notification_service::NotificationService;
use agtmux_testkit::ntfy_server::NtfyServer;
use agtmux_testkit::{wait_for, wait_until};
use serde_json::Value;

/// How long after the start of a daemon an agent may do what is not told, with a margin.
const SETTLED: Duration = Duration::from_millis(3500);

/// A daemon with rules, and a server to which they send.
///
/// Rust drops the fields in this order: first the desktop, so that no process of the world is left.
struct NotifyFixture {
    desktop: Option<NotificationService>,
    fixture: ActionFixture,
    ntfy: NtfyServer,
}

impl NotifyFixture {
    /// Starts a daemon with these lines in `[notify]` and one rule, which has the states `waiting_approval` and
    /// `waiting_input` and these lines.
    fn start(settings: &str, rule: &str) -> Self {
        Self::start_in(world(), settings, rule)
    }

    /// Also starts a desktop. Skips the test and returns None if this machine cannot.
    fn start_with_desktop(world: TestWorld, settings: &str, rule: &str) -> Option<Self> {
        let desktop = NotificationService::start(&world)?;
        Some(Self { desktop: Some(desktop), ..Self::start_in(world, settings, rule) })
    }

    fn start_in(world: TestWorld, settings: &str, rule: &str) -> Self {
        let ntfy = NtfyServer::start();
        let states = "states = ['waiting_approval', 'waiting_input']";
        let dwell = if settings.contains("dwell") { "" } else { "dwell = '100ms'" };
        let text = format!(
            "{SETTINGS}[notify]\nntfy_url = '{}'\nntfy_topic = 'agents'\n{dwell}\ncooldown = '0s'\n{settings}\n\
             [[notify.rules]]\n{states}\n{rule}\n",
            ntfy.url()
        );
        configure(&world, &text);
        start_daemon(&world);
        let fixture = ActionFixture { server: world.tmux("default"), world };
        Self { desktop: None, fixture, ntfy }
    }

    /// Starts an idle agent, and waits until the daemon tells what agents do.
    fn agent(&self, session: &str) -> RecordingAgent {
        let agent = self.fixture.agent(session);
        wait_until_settled(&self.fixture.world);
        agent
    }

    fn ask(&self, agent: &RecordingAgent) {
        self.fixture.show_scene(agent, "permission", "waiting_approval");
    }

    fn answer(&self, agent: &RecordingAgent) {
        let done = agtmux(&self.fixture.world, &["respond", &agent.pane, "1"]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        self.fixture.wait_for_state(agent, "idle");
    }

    fn desktop(&self) -> &NotificationService {
        self.desktop.as_ref().expect("started with a desktop")
    }

    /// The lines of the notification log, as `event channel: reason`.
    fn log(&self) -> Vec<String> {
        let log = agtmux(&self.fixture.world, &["notify", "log", "--json"]).json();
        let items = log["items"].as_array().cloned().unwrap_or_default();
        let line = |item: &Value| {
            let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
            format!("{} {}: {}", text("event"), text("channel"), text("reason"))
        };
        items.iter().map(line).collect()
    }

    /// Waits until the log contains a line that begins so.
    #[track_caller]
    fn wait_for_log(&self, line: &str) {
        wait_for(&format!("'{line}' in the log"), SOON, || {
            let log = self.log();
            if log.iter().any(|logged| logged.starts_with(line)) { Ok(()) } else { Err(log) }
        });
    }

    /// Waits until the server has accepted so many messages and shows so many.
    #[track_caller]
    fn wait_for_ntfy(&self, published: usize, shown: usize) -> Vec<Value> {
        wait_for(&format!("{published} messages, {shown} of them open"), SOON, || {
            let counts = (self.ntfy.published().len(), self.ntfy.shown().len());
            if counts == (published, shown) { Ok(self.ntfy.published()) } else { Err((counts, self.log())) }
        })
    }
}

/// Starts the daemon in UTC, with a wall clock that the test can set.
fn start_daemon(world: &TestWorld) {
    let mut command = world.agtmux();
    command.env("TZ", "UTC").env("AGTMUX_TEST_CLOCK_FILE", world.dir().join("clock"));
    let done = run(command.args(["daemon", "start"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

fn wait_until_settled(world: &TestWorld) {
    let started = health(world)["started_at"].as_str().expect("a time").to_owned();
    let started: jiff::Timestamp = started.parse().expect("a time");
    let age = || jiff::Timestamp::now().duration_since(started).unsigned_abs();
    wait_until("the daemon to have watched for a while", SOON, || age() > SETTLED);
}
