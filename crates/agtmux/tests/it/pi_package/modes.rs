//! Pi without its terminal interface: RPC and JSON mode.

use std::fs;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::{wait_for, wait_until};
use serde_json::{Value, json};

use super::pi_fixture::{PACKAGE, PI_TIMEOUT, PiFixture};

const MARK: &str = "[tmux-task notification]";

/// The lines of JSON that Pi has written into a file of the project.
fn lines(pi: &PiFixture, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(pi.project_file(file)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn json_mode_starts_tasks_and_ends() {
    let Some(pi) = PiFixture::open() else { return };
    let prompt = format!("RUN {PACKAGE}/skills/tmux-task-manager/tmux-task-run.sh t -- 'exit 9'");
    pi.sandbox.type_text(&format!("pi --mode json \"{prompt}\" >out.json; echo ended-$?"));
    pi.sandbox.press("Enter");
    pi.wait_for_screen("the end of Pi", |screen| screen.contains("ended-0"));
    wait_until("the task has ended", SOON, || pi.has_exited("t"));
    assert_eq!((pi.task_messages().len(), pi.request_count(MARK)), (0, 0));
    let lines = lines(&pi, "out.json");
    assert!(lines.iter().any(|line| line["type"] == "agent_end"), "{lines:?}");
}

#[test]
fn rpc_mode_has_notices_a_status_messages_and_the_list() {
    let Some(pi) = PiFixture::open_core() else { return };
    let task = "until [ -e go ]; do sleep 0.05; done; exit 9";
    let prompt = format!("RUN {PACKAGE}/skills/tmux-task-manager/tmux-task-run.sh t -- '{task}'");
    let send = |message: &str| {
        let line = json!({"type": "prompt", "message": message}).to_string() + "\n";
        let file = fs::OpenOptions::new().create(true).append(true).open(pi.project_file("in.json"));
        std::io::Write::write_all(&mut file.expect("opened"), line.as_bytes()).expect("written");
    };
    fs::write(pi.project_file("in.json"), "").expect("written");
    pi.sandbox.type_text("(tail -f in.json & echo $! >tail.pid; wait) | pi --mode rpc >out.json; echo ended-$?");
    pi.sandbox.press("Enter");
    let wait_for_line = |what: &str, is_it: &dyn Fn(&Value) -> bool| {
        wait_for(what, PI_TIMEOUT, || {
            let lines = lines(&pi, "out.json");
            lines.iter().find(|line| is_it(line)).cloned().ok_or(format!("{lines:#?}"))
        })
    };
    let text_of = |line: &Value| line.to_string();
    send(&prompt);
    wait_for_line("the status", &|line| text_of(line).contains("tmux: 1 task"));
    wait_for_line("the notice", &|line| line["method"] == "notify" && text_of(line).contains("(t) started"));
    wait_for_line("the end of the turn", &|line| line["type"] == "agent_settled" || line["type"] == "agent_end");
    send("/tmux-tasks");
    wait_for_line("the list", &|line| line["method"] == "notify" && text_of(line).contains(" t running"));
    fs::write(pi.project_file("go"), "").expect("written");
    wait_for_line("the message", &|line| {
        line["type"] == "message_end" && text_of(line).contains("(t) exited with code 9")
    });
    pi.wait_for_request(MARK);
    let tail = fs::read_to_string(pi.project_file("tail.pid")).expect("a pid");
    let tail: u32 = tail.trim().parse().expect("a pid");
    agtmux_testkit::agtmux::kill(tail);
    pi.wait_for_screen("the end of Pi", |screen| screen.contains("ended-0"));
    assert_eq!((pi.task_messages().len(), pi.request_count(MARK)), (1, 1));
}
