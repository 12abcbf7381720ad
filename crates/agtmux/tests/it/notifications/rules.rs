//! What is held back: what existed before, what a person views, what is over soon, and what happens in quiet hours.

use jiff::{SignedDuration, Timestamp};

use super::*;

#[test]
fn what_existed_at_the_start_is_not_told() {
    let notify = NotifyFixture::start("", "channels = ['ntfy']");
    let (first, second) = (notify.agent("first"), notify.agent("second"));
    notify.ask(&first);
    notify.wait_for_ntfy(1, 1);
    agtmux_testkit::agtmux::stop(&notify.fixture.world);
    // The daemon does not see this dialog open.
    second.draw_scene("permission");
    start_daemon(&notify.fixture.world);
    notify.fixture.wait_for_state(&second, "waiting_approval");
    notify.wait_for_log("held : it was so when the daemon began to watch");
    wait_until_settled(&notify.fixture.world);
    notify.answer(&second);
    notify.ask(&second);
    notify.wait_for_ntfy(2, 2);
}

#[test]
fn nothing_is_told_about_a_pane_that_a_person_uses_until_they_stop() {
    let notify = NotifyFixture::start("in_view = '4s'", "channels = ['ntfy']");
    let (agent, other) = (notify.agent("work"), notify.agent("other"));
    let client = notify.fixture.server.attach("work");
    client.type_keys(b"x");
    notify.ask(&agent);
    client.type_keys(b"x");
    notify.ask(&other);
    // Another pane is not in view.
    let message = notify.wait_for_ntfy(1, 1).remove(0);
    assert!(message["message"].as_str().is_some_and(|text| text.contains("other:0.0")), "{message}");
    notify.wait_for_log("held : you use a tmux client that shows the pane");
    let messages = notify.wait_for_ntfy(2, 2);
    assert!(messages[1]["message"].as_str().is_some_and(|text| text.contains("work:0.0")), "{messages:?}");
}

#[test]
fn a_dialog_that_is_answered_at_once_is_not_told() {
    let notify = NotifyFixture::start("dwell = '1h'", "channels = ['ntfy']").with_agent_that_was_answered();
    notify.wait_for_log("held : it was over before the dwell time");
    let log = agtmux(&notify.fixture.world, &["notify", "log"]).text();
    assert!(log.contains("claude asks for approval, work:0.0"), "{log}");
    assert_eq!(notify.ntfy.published(), [Value::Null; 0]);
}

impl NotifyFixture {
    fn with_agent_that_was_answered(self) -> Self {
        let agent = self.agent("work");
        self.ask(&agent);
        self.answer(&agent);
        self
    }
}

#[test]
fn quiet_hours_end_with_one_digest_of_what_still_waits() {
    let hour = SignedDuration::from_hours(1);
    let at = |offset: SignedDuration| (Timestamp::now() + offset).strftime("%H:%M").to_string();
    let quiet = format!("quiet_hours = '{}-{}'", at(-hour), at(hour));
    let notify = NotifyFixture::start(&quiet, "channels = ['ntfy']");
    let agents = ["first", "second", "third", "fourth"].map(|session| notify.agent(session));
    for agent in &agents[..3] {
        notify.ask(agent);
    }
    wait_for("three held notices", SOON, || {
        let log = notify.log();
        let held = log.iter().filter(|line| line.starts_with("held : quiet hours")).count();
        if held == 3 { Ok(()) } else { Err(log) }
    });
    notify.answer(&agents[0]);
    // Now the quiet hours are over. The change of another agent wakes the daemon before its next look at the clock.
    let draft = notify.fixture.world.dir().join("clock.new");
    std::fs::write(&draft, (hour * 2).as_secs().to_string()).expect("written");
    std::fs::rename(draft, notify.fixture.world.dir().join("clock")).expect("replaced");
    agents[3].draw_scene("running");
    notify.fixture.wait_for_state(&agents[3], "running");
    let digest = notify.wait_for_ntfy(1, 1).remove(0);
    assert_eq!(digest["title"], "After quiet hours: 2 waiting");
    let text = digest["message"].as_str().expect("text");
    assert!(text.lines().count() == 2 && text.contains("second:0.0") && text.contains("third:0.0"), "{text}");
    // Later notices are sent as usual.
    notify.ask(&agents[0]);
    notify.wait_for_ntfy(2, 2);
}
