//! What the pages show and do.

use agtmux_testkit::TestWorld;
use agtmux_testkit::agtmux::{SOON, agtmux, items, list, world};
use agtmux_testkit::dialog_agent::permission_dialog;
use agtmux_testkit::{skip, wait_for, wait_until};
use serde_json::Value;

use super::{accessibility_findings, go, open, save_screenshot};
use crate::browser::Browser;

const HOSTILE: &str = "<img src=x onerror=alert(1)><script>document.title='owned'</script>";

/// Fake agents in several states, with the screens of the demo.
struct Fleet {
    world: TestWorld,
}

/// A pane of the fleet: its session, its agent and the demo scene that it shows.
const PANES: [(&str, &str, &str, &str); 7] = [
    ("api", "claude", "claude-approval.txt", "✳ Fix the login test"),
    ("api", "codex", "codex-running.txt", "⠋ Add rate limits | api"),
    ("web", "gemini", "gemini-idle.txt", "◇  Ready (web)"),
    ("web", "claude", "claude-idle.txt", "✳ Update the docs"),
    ("infra", "codex", "codex-question.txt", "[ ! ] Action Required | Rotate keys | infra"),
    ("infra", "gemini", "gemini-running.txt", "✦  Working… (infra)"),
    ("infra", "claude", "claude-running.txt", "✳ Upgrade the cluster"),
];

impl Fleet {
    fn start() -> Self {
        let world = world();
        let tmux = world.tmux("default");
        let scenes = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/demo/scenes");
        let mut sessions = std::collections::BTreeSet::new();
        for (session, agent, scene, title) in PANES {
            let program = world.shell_copy(agent);
            let project = world.home().join("src/shop").join(session);
            std::fs::create_dir_all(&project).expect("the world is writable");
            let show = format!(
                "printf '\\033]2;%s\\007\\033[2J\\033[H' '{title}'; cat '{scenes}/{scene}'; stty -echo; cat >/dev/null"
            );
            let show = show.replace('\\', "\\\\").replace('"', "\\\"");
            let command = format!("cd {} && exec {} -c \"{show}\"", project.display(), program.display());
            if sessions.insert(session) {
                tmux.new_session(session, &command);
                tmux.run(&["rename-window", "-t", &format!("={session}:"), agent]);
            } else {
                tmux.run(&["new-window", "-d", "-n", agent, "-t", &format!("={session}:"), &command]);
            }
        }
        Self { world }
    }

    fn wait_until_known(&self) {
        wait_for("the states of the agents", SOON, || {
            let listing = list(&self.world);
            let waiting = items(&listing).iter().filter(|item| item["dialog"].is_object()).count();
            if (waiting, items(&listing).len()) == (2, PANES.len()) { Ok(()) } else { Err(listing) }
        });
    }

    fn runtime(&self, session: &str, agent: &str) -> String {
        let listing = list(&self.world);
        let found = items(&listing)
            .iter()
            .find(|item| item["identity"]["session_name"] == session && item["agent_type"] == agent)
            .unwrap_or_else(|| panic!("no {agent} in {session}: {listing}"));
        found["runtime_id"].as_str().expect("an id").to_owned()
    }
}

/// Shows every page on a phone and on a desk, light and dark. None has a serious finding of axe or is wider than the
/// screen.
#[test]
fn all_pages_fit_the_phone_and_the_desk_and_are_accessible() {
    let fleet = Fleet::start();
    let task = ["task", "run", "build", "--session", "tasks", "--", "sh", "-c", "echo compiling; echo done"];
    let Some((_, browser)) = open(&fleet.world, &[]) else { return };
    fleet.wait_until_known();
    let started = agtmux(&fleet.world, &task);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let agent = format!("#/agent/{}", fleet.runtime("api", "claude"));
    let pages = [
        ("inbox", "#/inbox", "document.querySelectorAll('[data-option]').length >= 5"),
        ("agents", "#/agents", "document.querySelectorAll('a.row').length === 7"),
        ("agent", &agent, "document.querySelector('.terminal-rows')?.innerText.includes('Do you want to proceed?')"),
        ("tasks", "#/tasks", "document.body.innerText.includes('Completed')"),
        ("task", "#/task/tasks/build", "document.querySelector('.log')?.innerText.includes('compiling')"),
        ("hosts", "#/hosts", "document.body.innerText.includes('This machine')"),
        ("audit", "#/audit", "document.querySelectorAll('.row').length > 1"),
    ];
    for (layout, width, height, is_phone, scheme) in
        [("phone", 390, 844, true, "light"), ("desk", 1280, 800, false, "light"), ("dark", 390, 844, true, "dark")]
    {
        browser.set_screen(width, height, is_phone, scheme);
        for (name, address, shown) in pages {
            // The other pages have the same colours.
            if layout == "dark" && !matches!(name, "inbox" | "agent") {
                continue;
            }
            go(&browser, address);
            browser.wait_until(name, &format!("return {shown}"));
            assert_fits(&browser, &format!("{name} on the {layout}"));
            save_screenshot(&browser, &format!("{name}-{layout}"));
            // The desk has the same parts as the phone, in other places.
            if layout != "desk" {
                let Some(findings) = accessibility_findings(&browser) else { return };
                assert!(findings.is_empty(), "{name} on the {layout}: {findings:#?}");
            }
        }
    }
    assert_eq!(browser.console_errors(), Vec::<String>::new());
}

/// The page does not scroll sideways, and every button and link is large enough for a finger.
#[track_caller]
fn assert_fits(browser: &Browser, page: &str) {
    let wide = browser.run("return document.documentElement.scrollWidth - innerWidth");
    assert!(wide.as_i64().is_some_and(|wide| wide <= 0), "{page} is {wide} px too wide");
    let small = browser.run(
        "return [...document.querySelectorAll('button, main a, .nav li a, input, textarea, label')]\
         .filter((e) => e.checkVisibility() && !e.closest('dialog') && e.type !== 'radio' && e.type !== 'checkbox')\
         .map((e) => [e.outerHTML.slice(0, 90), e.getBoundingClientRect()]).filter(([, box]) => box.height > 0 && box.height < 38)\
         .map(([html, box]) => [html, box.height])",
    );
    assert_eq!(small, Value::Array(Vec::new()), "{page} has targets that are too small");
}

#[test]
fn hostile_texts_are_shown_as_text() {
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session(HOSTILE, &world.fake_agent_command("claude"));
    tmux.run(&["rename-window", "-t", &pane, HOSTILE]);
    let Some((_, browser)) = open(&world, &[]) else { return };
    wait_until("the agent", SOON, || items(&list(&world)).iter().any(|item| item["agent_type"] == "claude"));
    let tty = tmux.run(&["display-message", "-p", "-t", &pane, "#{pane_tty}"]);
    let long = "<b>x".repeat(20_000);
    let dialog = permission_dialog(&format!("echo '{HOSTILE}' \u{202e}live\u{200b}"));
    let output = format!("\x1b]2;{HOSTILE}\x07{long}\x1b[2J\x1b[H{dialog}").replace('\n', "\r\n");
    std::fs::write(tty.trim(), output).expect("the pane's terminal");
    browser.set_screen(390, 844, true, "light");
    browser
        .wait_until("the command", "return document.querySelector('.subject')?.innerText.includes('onerror=alert(1)')");
    let runtime = items(&list(&world))[0]["runtime_id"].as_str().expect("an id").to_owned();
    for page in [
        "#/inbox".to_owned(),
        "#/agents".into(),
        format!("#/agent/{runtime}"),
        "#/audit".into(),
        "#/task/%3Cb%3E/%3Ci%3E".into(),
    ] {
        go(&browser, &page);
        if page.starts_with("#/agent/") {
            let shown = "return document.querySelector('.terminal-rows')?.innerText.includes('onerror=alert(1)')";
            browser.wait_until("the screen", shown);
        }
        assert_fits(&browser, &page);
        let harmless = "return [document.querySelectorAll('main img, main script, main b, main i').length, document.title.includes('owned'),\
             /[\\u202e\\u200b\\u001b]/.test(document.body.innerText)]";
        assert_eq!(browser.run(harmless).to_string(), "[0,false,false]", "{page}");
    }
    // The daemon refuses the name of the task in the address of the last page.
    let is_expected = |entry: &String| entry.contains("/v1/tasks/logs?");
    let refused: Vec<String> = browser.console_errors().into_iter().filter(|entry| !is_expected(entry)).collect();
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn a_read_only_browser_sees_everything_and_has_no_buttons_that_act() {
    let fleet = Fleet::start();
    let Some((_, browser)) = open(&fleet.world, &["--read-only"]) else { return };
    fleet.wait_until_known();
    browser.wait_until("the questions", "return document.querySelectorAll('.labels').length === 2");
    assert_eq!(browser.run("return document.querySelectorAll('[data-option], textarea').length"), 0);
    go(&browser, &format!("#/agent/{}", fleet.runtime("api", "claude")));
    browser.wait_until("the screen", "return document.querySelector('.terminal-rows')?.innerText.includes('proceed')");
    let acting =
        "return document.querySelectorAll('textarea, .keys, [data-option], [aria-label=\"End this agent…\"]').length";
    assert_eq!(browser.run(acting), 0);
}

/// Types a text and a key into a real pane, and shows the proof.
#[test]
fn the_send_box_and_the_key_bar_type_into_the_pane() {
    let world = world();
    let agent = agtmux_testkit::fake_agent::FakeAgent::start(&world, "work");
    let Some((_, browser)) = open(&world, &[]) else { return };
    wait_until("the agent", SOON, || items(&list(&world)).iter().any(|item| item["runtime_id"].is_string()));
    let runtime = items(&list(&world))[0]["runtime_id"].as_str().expect("an id").to_owned();
    browser.set_screen(390, 844, true, "light");
    go(&browser, &format!("#/agent/{runtime}"));
    browser.wait_until("the send box", "return document.querySelector('.send-box textarea:enabled') !== null");
    browser.run(
        "const field = document.querySelector('.send-box textarea'); field.value = 'fix the login';\
         field.dispatchEvent(new InputEvent('input', {bubbles: true}))",
    );
    browser.click(".button.send");
    browser.wait_until(
        "the proof",
        "return document.querySelector('.compose .outcome').innerText.startsWith('Submitted, ')",
    );
    assert_eq!(agent.submitted_texts(), ["fix the login"]);
    browser.click("[data-key='Escape']");
    wait_until("the key", SOON, || agent.input_so_far().ends_with(b"\x1b"));
    // Killing asks first.
    browser.click("[aria-label='End this agent…']");
    browser.wait_until("the question", "return document.querySelector('dialog[open]')?.innerText.includes('claude')");
    browser.click("dialog .danger:nth-child(3)");
    wait_until("the end of the agent", SOON, || items(&list(&world)).is_empty());
    browser.wait_until("the end", "return document.body.innerText.includes('This agent is gone')");
}

/// Checks the TypeScript programs, and runs their unit tests.
#[test]
fn the_unit_tests_of_the_dashboard_pass() {
    let script = super::repository_root().join("scripts/web");
    let done = std::process::Command::new(script).arg("test").stdin(std::process::Stdio::null()).output();
    let done = done.expect("the script can be started");
    let output = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if done.status.code() == Some(77) {
        return skip(&output);
    }
    assert!(done.status.success(), "{output}");
}
