//! The plain status page in a real browser.

use agtmux_testkit::agtmux::{SOON, agtmux, configure, start, stop, world};
use agtmux_testkit::web::{login_link, start_with_web};
use agtmux_testkit::{TestWorld, wait_for};

use crate::browser::Browser;

const HOSTILE: &str = "<img src=x onerror=alert(1)><script>document.title='owned'</script>";

/// The login link for the plain page.
fn plain_page_link(world: &TestWorld) -> String {
    login_link(world, &[]).replace("/#code", "/plain#code")
}

#[test]
fn the_page_shows_hostile_names_as_text_and_updates_itself() {
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session(HOSTILE, &world.fake_agent_command("claude"));
    let web = start_with_web(&world);
    let Some(browser) = Browser::start(&world) else { return };
    browser.open(&plain_page_link(&world));
    let shown = browser.wait_for_text("agents", "claude");
    assert!(shown.contains("onerror=alert(1)"), "{shown}");
    let emit = |state: &str| {
        let args = ["emit", "--pane", &pane, "--source", "hook", "--event-type", state, "--dedupe-key", state];
        assert_eq!(agtmux(&world, &args).code, Some(0));
    };
    emit("running");
    browser.wait_for_text("agents", "running");
    // A grouped session that shows the same pane is added and removed: the agent keeps its one row.
    let wait_for_locations = |count: usize| {
        wait_for("the locations of the agent", SOON, || {
            let [places, rows] = ["return agents.size", "return document.querySelectorAll('#agents tr').length"]
                .map(|script| browser.run(script).to_string());
            if (places.as_str(), rows.as_str()) == (&*count.to_string(), "1") { Ok(()) } else { Err((places, rows)) }
        });
    };
    tmux.run(&["new-session", "-d", "-s", "beside", "-t", &format!("={HOSTILE}")]);
    wait_for_locations(2);
    tmux.run(&["kill-session", "-t", "=beside"]);
    wait_for_locations(1);
    emit("waiting_input");
    browser.wait_for_text("summary", "1 waiting for you");
    let harmless = "return [document.title, document.querySelectorAll('tbody img, tbody script').length]";
    assert_eq!(browser.run(harmless).to_string(), r#"["agtmux",0]"#);
    assert_eq!(browser.console_errors(), Vec::<String>::new(), "the browser console has no errors");
    tmux.kill_server();
    browser.wait_for_text("summary", "0 agents");
    // A restarted daemon does not know this browser's login.
    stop(&world);
    browser.wait_for_text("summary", "does not respond");
    configure(&world, &format!("web.listen = '{}'\n", web.address));
    start(&world);
    browser.wait_for_text("summary", "your login has expired");
    browser.open(&plain_page_link(&world));
    browser.wait_for_text("summary", "0 agents");
}
