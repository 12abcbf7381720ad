//! How a run begins and ends, and how that is told.

use std::fs;

use agtmux_testkit::{wait_for, wait_until};
use serde_json::json;

use crate::agtmux::{SOON, kill, pid, start};
use crate::stage::{Stage, short};

#[test]
fn a_task_that_ends_at_once_is_told_in_full() {
    let stage = Stage::new();
    let task = stage.run("quick", "exit 7");
    let exited = stage.event(&task.window, "exited");
    assert_eq!(stage.told(&task.window), ["started", "exited with code 7"]);
    assert_eq!((&exited["run_id"], &exited["exit_code"]), (&json!(task.run), &json!(7)));
    assert_eq!(exited["message"], format!("tmux task {} (quick) exited with code 7", task.window));
    assert_eq!((&exited["level"], &exited["session"]), (&json!("warning"), &json!(stage.session)));
}

#[test]
fn an_exit_names_its_code() {
    let stage = Stage::new();
    for (name, code, level) in [("good", 0, "info"), ("bad", 2, "warning"), ("worst", 255, "warning")] {
        let task = stage.run(name, &format!("exit {code}"));
        let exited = stage.event(&task.window, "exited");
        assert_eq!(exited["message"], format!("tmux task {} ({name}) exited with code {code}", task.window));
        assert_eq!(
            (&exited["exit_code"], &exited["signal"], &exited["level"]),
            (&json!(code), &json!(null), &json!(level))
        );
    }
}

#[test]
fn death_by_signal_names_the_signal() {
    let stage = Stage::new();
    for signal in ["TERM", "KILL", "SEGV"] {
        let task = stage.run("t", &format!("kill -{signal} $$"));
        let exited = stage.event(&task.window, "exited");
        let exited = if exited["run_id"] == json!(task.run) {
            exited
        } else {
            wait_for("the end of this run", SOON, || {
                stage.events().into_iter().find(|e| e["run_id"] == json!(task.run) && e["type"] == "exited")
            })
        };
        assert_eq!(short(&exited), format!("exited with signal SIG{signal}"));
        assert_eq!((&exited["signal"], &exited["exit_code"]), (&json!(format!("SIG{signal}")), &json!(null)));
        assert_eq!(exited["level"], "warning");
    }
}

#[test]
fn recent_output_is_the_last_three_useful_lines() {
    let stage = Stage::new();
    let task = stage.run("t", "printf 'one\\ntwo\\n\\n  three\\n-----\\n\\033[31mfour\\033[0m\\n\\n'; exit 1");
    let exited = stage.event(&task.window, "exited");
    assert_eq!(exited["recent_output"], json!(["two", "  three", "four"]));
}

#[test]
fn two_exits_between_looks_are_two_events() {
    let stage = Stage::new();
    let run = |code: i32| {
        let run = stage.run("t", &format!("exit {code}"));
        // One that is replaced while it lives has not ended by itself.
        let is_dead = || stage.tmux.run(&["display-message", "-p", "-t", &run.pane, "#{pane_dead}"]) == "1";
        wait_until(&format!("the death of run {code}"), SOON, is_dead);
        run
    };
    let runs: Vec<_> = (10..16).map(run).collect();
    for (code, run) in (10..).zip(&runs) {
        let codes = || -> Vec<_> {
            let events = stage.events();
            let of_run = events.iter().filter(|e| e["run_id"] == json!(run.run) && e["type"] == "exited");
            of_run.map(|e| e["exit_code"].clone()).collect()
        };
        wait_until(&format!("the end of run {code}"), SOON, || !codes().is_empty());
        assert_eq!(codes(), [json!(code)]);
    }
    assert_eq!(stage.told(&runs[0].window).iter().filter(|words| *words == "started").count(), runs.len());
}

#[test]
fn what_happened_while_the_daemon_was_away_is_told_and_nothing_twice() {
    let stage = Stage::new();
    let wait = |name: &str, then: &str| format!("until [ -e {name} ]; do sleep 0.05; done; {then}");
    let (ends, asks, goes) = (
        stage.run("ends", &wait("go", "printf '\\a'; exit 5")),
        stage.run("asks", &wait("go", "printf 'Go on? [y/N] '; read answer")),
        stage.run("goes", "exec sleep 1000"),
    );
    let stays = stage.run("stays", "printf 'Stay? [y/N] '; read answer");
    stage.event(&stays.window, "input");
    kill(pid(&stage.world));
    fs::write(stage.file("go"), "").expect("written");
    stage.tmux.run(&["kill-window", "-t", &goes.window]);
    wait_until("the end of the first", SOON, || {
        stage.tmux.run(&["display-message", "-p", "-t", &ends.pane, "#{pane_dead}"]) == "1"
    });
    start(&stage.world);
    stage.event(&ends.window, "exited");
    stage.event(&asks.window, "input");
    stage.event(&goes.window, "disappeared");
    stage.witness();
    let rang = "sent a terminal notification";
    assert_eq!(stage.told(&ends.window), ["started", rang, &format!("{rang}, then exited with code 5")]);
    assert_eq!(stage.told(&asks.window), ["started", "is waiting for input: Go on? [y/N]"]);
    assert_eq!(stage.told(&goes.window), ["started", "disappeared from session"]);
    assert_eq!(stage.told(&stays.window), ["started", "is waiting for input: Stay? [y/N]"]);
}

#[test]
fn each_event_says_how_it_is_delivered() {
    let stage = Stage::new();
    let task = stage.run("t", "printf '\\a'; printf 'Go on? [y/N] '; read answer; exit 0");
    stage.event(&task.window, "input");
    stage.tmux.run(&["send-keys", "-t", &task.pane, "y", "Enter"]);
    stage.event(&task.window, "exited");
    let gone = stage.run("gone", "exec sleep 1000");
    stage.tmux.run(&["kill-window", "-t", &gone.window]);
    stage.event(&gone.window, "disappeared");
    let conversation = json!({"status": true, "notice": false, "message": true, "agent_turn": "followUp"});
    let notice = json!({"status": true, "notice": true, "message": false, "agent_turn": null});
    let events = stage.events();
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
    let said = stage.done(&["events", "--conversation", "--after", "0"]).text();
    assert!(!said.contains("started") && said.lines().count() == 4, "{said}");
}

#[test]
fn a_run_that_is_over_keeps_its_log_though_its_files_were_left_behind() {
    let stage = Stage::new();
    let task = stage.run("t", "until [ -e go ]; do sleep 0.05; done; echo said; exit 2");
    let spec = stage.world.state_dir().join("tasks").join(format!("{}.run", task.run));
    let written = fs::read(&spec).expect("there");
    fs::write(stage.file("go"), "").expect("written");
    stage.event(&task.window, "exited");
    // The daemon ended after it had stored the end, and before it came to the files.
    kill(pid(&stage.world));
    fs::write(&spec, written).expect("written");
    start(&stage.world);
    wait_until("the file is removed", SOON, || !spec.exists());
    let logs = stage.done(&["logs", "t", "--json"]).json();
    assert_eq!((&logs["lines"], logs["log"].is_string()), (&json!(["said"]), true));
    assert_eq!(stage.told(&task.window), ["started", "exited with code 2"]);
}

#[test]
fn a_task_is_started_again_as_it_was_started() {
    let stage = Stage::new();
    // Longer than what tmux takes in one call, and with what tmux leaves out of a line.
    let command = format!(": {}; printf '%s' 'a\\\nb' > out", "x".repeat(100 << 10));
    let task = stage.run("t", &command);
    for nth in 1..=2 {
        assert_eq!(stage.nth_event(&task.window, "exited", nth)["exit_code"], 0);
        assert_eq!(fs::read_to_string(stage.file("out")).expect("written"), "a\\\nb");
        fs::remove_file(stage.file("out")).expect("removed");
        stage.done(&["restart", "t"]);
    }
    let done = stage.task(&["run", "t", "--", &"x".repeat((127 << 10) + 1)]);
    assert!(done.code == Some(5) && done.stderr.contains("up to 127 KiB"), "{done:?}");
}

#[test]
fn death_by_a_real_time_signal_names_it() {
    let stage = Stage::new();
    let task = stage.run("t", "kill -36 $$");
    let exited = stage.event(&task.window, "exited");
    assert_eq!((&exited["signal"], &exited["exit_code"]), (&json!("SIGRTMIN+2"), &json!(null)));
}

#[test]
fn an_end_that_was_told_before_tmux_shows_it_is_not_waited_for() {
    let stage = Stage::new();
    let task = stage.run("t", "exec sleep 1000");
    // As the one who watches over it writes it down, while the pane lives on for a moment.
    let record = stage.world.state_dir().join(format!("tasks/{}.exit", task.run));
    let draft = stage.world.state_dir().join("draft");
    fs::write(&draft, r#"{"code":7,"signal":null,"hung_up":false,"unmarked":true}"#).expect("written");
    fs::rename(draft, record).expect("moved");
    stage.event(&task.window, "exited");
    let waited = stage.task(&["wait", "t", "--timeout", "20s"]);
    assert_eq!(waited.code, Some(1), "{}", waited.stderr);
    assert!(waited.text().contains("exited with code 7"), "{} {}", waited.text(), waited.stderr);
}

#[test]
fn a_task_that_was_stopped_is_said_to_have_ended_and_how() {
    let stage = Stage::new();
    let task = stage.run("t", "exec sleep 1000");
    assert_eq!(stage.done(&["stop", "t"]).text().trim(), format!("stopped {} t (SIGTERM)", task.window));
}

#[test]
fn an_event_has_these_fields_and_no_others() {
    let stage = Stage::new();
    let task = stage.run("t", "exit 0");
    stage.event(&task.window, "exited");
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
    for event in stage.events() {
        let mut names: Vec<&String> = event.as_object().expect("an object").keys().collect();
        names.sort();
        assert_eq!(names, fields);
        assert_eq!((&event["task"], &event["pane_id"]), (&json!("t"), &json!(task.pane)));
    }
}

#[test]
fn an_end_that_nobody_can_explain_has_an_unknown_code() {
    let stage = Stage::new();
    let task = stage.run("t", "exec sleep 1000");
    // As one that could neither wait for it nor learn of its signal would write it down.
    let record = stage.world.state_dir().join(format!("tasks/{}.exit", task.run));
    let draft = stage.world.state_dir().join("draft");
    fs::write(&draft, r#"{"code":null,"signal":null,"hung_up":false,"unmarked":true}"#).expect("written");
    fs::rename(draft, record).expect("moved");
    let exited = stage.event(&task.window, "exited");
    assert_eq!(exited["message"], format!("tmux task {} (t) exited with unknown code", task.window));
    assert_eq!(
        (&exited["exit_code"], &exited["signal"], &exited["level"]),
        (&json!(null), &json!(null), &json!("warning"))
    );
}
