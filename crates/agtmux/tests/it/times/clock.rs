//! The clock of the machine is set while the daemon runs or between two daemons.

use std::fs;

use agtmux_testkit::action_fixture::SETTINGS;
use agtmux_testkit::agtmux::{SOON, agtmux, configure, items, list, run, soak, stop, world};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::seeded_random::SeededRandom;
use agtmux_testkit::{TestWorld, wait_for};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

const DAY: i64 = 86_400;
const STEPS: [i64; 4] = [-120, 120, -DAY, DAY];
/// Each scene of the fake agent with the state that it shows.
const SCENES: [(&str, &str); 3] = [("idle", "idle"), ("running", "running"), ("dialog", "waiting_approval")];

/// A fake agent, and a daemon whose wall clock a test can set.
struct ClockWorld {
    agent: FakeAgent,
    world: TestWorld,
    /// By how many seconds the daemon's wall clock is ahead.
    ahead: i64,
}

impl ClockWorld {
    fn new(ahead: i64) -> Self {
        let world = world();
        configure(&world, SETTINGS);
        let agent = FakeAgent::start(&world, "work");
        let mut clock_world = Self { agent, world, ahead };
        clock_world.set_clock(ahead);
        clock_world.start();
        clock_world
    }

    fn set_clock(&mut self, ahead: i64) {
        let (draft, file) = (self.world.dir().join("clock.new"), self.world.dir().join("clock"));
        fs::write(&draft, ahead.to_string()).expect("the world is writable");
        fs::rename(&draft, &file).expect("the world is writable");
        self.ahead = ahead;
    }

    #[track_caller]
    fn start(&self) {
        let mut command = self.world.agtmux();
        command.env("AGTMUX_TEST_CLOCK_FILE", self.world.dir().join("clock")).args(["daemon", "start"]);
        let started = run(&mut command);
        assert_eq!(started.code, Some(0), "{}", started.stderr);
    }

    /// Sets the clock, while the daemon runs or between two daemons.
    fn step(&mut self, by: i64, restarts: bool) {
        if restarts {
            stop(&self.world);
        }
        self.set_clock(self.ahead + by);
        if restarts {
            self.start();
        }
    }

    fn item(&self) -> Value {
        let listing = list(&self.world);
        items(&listing).iter().find(|item| item["agent_type"] == "claude").cloned().unwrap_or_default()
    }

    fn explain(&self) -> String {
        agtmux(&self.world, &["explain", &self.agent.pane]).text()
    }

    #[track_caller]
    fn wait_for_state(&self, state: &str) -> Value {
        wait_for(&format!("the agent to be {state}"), SOON, || {
            let item = self.item();
            if item["state"] == state { Ok(item) } else { Err(self.explain()) }
        })
    }

    /// The time of the daemon's clock.
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(self.ahead)
    }

    /// Waits until the daemon follows the clock. The state and its age must be as before.
    #[track_caller]
    fn assert_unchanged(&self, before: &Value, step: i64) {
        let expected = since(before) + SignedDuration::from_secs(step);
        let item = wait_for("the daemon to follow the clock", SOON, || {
            let item = self.item();
            let is_moved =
                item["since"].is_string() && since(&item).duration_since(expected).abs() < SignedDuration::from_secs(2);
            if is_moved { Ok(item) } else { Err(format!("{item}, expected since {expected}\n{}", self.explain())) }
        });
        // The confidence may rise meanwhile, because the screen has settled.
        for field in ["state", "runtime_id"] {
            assert_eq!(item[field], before[field], "after a step of {step} s: {}", self.explain());
        }
        assert!(since(&item) <= self.now(), "a state began in the future: {item}");
    }
}

fn since(item: &Value) -> Timestamp {
    item["since"].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no time in {item}"))
}

#[test]
fn a_dialog_is_shown_after_a_daemon_with_a_wrong_clock_was_restarted() {
    for ahead in STEPS {
        let mut machine = ClockWorld::new(ahead);
        let before = machine.wait_for_state("idle");
        machine.step(-ahead, true);
        machine.assert_unchanged(&before, -ahead);
        machine.agent.draw_scene("dialog");
        machine.wait_for_state("waiting_approval");
        machine.agent.draw_scene("running");
        machine.wait_for_state("running");
    }
}

#[test]
fn states_stay_right_through_random_steps_of_the_clock_and_restarts() {
    let (rounds, mut random) = (if soak() { 300 } else { 10 }, SeededRandom::new());
    let mut machine = ClockWorld::new(0);
    let mut before = machine.wait_for_state("idle");
    for round in 0..rounds {
        let (step, restarts) = (STEPS[random.below(STEPS.len())], random.one_in(3));
        machine.step(step, restarts);
        machine.assert_unchanged(&before, step);
        let (scene, state) = SCENES[random.below(SCENES.len())];
        println!("round {round}: a step of {step} s, restart: {restarts}, then {scene}");
        machine.agent.draw_scene(scene);
        before = machine.wait_for_state(state);
    }
}
