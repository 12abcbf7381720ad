//! The status page in a real browser.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_browser.rs"]
mod browser;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/trial_web.rs"]
mod web;

use agtmux::{SOON, agtmux, configure, start, stop, world};
use agtmux_testkit::wait_for;
use browser::Browser;
use web::{link, open};

const HOSTILE: &str = "<img src=x onerror=alert(1)><script>document.title='owned'</script>";

#[test]
fn hostile_names_are_shown_as_text_and_changes_come_by_themselves() {
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session(HOSTILE, &world.fake_agent_command("claude"));
    let web = open(&world);
    let Some(browser) = Browser::start(&world) else { return };
    browser.open(&link(&world, &[]));
    let shown = browser.wait_for_text("agents", "claude");
    assert!(shown.contains("onerror=alert(1)"), "{shown}");
    let told = |state: &str| {
        let args = ["emit", "--pane", &pane, "--source", "hook", "--event-type", state, "--dedupe-key", state];
        assert_eq!(agtmux(&world, &args).code, Some(0));
    };
    told("running");
    browser.wait_for_text("agents", "running");
    // A session that shows the same pane comes and goes: the agent has one row, and keeps it.
    let places = |count: usize| {
        wait_for("the places of the agent", SOON, || {
            let [places, rows] = ["return agents.size", "return document.querySelectorAll('#agents tr').length"]
                .map(|script| browser.run(script).to_string());
            if (places.as_str(), rows.as_str()) == (&*count.to_string(), "1") { Ok(()) } else { Err((places, rows)) }
        });
    };
    tmux.run(&["new-session", "-d", "-s", "beside", "-t", &format!("={HOSTILE}")]);
    places(2);
    tmux.run(&["kill-session", "-t", "=beside"]);
    places(1);
    told("waiting_input");
    browser.wait_for_text("summary", "1 waiting for you");
    let harmless = "return [document.title, document.querySelectorAll('tbody img, tbody script').length]";
    assert_eq!(browser.run(harmless).to_string(), r#"["agtmux",0]"#);
    assert_eq!(browser.console_errors(), Vec::<String>::new(), "nothing of it was even tried");
    tmux.kill_server();
    browser.wait_for_text("summary", "0 agents");
    // Another daemon knows nothing of this browser.
    stop(&world);
    browser.wait_for_text("summary", "does not answer");
    configure(&world, &format!("web.listen = '{}'\n", web.address));
    start(&world);
    browser.wait_for_text("summary", "not let in any more");
    browser.open(&link(&world, &[]));
    browser.wait_for_text("summary", "0 agents");
}
