//! What waits at a prompt, and what only looks so.

use agtmux_testkit::wait_until;
use serde_json::json;

use crate::agtmux::{SOON, run};
use crate::stage::{Stage, short};

#[test]
fn a_live_task_at_a_prompt_asks_for_input() {
    let stage = Stage::new();
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
            (stage.run(&format!("t{n}"), &command), prompt)
        })
        .collect();
    for (task, prompt) in tasks {
        let input = stage.event(&task.window, "input");
        assert_eq!((&input["prompt"], &input["level"]), (&json!(prompt), &json!("warning")));
        assert_eq!(short(&input), format!("is waiting for input: {prompt}"));
    }
}

#[test]
fn a_key_that_is_asked_for_on_a_line_of_its_own_is_waited_for() {
    let stage = Stage::new();
    let task = stage.run("t", "echo 'Press Enter to continue'; read answer");
    assert_eq!(stage.event(&task.window, "input")["prompt"], "Press Enter to continue");
}

#[test]
fn a_prompt_wider_than_the_window_is_one_prompt() {
    let stage = Stage::new();
    let long = format!("Enter passphrase for key '/{}':", "very-long-folder/".repeat(15));
    let task = stage.run("t", &format!("printf '%s ' \"{long}\"; read answer"));
    assert_eq!(stage.event(&task.window, "input")["prompt"], long);
}

#[test]
fn prose_and_logs_that_have_such_words_do_not_ask() {
    let stage = Stage::new();
    let lines = [
        "printf 'the password: field is empty'",
        "printf '2026-11-15 10:00:01 asked: Proceed? [y/N]'",
        "printf 'Answer with [y/N] when you are asked.'",
        "echo 'Proceed? [y/N]'",
        "echo 'Password:'; echo 'was not needed'",
        "printf 'Why did it not continue?'",
    ];
    let tasks: Vec<_> =
        (0..).zip(lines).map(|(n, line)| stage.run(&format!("t{n}"), &format!("{line}; exec sleep 1000"))).collect();
    // Whatever is told of a later prompt is told after looks that have shown these.
    for task in &tasks {
        wait_until(&format!("what {} says", task.window), SOON, || {
            let entry = stage.entry(&task.window).unwrap_or_default();
            entry["output_preview"].as_str().is_some_and(|shown| !shown.trim().is_empty())
        });
    }
    stage.witness();
    for task in tasks {
        assert_eq!(stage.told(&task.window), ["started"], "{:?}: {:#?}", task, stage.events());
    }
}

#[test]
fn dead_panes_with_prompt_like_text_do_not_ask() {
    let stage = Stage::new();
    let task = stage.run("t", "printf 'Proceed? [y/N] '; exit 0");
    stage.event(&task.window, "exited");
    stage.witness();
    assert_eq!(stage.told(&task.window), ["started", "exited with code 0"]);
}

#[test]
fn output_that_goes_on_is_no_prompt() {
    let stage = Stage::new();
    let task = stage.run("t", "while :; do printf 'Proceed? [y/N] '; sleep 0.1; printf '\\nworking\\n'; done");
    stage.witness();
    assert_eq!(stage.told(&task.window), ["started"]);
}

#[test]
fn a_prompt_is_told_once_and_again_when_it_is_asked_anew() {
    let stage = Stage::new();
    let task = stage.run("t", "while :; do printf 'Proceed? [y/N] '; read answer; done");
    stage.event(&task.window, "input");
    stage.witness();
    let inputs = || stage.told(&task.window).iter().filter(|words| words.starts_with("is waiting")).count();
    assert_eq!(inputs(), 1);
    stage.tmux.run(&["send-keys", "-t", &task.pane, "n", "Enter"]);
    stage.nth_event(&task.window, "input", 2);
    stage.witness();
    assert_eq!(inputs(), 2);
}

#[test]
fn an_answer_from_agtmux_ends_the_question() {
    let stage = Stage::new();
    let task = stage.run("t", "printf 'Name: '; read name; echo \"hello $name\"; exec sleep 1000");
    stage.event(&task.window, "input");
    let state = || {
        let listed = run(stage.agtmux().args(["list", "--json"])).json();
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        items.iter().find(|item| item["name"] == "t").map(|item| item["state"].clone())
    };
    wait_until("it waits", SOON, || state() == Some(json!("waiting_input")));
    stage.done(&["input", "t", "--text", "jo"]);
    wait_until("the answer", SOON, || {
        stage
            .entry(&task.window)
            .is_some_and(|entry| entry["output_preview"].as_str().is_some_and(|o| o.contains("hello jo")))
    });
    wait_until("it goes on", SOON, || state() == Some(json!("running")));
    stage.witness();
    assert_eq!(stage.told(&task.window), ["started", "is waiting for input: Name:"]);
}

#[test]
fn a_prompt_on_a_screen_that_is_cleared_is_asked_anew_after_an_answer() {
    let stage = Stage::new();
    // Where it stands on the screen, and in what was ever shown, does not change.
    let ask = "printf '\\033[H\\033[2J\\033[3Jmenu\\nSelect an option: '; read answer";
    let task = stage.run("t", &format!("while :; do {ask}; done"));
    let inputs = || stage.told(&task.window).iter().filter(|words| words.starts_with("is waiting")).count();
    for n in 1..=3 {
        assert_eq!(stage.nth_event(&task.window, "input", n)["prompt"], "Select an option:");
        stage.witness();
        assert_eq!(inputs(), n, "once for each time");
        stage.tmux.run(&["send-keys", "-t", &task.pane, "1", "Enter"]);
    }
}

#[test]
fn a_prompt_that_is_drawn_once_more_is_told_once() {
    let stage = Stage::new();
    let draw = "printf '\\033[H\\033[2J\\033[3Jmenu\\nSelect an option: '; sleep 0.8; echo >>drawn";
    let task = stage.run("t", &format!("while :; do {draw}; done"));
    stage.event(&task.window, "input");
    let drawn = || std::fs::read_to_string(stage.file("drawn")).unwrap_or_default().lines().count();
    let before = drawn();
    wait_until("it was drawn some more times", SOON, || drawn() >= before + 4);
    assert_eq!(stage.told(&task.window), ["started", "is waiting for input: Select an option:"]);
}

#[test]
fn each_window_asks_for_itself() {
    let stage = Stage::new();
    let ask = "printf 'Proceed? [y/N] '; read answer; exec sleep 1000";
    let (one, two) = (stage.run("one", ask), stage.run("two", ask));
    for task in [&one, &two] {
        stage.event(&task.window, "input");
    }
    stage.tmux.run(&["send-keys", "-t", &one.pane, "y", "Enter"]);
    stage.witness();
    for task in [&one, &two] {
        assert_eq!(stage.told(&task.window), ["started", "is waiting for input: Proceed? [y/N]"]);
    }
}

#[test]
fn the_words_of_the_document_ask() {
    let stage = Stage::new();
    let words = ["[y/N]", "(y/n)", "password:", "Press Enter to continue", "Select an option", "choice:", "continue?"];
    let tasks: Vec<_> = (0..)
        .zip(words)
        .map(|(n, words)| (stage.run(&format!("t{n}"), &format!("printf '{words} '; read answer")), words))
        .collect();
    for (task, words) in tasks {
        assert_eq!(stage.event(&task.window, "input")["prompt"], words);
    }
}

#[test]
fn a_prompt_that_is_drawn_with_the_cursor_is_found_where_it_stands() {
    let stage = Stage::new();
    // The question first, the choices below it, and the cursor back behind the question.
    let draw = "printf 'Proceed? [y/N] \\n  yes\\n  no\\033[2A\\r\\033[15C'";
    let task = stage.run("t", &format!("{draw}; read answer"));
    assert_eq!(stage.event(&task.window, "input")["prompt"], "Proceed? [y/N]");
}

#[test]
fn a_prompt_that_comes_right_after_an_answer_is_asked_anew() {
    let stage = Stage::new();
    let task = stage.run("t", "for n in 1 2 3; do printf \"Step $n? [y/N] \"; read answer; done; exec sleep 1000");
    for n in 1..=3 {
        assert_eq!(stage.nth_event(&task.window, "input", n)["prompt"], format!("Step {n}? [y/N]"));
        stage.tmux.run(&["send-keys", "-t", &task.pane, "y", "Enter"]);
    }
}
