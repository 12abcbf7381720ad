//! Prompts, and text that only looks like a prompt.

use agtmux_testkit::agtmux::{SOON, run};
use agtmux_testkit::task_fixture::{TaskFixture, short_message};
use agtmux_testkit::wait_until;
use serde_json::json;

#[test]
fn a_live_task_at_a_prompt_reports_input() {
    let fixture = TaskFixture::new();
    let prompts = [
        "Proceed? [y/N]",
        "Overwrite it (y/n)?",
        "Password:",
        "[sudo] password for x:",
        "Enter passphrase for key '/home/x/.ssh/id_ed25519':",
        "Press Enter to continue",
        "Select an option",
        "Your choice:",
        "Do you want to continue?",
        "Are you sure you want to continue connecting (yes/no/[fingerprint])?",
    ];
    let tasks: Vec<_> = (0..)
        .zip(prompts)
        .map(|(n, prompt)| {
            let command = format!("echo working; printf '%s ' \"{prompt}\"; read answer");
            (fixture.run(&format!("t{n}"), &command), prompt)
        })
        .collect();
    for (task, prompt) in tasks {
        let input = fixture.event(&task.window, "input");
        assert_eq!((&input["prompt"], &input["level"]), (&json!(prompt), &json!("warning")));
        assert_eq!(short_message(&input), format!("is waiting for input: {prompt}"));
    }
}

#[test]
fn a_key_request_on_its_own_line_is_a_prompt() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "echo 'Press Enter to continue'; read answer");
    assert_eq!(fixture.event(&task.window, "input")["prompt"], "Press Enter to continue");
}

#[test]
fn a_prompt_wider_than_the_window_is_one_prompt() {
    let fixture = TaskFixture::new();
    let long = format!("Enter passphrase for key '/{}':", "very-long-folder/".repeat(15));
    let task = fixture.run("t", &format!("printf '%s ' \"{long}\"; read answer"));
    assert_eq!(fixture.event(&task.window, "input")["prompt"], long);
}

#[test]
fn prose_and_logs_with_prompt_words_are_not_prompts() {
    let fixture = TaskFixture::new();
    let lines = [
        "printf 'the password: field is empty'",
        "printf '2026-11-15 10:00:01 asked: Proceed? [y/N]'",
        "printf 'Answer with [y/N] when you are asked.'",
        "echo 'Proceed? [y/N]'",
        "echo 'Password:'; echo 'was not needed'",
        "printf 'Why did it not continue?'",
    ];
    let tasks: Vec<_> =
        (0..).zip(lines).map(|(n, line)| fixture.run(&format!("t{n}"), &format!("{line}; exec sleep 1000"))).collect();
    // Wait until the output of all tasks is visible. The prompt of the marker task is reported after them.
    for task in &tasks {
        wait_until(&format!("the output of {}", task.window), SOON, || {
            let entry = fixture.entry(&task.window).unwrap_or_default();
            entry["output_preview"].as_str().is_some_and(|preview| !preview.trim().is_empty())
        });
    }
    fixture.run_marker_task();
    for task in tasks {
        assert_eq!(fixture.event_messages(&task.window), ["started"], "{:?}: {:#?}", task, fixture.events());
    }
}

#[test]
fn dead_panes_with_prompt_text_report_no_input() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "printf 'Proceed? [y/N] '; exit 0");
    fixture.event(&task.window, "exited");
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&task.window), ["started", "exited with code 0"]);
}

#[test]
fn continuing_output_is_not_a_prompt() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "while :; do printf 'Proceed? [y/N] '; sleep 0.1; printf '\\nworking\\n'; done");
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&task.window), ["started"]);
}

#[test]
fn a_prompt_is_reported_once_per_question() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "while :; do printf 'Proceed? [y/N] '; read answer; done");
    fixture.event(&task.window, "input");
    fixture.run_marker_task();
    let inputs = || fixture.event_messages(&task.window).iter().filter(|words| words.starts_with("is waiting")).count();
    assert_eq!(inputs(), 1);
    fixture.tmux.run(&["send-keys", "-t", &task.pane, "n", "Enter"]);
    fixture.nth_event(&task.window, "input", 2);
    fixture.run_marker_task();
    assert_eq!(inputs(), 2);
}

#[test]
fn input_sent_by_agtmux_closes_the_prompt() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "printf 'Name: '; read name; echo \"hello $name\"; exec sleep 1000");
    fixture.event(&task.window, "input");
    let state = || {
        let listed = run(fixture.agtmux().args(["list", "--json"])).json();
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        items.iter().find(|item| item["name"] == "t").map(|item| item["state"].clone())
    };
    wait_until("the state waiting_input", SOON, || state() == Some(json!("waiting_input")));
    fixture.task_ok(&["input", "t", "--text", "jo"]);
    wait_until("the answer", SOON, || {
        fixture
            .entry(&task.window)
            .is_some_and(|entry| entry["output_preview"].as_str().is_some_and(|o| o.contains("hello jo")))
    });
    wait_until("the state running", SOON, || state() == Some(json!("running")));
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&task.window), ["started", "is waiting for input: Name:"]);
}

#[test]
fn a_prompt_on_a_cleared_screen_is_reported_again_after_an_answer() {
    let fixture = TaskFixture::new();
    // Every prompt has the same position on the screen and in the history.
    let ask = "printf '\\033[H\\033[2J\\033[3Jmenu\\nSelect an option: '; read answer";
    let task = fixture.run("t", &format!("while :; do {ask}; done"));
    let inputs = || fixture.event_messages(&task.window).iter().filter(|words| words.starts_with("is waiting")).count();
    for n in 1..=3 {
        assert_eq!(fixture.nth_event(&task.window, "input", n)["prompt"], "Select an option:");
        fixture.run_marker_task();
        assert_eq!(inputs(), n, "one event per question");
        fixture.tmux.run(&["send-keys", "-t", &task.pane, "1", "Enter"]);
    }
}

#[test]
fn a_redrawn_prompt_is_reported_once() {
    let fixture = TaskFixture::new();
    let draw = "printf '\\033[H\\033[2J\\033[3Jmenu\\nSelect an option: '; sleep 0.8; echo >>drawn";
    let task = fixture.run("t", &format!("while :; do {draw}; done"));
    fixture.event(&task.window, "input");
    let drawn = || std::fs::read_to_string(fixture.file("drawn")).unwrap_or_default().lines().count();
    let before = drawn();
    wait_until("four more redraws", SOON, || drawn() >= before + 4);
    assert_eq!(fixture.event_messages(&task.window), ["started", "is waiting for input: Select an option:"]);
}

#[test]
fn each_window_reports_its_own_prompt() {
    let fixture = TaskFixture::new();
    let ask = "printf 'Proceed? [y/N] '; read answer; exec sleep 1000";
    let (one, two) = (fixture.run("one", ask), fixture.run("two", ask));
    for task in [&one, &two] {
        fixture.event(&task.window, "input");
    }
    fixture.tmux.run(&["send-keys", "-t", &one.pane, "y", "Enter"]);
    fixture.run_marker_task();
    for task in [&one, &two] {
        assert_eq!(fixture.event_messages(&task.window), ["started", "is waiting for input: Proceed? [y/N]"]);
    }
}

#[test]
fn the_prompt_words_of_the_document_are_prompts() {
    let fixture = TaskFixture::new();
    let words = ["[y/N]", "(y/n)", "password:", "Press Enter to continue", "Select an option", "choice:", "continue?"];
    let tasks: Vec<_> = (0..)
        .zip(words)
        .map(|(n, words)| (fixture.run(&format!("t{n}"), &format!("printf '{words} '; read answer")), words))
        .collect();
    for (task, words) in tasks {
        assert_eq!(fixture.event(&task.window, "input")["prompt"], words);
    }
}

#[test]
fn a_prompt_above_its_choices_is_found_at_the_cursor() {
    let fixture = TaskFixture::new();
    // Print the question and the choices below it. Then move the cursor back to the end of the question.
    let draw = "printf 'Proceed? [y/N] \\n  yes\\n  no\\033[2A\\r\\033[15C'";
    let task = fixture.run("t", &format!("{draw}; read answer"));
    assert_eq!(fixture.event(&task.window, "input")["prompt"], "Proceed? [y/N]");
}

#[test]
fn a_prompt_right_after_an_answer_is_reported_again() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "for n in 1 2 3; do printf \"Step $n? [y/N] \"; read answer; done; exec sleep 1000");
    for n in 1..=3 {
        assert_eq!(fixture.nth_event(&task.window, "input", n)["prompt"], format!("Step {n}? [y/N]"));
        fixture.tmux.run(&["send-keys", "-t", &task.pane, "y", "Enter"]);
    }
}
