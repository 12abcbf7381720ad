//! What the channels get: sent once, withdrawn, escalated, and failures of a channel.

use std::fs;
use std::time::Instant;

use agtmux_testkit::agtmux::{agtmux, script, world};
use agtmux_testkit::ntfy_server::{NtfyBehaviour, NtfyServer};
use agtmux_testkit::{wait_for, wait_until};
use serde_json::Value;

use super::*;

/// The notices that the program of the channel `command` got.
fn command_notices(world: &TestWorld) -> Vec<Value> {
    let text = fs::read_to_string(world.home().join("notices")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("one line of JSON per notice")).collect()
}

#[test]
fn every_channel_tells_a_dialog_once_and_withdraws_it_when_it_is_answered() {
    let world = world();
    let program = script(&world, "told", "cat >>\"$HOME/notices\"");
    let settings = format!("command = '{}'\nwebhook_url = 'http://127.0.0.1:9/'", program.display());
    let rule = "channels = ['desktop', 'ntfy', 'command']";
    let Some(notify) = NotifyFixture::start_with_desktop(world, &settings, rule) else { return };
    let desktop = notify.desktop();
    let agent = notify.agent("work");
    notify.ask(&agent);

    let message = notify.wait_for_ntfy(1, 1).remove(0);
    assert_eq!(message["title"], "claude asks for approval");
    let text = message["message"].as_str().expect("text");
    assert!(text.starts_with("Do you want to proceed? Bash command rm -r build\nwork:0.0, since "), "{text}");
    let shown = wait_for("a notification of the desktop", SOON, || desktop.open().first().cloned());
    assert_eq!((shown.app.as_str(), shown.summary.as_str()), ("agtmux", "claude asks for approval"));
    assert_eq!(shown.body, text);
    let told = wait_for("the program", SOON, || command_notices(&notify.fixture.world).first().cloned());
    assert_eq!((&told["kind"], &told["text"]), (&"notify".into(), &message["message"]));
    assert_eq!(told["agents"][0]["pane_id"], agent.pane.as_str());
    // The same dialog, drawn again, is not told again.
    agent.draw_scene("permission");
    notify.answer(&agent);

    notify.wait_for_ntfy(1, 0);
    wait_until("the desktop to close the notification", SOON, || desktop.open().is_empty());
    assert_eq!(desktop.all().len(), 1);
    let told = wait_for("the withdrawal", SOON, || {
        let told = command_notices(&notify.fixture.world);
        if told.len() == 2 { Ok(told) } else { Err(told) }
    });
    assert_eq!(told[1]["kind"], "withdraw");
    assert_eq!(told[1]["notice_id"], told[0]["notice_id"]);
    for event in ["sent", "withdrawn"] {
        for channel in ["desktop", "ntfy", "command"] {
            let line = format!("{event} {channel}: ");
            assert_eq!(notify.log().iter().filter(|logged| **logged == line).count(), 1, "{:?}", notify.log());
        }
    }
}

#[test]
fn the_next_daemon_withdraws_and_does_not_repeat() {
    let rule = "channels = ['desktop', 'ntfy']";
    let Some(notify) = NotifyFixture::start_with_desktop(world(), "", rule) else { return };
    let desktop = notify.desktop();
    let agent = notify.agent("work");
    notify.ask(&agent);
    notify.wait_for_ntfy(1, 1);
    wait_until("a notification of the desktop", SOON, || desktop.open().len() == 1);
    let stored = notify.fixture.world.state_dir().join("notify-open.json");
    let is_stored = || fs::read_to_string(&stored).is_ok_and(|text| text.contains("\"owner\""));
    wait_until("the stored notice", SOON, is_stored);
    agtmux_testkit::agtmux::stop(&notify.fixture.world);
    start_daemon(&notify.fixture.world);
    notify.fixture.wait_for_state(&agent, "waiting_approval");
    wait_until_settled(&notify.fixture.world);
    assert_eq!((notify.ntfy.published().len(), desktop.all().len()), (1, 1), "{:?}", notify.log());
    notify.answer(&agent);
    notify.wait_for_ntfy(1, 0);
    wait_until("the desktop to close the notification", SOON, || desktop.open().is_empty());
}

#[test]
fn an_unanswered_dialog_escalates_to_a_second_channel() {
    let world = world();
    let program = script(&world, "told", "cat >>\"$HOME/notices\"");
    let settings = format!("command = '{}'", program.display());
    let rule = "channels = ['command']\nescalate_after = '2s'\nescalate_to = ['ntfy']";
    let notify = NotifyFixture::start_in(world, &settings, rule);
    let agent = notify.agent("work");
    notify.ask(&agent);
    wait_until("the first notice", SOON, || command_notices(&notify.fixture.world).len() == 1);
    assert_eq!(notify.ntfy.published(), [Value::Null; 0]);
    let message = notify.wait_for_ntfy(1, 1).remove(0);
    assert_eq!(message["sequence_id"], command_notices(&notify.fixture.world)[0]["notice_id"]);
    notify.answer(&agent);
    notify.wait_for_ntfy(1, 0);
    wait_until("the withdrawal", SOON, || command_notices(&notify.fixture.world).len() == 2);
    // The next dialog is answered in time.
    notify.ask(&agent);
    wait_until("the second notice", SOON, || command_notices(&notify.fixture.world).len() == 3);
    notify.answer(&agent);
    wait_until("its withdrawal", SOON, || command_notices(&notify.fixture.world).len() == 4);
    assert_eq!(notify.ntfy.published().len(), 1);
}

#[test]
fn a_channel_that_hangs_or_fails_delays_nothing_else() {
    let webhook = NtfyServer::start();
    webhook.behave(NtfyBehaviour::Hangs);
    let world = world();
    let program = script(&world, "hangs", "echo started >>\"$HOME/hangs\"; exec sleep 1000");
    let command = program.display();
    let settings = format!("timeout = '30s'\ncommand = '{command}'\nwebhook_url = '{}'", webhook.url());
    let rule = "channels = ['webhook', 'command', 'desktop', 'ntfy']";
    let notify = NotifyFixture::start_in(world, &settings, rule);
    let agent = notify.agent("work");
    let began = Instant::now();
    for round in 1..=2 {
        notify.ask(&agent);
        notify.wait_for_ntfy(round, 1);
        notify.answer(&agent);
        notify.wait_for_ntfy(round, 0);
    }
    wait_until("the webhook to hang", SOON, || webhook.refused() == 1);
    wait_until("the program to hang", SOON, || notify.fixture.world.home().join("hangs").exists());
    assert!(began.elapsed() < Duration::from_secs(30), "two dialogs were told before the first channel gave up");
    notify.wait_for_log("failed desktop: cannot connect to the session bus");
    let waiting = ["sent webhook", "sent command", "failed webhook", "failed command"];
    assert!(!notify.log().iter().any(|line| waiting.iter().any(|waiting| line.starts_with(waiting))));
}

#[test]
fn a_server_that_is_down_for_a_moment_gets_the_notice_later() {
    let notify = NotifyFixture::start("", "channels = ['ntfy']");
    notify.ntfy.behave(NtfyBehaviour::Fails);
    let agent = notify.agent("work");
    notify.ask(&agent);
    notify.wait_for_log("failed ntfy: '127.0.0.1' answered 500 Internal Server Error; sent again in 3 s");
    notify.ntfy.behave(NtfyBehaviour::Works);
    notify.wait_for_ntfy(1, 1);
}

#[test]
fn a_test_notice_tells_which_channels_work() {
    let notify = NotifyFixture::start("ntfy_token_file = '/nonexistent/token'", "channels = ['ntfy', 'bell']");
    let world = &notify.fixture.world;
    notify.fixture.agent("work");
    let done = agtmux(world, &["notify", "test"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.text().contains("bell: failed: no tmux client is attached"), "{done:?}");
    assert!(done.text().contains("ntfy: failed: cannot read '/nonexistent/token'"), "{done:?}");
    let done = agtmux(world, &["notify", "test", "webhook"]);
    assert_eq!(done.code, Some(5), "{done:?}");
    assert!(done.stderr.contains("notify.webhook_url is not set"), "{done:?}");
    let _client = notify.fixture.server.attach("work");
    wait_until("a client", SOON, || agtmux(world, &["notify", "test", "bell"]).code == Some(0));
    let log = agtmux(world, &["notify", "log"]).text();
    assert!(log.contains("agtmux test") && log.contains("no tmux client is attached"), "{log}");
}

#[test]
fn ntfy_gets_the_token_of_its_file() {
    let world = world();
    let token = world.home().join("token");
    fs::write(&token, "tk_secret\n").expect("written");
    let settings = format!("ntfy_token_file = '{}'", token.display());
    let notify = NotifyFixture::start_in(world, &settings, "channels = ['ntfy']");
    notify.ntfy.require_token("tk_secret");
    let done = agtmux(&notify.fixture.world, &["notify", "test", "--json"]).json();
    assert_eq!(done["items"][0]["delivered"], true, "{done}");
    assert_eq!(notify.ntfy.published().len(), 1);
    notify.ntfy.require_token("tk_other");
    let done = agtmux(&notify.fixture.world, &["notify", "test"]);
    assert!(done.text().contains("answered 403"), "{done:?}");
    let log = fs::read_to_string(notify.fixture.world.state_dir().join("notify.jsonl")).unwrap_or_default();
    assert!(!log.contains("tk_secret"), "{log}");
}

#[test]
fn without_rules_a_test_tells_how_to_add_one() {
    let world = world();
    start_daemon(&world);
    let done = agtmux(&world, &["notify", "test"]);
    assert_eq!(done.code, Some(5), "{done:?}");
    assert!(done.stderr.contains("[[notify.rules]]"), "{done:?}");
    assert!(agtmux(&world, &["notify", "log"]).stderr.contains("no notices are recorded"));
}
