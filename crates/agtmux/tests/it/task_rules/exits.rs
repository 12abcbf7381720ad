//! How runs start and end, and the events for that.

use std::fs;

use agtmux_testkit::agtmux::{SOON, kill, pid, start};
use agtmux_testkit::task_fixture::{TaskFixture, short_message};
use agtmux_testkit::{wait_for, wait_until};
use serde_json::{Value, json};

#[test]
fn a_task_that_ends_at_once_is_reported_in_full() {
    let fixture = TaskFixture::new();
    let task = fixture.run("quick", "exit 7");
    let exited = fixture.event(&task.window, "exited");
    assert_eq!(fixture.event_messages(&task.window), ["started", "exited with code 7"]);
    assert_eq!((&exited["run_id"], &exited["exit_code"]), (&json!(task.run), &json!(7)));
    assert_eq!(exited["message"], format!("tmux task {} (quick) exited with code 7", task.window));
    assert_eq!((&exited["level"], &exited["session"]), (&json!("warning"), &json!(fixture.session)));
}

#[test]
fn an_exit_reports_its_code() {
    let fixture = TaskFixture::new();
    for (name, code, level) in [("good", 0, "info"), ("bad", 2, "warning"), ("worst", 255, "warning")] {
        let task = fixture.run(name, &format!("exit {code}"));
        let exited = fixture.event(&task.window, "exited");
        assert_eq!(exited["message"], format!("tmux task {} ({name}) exited with code {code}", task.window));
        assert_eq!(
            (&exited["exit_code"], &exited["signal"], &exited["level"]),
            (&json!(code), &json!(null), &json!(level))
        );
    }
}

#[test]
fn death_by_signal_reports_the_signal() {
    let fixture = TaskFixture::new();
    for signal in ["TERM", "KILL", "SEGV"] {
        let task = fixture.run("t", &format!("kill -{signal} $$"));
        let exited = fixture.event(&task.window, "exited");
        let exited = if exited["run_id"] == json!(task.run) {
            exited
        } else {
            wait_for("the end of this run", SOON, || {
                fixture.events().into_iter().find(|e| e["run_id"] == json!(task.run) && e["type"] == "exited")
            })
        };
        assert_eq!(short_message(&exited), format!("exited with signal SIG{signal}"));
        assert_eq!((&exited["signal"], &exited["exit_code"]), (&json!(format!("SIG{signal}")), &json!(null)));
        assert_eq!(exited["level"], "warning");
    }
}

#[test]
fn recent_output_is_the_last_three_useful_lines() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "printf 'one\\ntwo\\n\\n  three\\n-----\\n\\033[31mfour\\033[0m\\n\\n'; exit 1");
    let exited = fixture.event(&task.window, "exited");
    assert_eq!(exited["recent_output"], json!(["two", "  three", "four"]));
}

#[test]
fn two_exits_between_listings_are_two_events() {
    let fixture = TaskFixture::new();
    let run = |code: i32| {
        let run = fixture.run("t", &format!("exit {code}"));
        // Wait for the exit: a live run would be ended by SIGHUP.
        let is_dead = || fixture.tmux.run(&["display-message", "-p", "-t", &run.pane, "#{pane_dead}"]) == "1";
        wait_until(&format!("the death of run {code}"), SOON, is_dead);
        run
    };
    let runs: Vec<_> = (10..16).map(run).collect();
    for (code, run) in (10..).zip(&runs) {
        let codes = || -> Vec<_> {
            let events = fixture.events();
            let of_run = events.iter().filter(|e| e["run_id"] == json!(run.run) && e["type"] == "exited");
            of_run.map(|e| e["exit_code"].clone()).collect()
        };
        wait_until(&format!("the end of run {code}"), SOON, || !codes().is_empty());
        assert_eq!(codes(), [json!(code)]);
    }
    assert_eq!(fixture.event_messages(&runs[0].window).iter().filter(|words| *words == "started").count(), runs.len());
}

#[test]
fn events_during_a_daemon_outage_are_reported_once() {
    let fixture = TaskFixture::new();
    let wait = |name: &str, then: &str| format!("until [ -e {name} ]; do sleep 0.05; done; {then}");
    let (ends, asks, goes) = (
        fixture.run("ends", &wait("go", "printf '\\a'; exit 5")),
        fixture.run("asks", &wait("go", "printf 'Go on? [y/N] '; read answer")),
        fixture.run("goes", "exec sleep 1000"),
    );
    let stays = fixture.run("stays", "printf 'Stay? [y/N] '; read answer");
    fixture.event(&stays.window, "input");
    kill(pid(&fixture.world));
    fs::write(fixture.file("go"), "").expect("written");
    fixture.tmux.run(&["kill-window", "-t", &goes.window]);
    wait_until("the end of the first", SOON, || {
        fixture.tmux.run(&["display-message", "-p", "-t", &ends.pane, "#{pane_dead}"]) == "1"
    });
    start(&fixture.world);
    fixture.event(&ends.window, "exited");
    fixture.event(&asks.window, "input");
    fixture.event(&goes.window, "disappeared");
    fixture.run_marker_task();
    let rang = "sent a terminal notification";
    assert_eq!(fixture.event_messages(&ends.window), ["started", rang, &format!("{rang}, then exited with code 5")]);
    assert_eq!(fixture.event_messages(&asks.window), ["started", "is waiting for input: Go on? [y/N]"]);
    assert_eq!(fixture.event_messages(&goes.window), ["started", "disappeared from session"]);
    assert_eq!(fixture.event_messages(&stays.window), ["started", "is waiting for input: Stay? [y/N]"]);
}

#[test]
fn each_event_says_how_it_is_delivered() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "printf '\\a'; printf 'Go on? [y/N] '; read answer; exit 0");
    fixture.event(&task.window, "input");
    fixture.tmux.run(&["send-keys", "-t", &task.pane, "y", "Enter"]);
    fixture.event(&task.window, "exited");
    let gone = fixture.run("gone", "exec sleep 1000");
    fixture.tmux.run(&["kill-window", "-t", &gone.window]);
    fixture.event(&gone.window, "disappeared");
    let conversation = json!({"status": true, "notice": false, "message": true, "agent_turn": "followUp"});
    let notice = json!({"status": true, "notice": true, "message": false, "agent_turn": null});
    let events = fixture.events();
    for (kind, expected) in [
        ("started", &notice),
        ("exited", &conversation),
        ("notify", &conversation),
        ("input", &conversation),
        ("disappeared", &conversation),
    ] {
        let event = events.iter().find(|event| event["type"] == kind).expect(kind);
        assert_eq!(&event["delivery"], expected, "{kind}");
        assert!(event["seq"].as_u64().is_some_and(|seq| seq > 0) && event["at"].is_string(), "{event}");
    }
    let seqs: Vec<_> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    let output = fixture.task_ok(&["events", "--conversation", "--after", "0"]).text();
    assert!(!output.contains("started") && output.lines().count() == 4, "{output}");
}

#[test]
fn a_harness_gets_one_line_of_json_per_event() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "printf 'one\\n'; printf '\\a'; exit 2");
    fixture.event(&task.window, "exited");
    let text =
        |output: String| output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>();
    let lines = text(fixture.task_ok(&["events", "--conversation", "--json", "--after", "0"]).text());
    let events = fixture.events();
    assert_eq!(lines.len(), events.len(), "{lines:?}");
    let seq = |items: &[Value]| items.iter().map(|item| item["seq"].as_u64()).collect::<Vec<_>>();
    assert_eq!(seq(&lines), seq(&events));
    assert_eq!((&lines[0]["notice"], &lines[0]["message"]), (&events[0]["message"], &Value::Null));
    let last = lines.last().expect("the exit");
    let body = format!(
        "tmux task {} (t) sent a terminal notification, then exited with code 2\nRecent output:\n  one",
        task.window
    );
    assert_eq!((&last["notice"], &last["message"]["body"]), (&Value::Null, &json!(body)));
    assert_eq!(last["message"]["text"], json!(format!("[tmux-task notification] {body}")));
    assert_eq!(last["message"]["customType"], "tmux-task-event");
    let details = &last["message"]["details"];
    assert_eq!((&details["source"], &details["notUserInput"]), (&json!("extension"), &json!(true)));
    let kinds = details["events"].as_array().expect("events").iter().map(|event| event["type"].clone());
    assert_eq!(kinds.collect::<Vec<_>>(), ["notify", "exited"], "the bell is part of the message of the exit");
}

#[test]
fn an_ended_run_keeps_its_log_when_its_files_remain() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "until [ -e go ]; do sleep 0.05; done; echo said; exit 2");
    let spec = fixture.world.state_dir().join("tasks").join(format!("{}.run", task.run));
    let written = fs::read(&spec).expect("there");
    fs::write(fixture.file("go"), "").expect("written");
    fixture.event(&task.window, "exited");
    // Simulate a daemon that died after storing the exit and before removing the files.
    kill(pid(&fixture.world));
    fs::write(&spec, written).expect("written");
    start(&fixture.world);
    wait_until("the file is removed", SOON, || !spec.exists());
    let logs = fixture.task_ok(&["logs", "t", "--json"]).json();
    assert_eq!((&logs["lines"], logs["log"].is_string()), (&json!(["said"]), true));
    assert_eq!(fixture.event_messages(&task.window), ["started", "exited with code 2"]);
}

#[test]
fn restart_uses_the_original_command() {
    let fixture = TaskFixture::new();
    // The command is longer than the limit of one tmux call. It contains a backslash-newline, which tmux would drop.
    let command = format!(": {}; printf '%s' 'a\\\nb' > out", "x".repeat(100 << 10));
    let task = fixture.run("t", &command);
    for nth in 1..=2 {
        assert_eq!(fixture.nth_event(&task.window, "exited", nth)["exit_code"], 0);
        assert_eq!(fs::read_to_string(fixture.file("out")).expect("written"), "a\\\nb");
        fs::remove_file(fixture.file("out")).expect("removed");
        fixture.task_ok(&["restart", "t"]);
    }
    let done = fixture.task(&["run", "t", "--", &"x".repeat((127 << 10) + 1)]);
    assert!(done.code == Some(5) && done.stderr.contains("at most 127 KiB"), "{done:?}");
}

#[test]
fn death_by_a_real_time_signal_reports_its_name() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "kill -36 $$");
    let exited = fixture.event(&task.window, "exited");
    assert_eq!((&exited["signal"], &exited["exit_code"]), (&json!("SIGRTMIN+2"), &json!(null)));
}

#[test]
fn wait_returns_when_the_exit_is_recorded_before_tmux_shows_it() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exec sleep 1000");
    // Write the exit record as `task-exec` does, while the pane is still alive.
    let record = fixture.world.state_dir().join(format!("tasks/{}.exit", task.run));
    let draft = fixture.world.state_dir().join("draft");
    fs::write(&draft, r#"{"code":7,"signal":null,"hung_up":false,"unmarked":true}"#).expect("written");
    fs::rename(draft, record).expect("moved");
    fixture.event(&task.window, "exited");
    let waited = fixture.task(&["wait", "t", "--timeout", "20s"]);
    assert_eq!(waited.code, Some(1), "{}", waited.stderr);
    assert!(waited.text().contains("exited with code 7"), "{} {}", waited.text(), waited.stderr);
}

#[test]
fn stop_prints_the_signal_that_ended_the_task() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exec sleep 1000");
    assert_eq!(fixture.task_ok(&["stop", "t"]).text().trim(), format!("stopped {} t (SIGTERM)", task.window));
}

#[test]
fn an_event_has_exactly_the_documented_fields() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exit 0");
    fixture.event(&task.window, "exited");
    let fields = [
        "at",
        "bell_count",
        "collapsed",
        "delivery",
        "exit_code",
        "level",
        "message",
        "pane_id",
        "prompt",
        "recent_output",
        "run_id",
        "seq",
        "session",
        "signal",
        "task",
        "type",
        "window_id",
    ];
    for event in fixture.events() {
        let mut names: Vec<&String> = event.as_object().expect("an object").keys().collect();
        names.sort();
        assert_eq!(names, fields);
        assert_eq!((&event["task"], &event["pane_id"]), (&json!("t"), &json!(task.pane)));
    }
}

#[test]
fn an_exit_without_code_or_signal_has_an_unknown_code() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exec sleep 1000");
    // Write a record without code and signal, as `task-exec` does when it cannot learn them.
    let record = fixture.world.state_dir().join(format!("tasks/{}.exit", task.run));
    let draft = fixture.world.state_dir().join("draft");
    fs::write(&draft, r#"{"code":null,"signal":null,"hung_up":false,"unmarked":true}"#).expect("written");
    fs::rename(draft, record).expect("moved");
    let exited = fixture.event(&task.window, "exited");
    assert_eq!(exited["message"], format!("tmux task {} (t) exited with unknown code", task.window));
    assert_eq!(
        (&exited["exit_code"], &exited["signal"], &exited["level"]),
        (&json!(null), &json!(null), &json!("warning"))
    );
}
