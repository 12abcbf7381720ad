//! What reaches the conversation, and when.

use std::collections::BTreeMap;
use std::fs;

use agtmux_testkit::agtmux::{SOON, kill, pid};
use agtmux_testkit::{skip_outside_soak, wait_for, wait_until};

use super::pi_fixture::{PI_TIMEOUT, PiFixture};

const MARK: &str = "[tmux-task notification]";

/// A command that ends with this code once the file exists.
fn until_file(file: &str, end: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.05; done; {end}")
}

#[test]
fn a_failed_task_is_one_message_and_one_turn() {
    let Some(pi) = PiFixture::start_core() else { return };
    pi.run_task("build", &until_file("go", "echo compiling; echo broken; exit 2"));
    pi.wait_for_screen("the status line", |screen| screen.contains("tmux: 1 task"));
    let event = &pi.task_events()[0];
    let window = event["window_id"].as_str().expect("an id").to_owned();
    pi.wait_for_screen("the notice", |screen| screen.contains(&format!("tmux task {window} (build) started")));
    assert_eq!(pi.request_count(MARK), 0, "a start makes no turn");
    fs::write(pi.project_file("go"), "").expect("written");
    let messages = pi.wait_for_messages(1);
    let text = format!("{MARK} tmux task {window} (build) exited with code 2\nRecent output:\n  compiling\n  broken");
    assert_eq!(messages[0]["content"], text.as_str());
    let details = &messages[0]["details"];
    assert_eq!((&details["source"], &details["notUserInput"]), (&"extension".into(), &true.into()));
    assert_eq!((&details["level"], &details["sessionName"]), (&"warning".into(), &event["session"]));
    let id = pi.entries()[0]["id"].clone();
    assert_eq!(details["sessionId"], id, "the id of the Pi session");
    assert_eq!(details["events"].as_array().map(Vec::len), Some(1), "{details}");
    pi.wait_for_request(MARK);
    pi.wait_for_idle();
    assert_eq!(pi.request_count(MARK), 1, "one turn");
}

#[test]
fn tasks_that_end_during_a_turn_are_one_message_after_it() {
    let Some(pi) = PiFixture::start() else { return };
    for name in ["a", "b", "c"] {
        pi.run_task(name, &until_file("go", "exit 0"));
        pi.wait_for_idle();
    }
    pi.type_line("SLOW 4");
    pi.wait_for_screen("the answer to begin", |screen| screen.contains("word2"));
    fs::write(pi.project_file("go"), "").expect("written");
    wait_until("all tasks have ended", SOON, || {
        pi.task_events().iter().filter(|event| event["type"] == "exited").count() == 3
    });
    assert_eq!(pi.task_messages().len(), 0, "the turn is not interrupted");
    let messages = pi.wait_for_messages(1);
    assert_eq!(messages[0]["content"].as_str().map(|text| text.matches("exited with code 0").count()), Some(3));
    pi.wait_for_request(MARK);
    assert_eq!(pi.request_count(MARK), 1, "one turn");
}

#[test]
fn a_task_that_ends_during_an_aborted_turn_starts_no_turn() {
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("t", &until_file("go", "exit 3"));
    pi.wait_for_idle();
    pi.type_line("SLOW 20");
    pi.wait_for_screen("the answer to begin", |screen| screen.contains("word2"));
    fs::write(pi.project_file("go"), "").expect("written");
    wait_until("the task has ended", SOON, || pi.task_events().iter().any(|event| event["type"] == "exited"));
    pi.sandbox.press("Escape");
    let messages = pi.wait_for_messages(1);
    assert!(messages[0]["content"].as_str().is_some_and(|text| text.contains("exited with code 3")), "{messages:?}");
    // The next prompt is the next request, and it contains the message.
    pi.prompt("SAY hello");
    assert_eq!(pi.request_count(MARK), 0, "no turn against the will of the user");
    assert!(pi.wait_for_request("SAY hello").body.contains("exited with code 3"));
    assert_eq!(pi.task_messages().len(), 1);
}

#[test]
fn a_bell_and_a_prompt_are_messages() {
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("ask", &until_file("go", "printf \"\\\\a\"; sleep 1; printf \"Proceed? [y/N] \"; read answer"));
    fs::write(pi.project_file("go"), "").expect("written");
    let text = |n: usize| pi.wait_for_messages(n)[n - 1]["content"].as_str().unwrap_or_default().to_owned();
    assert!(text(1).contains("(ask) sent a terminal notification"), "{}", text(1));
    assert!(text(2).contains("(ask) is waiting for input: Proceed? [y/N]"), "{}", text(2));
}

#[test]
fn events_are_delivered_once_although_the_daemon_is_killed() {
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("t", &until_file("go", "exit 4"));
    pi.wait_for_idle();
    kill(pid(pi.sandbox.world()));
    fs::write(pi.project_file("go"), "").expect("written");
    let messages = pi.wait_for_messages(1);
    assert!(messages[0]["content"].as_str().is_some_and(|text| text.contains("exited with code 4")), "{messages:?}");
    pi.wait_for_request(MARK);
    pi.run_task("u", "exit 5");
    let messages = pi.wait_for_messages(2);
    assert!(messages[1]["content"].as_str().is_some_and(|text| text.contains("exited with code 5")), "{messages:?}");
}

/// An extension that answers slowly to each prompt, so that a message could start a run before the prompt does.
const SLOW_INPUT: &str = r#"
import { existsSync } from "node:fs";
export default function (pi) {
	pi.on("before_agent_start", async (event, ctx) => {
		if (event.prompt !== "SAY held") return;
		while (!existsSync(`${ctx.cwd}/continue`)) await new Promise((resolve) => setTimeout(resolve, 20));
	});
}
"#;

#[test]
fn a_message_does_not_displace_a_prompt_that_is_being_prepared() {
    let Some(pi) = PiFixture::open() else { return };
    pi.add_extension("slow-input.ts", SLOW_INPUT);
    pi.launch("pi");
    // The model answers slowly to a message with this output, so that a prompt would meet its run.
    pi.run_task("t", &until_file("go", "echo SLOW 4; exit 6"));
    pi.wait_for_idle();
    let session = pi.task_events()[0]["session"].as_str().expect("a name").to_owned();
    pi.type_line("SAY held");
    fs::write(pi.project_file("go"), "").expect("written");
    wait_until("the task has ended", SOON, || pi.has_exited("t"));
    // The notice of a later task shows that the message of the first one is due.
    let (started, _, error) =
        pi.sandbox.run_agtmux(&["task", "run", "--session", &session, "later", "--", "sleep 1000"]);
    assert!(started, "{error}");
    pi.wait_for_screen("the notice", |screen| screen.contains("(later) started"));
    fs::write(pi.project_file("continue"), "").expect("written");
    pi.wait_for_request("SAY held");
    pi.wait_for_messages(1);
    pi.wait_for_request(MARK);
    assert_eq!((pi.request_count("SAY held"), pi.request_count(MARK)), (1, 1));
}

/// How often each event has been delivered, by its sequence number.
fn deliveries(pi: &PiFixture) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for message in pi.task_messages() {
        for event in message["details"]["events"].as_array().into_iter().flatten() {
            *counts.entry(event["seq"].as_u64().expect("a number")).or_default() += 1;
        }
    }
    counts
}

#[test]
fn two_hundred_ends_are_delivered_exactly_once_through_all_interruptions() {
    if skip_outside_soak() {
        return;
    }
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("first", "exit 0");
    pi.wait_for_messages(1);
    pi.wait_for_idle();
    let session = pi.task_events()[0]["session"].as_str().expect("a name").to_owned();
    for round in 0..20 {
        for n in 0..10 {
            let (name, command) = (format!("t{round}-{n}"), format!("sleep 0.{n}; exit {n}"));
            let (done, _, error) =
                pi.sandbox.run_agtmux(&["task", "run", "--session", &session, &name, "--", &command]);
            assert!(done, "{error}");
            if n == 3 && round % 5 != 4 {
                pi.type_line("SLOW 2");
            }
        }
        match round % 5 {
            0 => pi.sandbox.press("Escape"),
            1 => {
                pi.type_line("SAY queued");
                pi.sandbox.press("M-Up");
                pi.sandbox.press("Escape");
                // The text is back in the box.
                pi.sandbox.press("C-u");
            }
            2 => kill(pid(pi.sandbox.world())),
            3 => {
                pi.wait_for_idle();
                pi.type_line("/reload");
            }
            _ => {
                pi.wait_for_idle();
                pi.quit();
                pi.launch("clear; pi -c");
            }
        }
        pi.wait_for_idle();
    }
    let ends = || -> Vec<u64> {
        let (_, text, _) = pi.sandbox.run_agtmux(&["task", "events", "--all", "--json", "--after", "0"]);
        let events: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let items = events["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter(|event| event["type"] == "exited").filter_map(|event| event["seq"].as_u64()).collect()
    };
    wait_for(
        "all tasks to end",
        PI_TIMEOUT,
        || if ends().len() == 201 { Ok(()) } else { Err(ends().len().to_string()) },
    );
    let wanted: BTreeMap<u64, usize> = ends().into_iter().map(|seq| (seq, 1)).collect();
    wait_for("all messages", PI_TIMEOUT, || {
        let missing: Vec<_> = wanted.keys().filter(|seq| !deliveries(&pi).contains_key(seq)).copied().collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("missing {missing:?}\n{}", pi.screen())) }
    });
    pi.prompt("SAY done");
    pi.wait_for_idle();
    assert_eq!(deliveries(&pi), wanted, "each end once");
}
