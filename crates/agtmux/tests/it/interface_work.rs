//! A day's work in the interface: typing into a pane, several agents at once, tasks, own commands, the clipboard, and
//! what it remembers.

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::{SOON, run};
use agtmux_testkit::{wait_for, wait_until};

use crate::seat::{PROGRAM, Seat};

#[test]
fn keys_are_typed_into_the_pane_of_the_agent() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle", "earlier"]);
    seat.press(&["Tab"]);
    seat.wait_for_texts(&["your keys go here"]);
    seat.write("q é");
    // A single Escape goes to the pane.
    seat.press(&["Escape"]);
    wait_for("the keys in the pane", SOON, || {
        let typed = String::from_utf8_lossy(&agent.input_so_far()).into_owned();
        if typed == "q é\u{1b}" { Ok(()) } else { Err(format!("{typed:?}")) }
    });
    // Two keys that arrive together are one Escape for the terminal library.
    wait_until("the end of typing", SOON, || {
        seat.press(&["Escape"]);
        seat.screen().contains("keys are for the list again")
    });
    let audit = fixture.audit();
    let typed: Vec<_> = audit.iter().filter(|record| record["kind"] == "send").map(|record| &record["what"]).collect();
    assert_eq!(
        typed[..4],
        ["1 key", "1 key", "1 key", "keys Escape"],
        "single letters are not stored: they may be a password"
    );
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn a_dialog_can_be_answered_by_typing_into_its_pane() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    fixture.show_scene(&agent, "permission", "waiting_approval");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["rm -r build"]);
    seat.press(&["Tab"]);
    seat.wait_for_texts(&["your keys go here", "Esc to cancel"]);
    // A key that comes too soon after the dialog is not taken, so press it until it is.
    wait_until("the answer", SOON, || {
        if fixture.item(&agent).is_some_and(|item| item["state"] == "waiting_approval") {
            seat.press(&["2"]);
        }
        fixture.item(&agent).is_some_and(|item| item["state"] == "idle")
    });
    assert_eq!(agent.input_so_far().first(), Some(&b'2'));
}

#[test]
fn keys_do_not_go_to_a_dialog_that_the_request_does_not_name() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let item = fixture.show_scene(&agent, "dialog", "waiting_approval");
    let fingerprint = item["dialog"]["fingerprint"].as_str().expect("a fingerprint");
    let with = |more: serde_json::Value| {
        let mut body = serde_json::json!({"ref": agent.pane, "keys": ["x"]});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        fixture.post("send", &body)
    };
    assert_eq!(with(serde_json::json!({})).status, 409);
    assert_eq!(with(serde_json::json!({"if_dialog": "another"})).status, 409);
    agent.assert_no_input();
    assert_eq!(with(serde_json::json!({"if_dialog": fingerprint})).status, 200);
    assert_eq!(agent.input_so_far(), b"x");
    // A text is never typed into a dialog, not even into the named one.
    let text = serde_json::json!({"ref": agent.pane, "text": "yes", "if_dialog": fingerprint});
    assert_eq!(fixture.post("send", &text).status, 409);
}

#[test]
fn identical_dialogs_are_answered_together() {
    let fixture = ActionFixture::new("");
    let agents = [fixture.agent("one"), fixture.agent("two")];
    for agent in &agents {
        fixture.show_scene(agent, "permission", "waiting_approval");
    }
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["2 waiting", "1 more ask the same"]);
    seat.press(&["+"]);
    seat.wait_for_texts(&["2 selected"]);
    wait_until("the question", SOON, || {
        seat.press(&["1"]);
        seat.screen().contains("answer 2 agents: 1 Yes?")
    });
    let screen = seat.screen();
    assert!(screen.contains("one:0.0") && screen.contains("two:0.0"), "{screen}");
    assert!(agents.iter().all(|agent| agent.input_so_far().is_empty()));
    seat.press(&["y"]);
    for agent in &agents {
        fixture.wait_for_state(agent, "idle");
        assert_eq!(agent.input_so_far(), b"1");
    }
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn tasks_targets_and_the_audit_log_are_a_key_away() {
    let fixture = ActionFixture::new("");
    let _agent = fixture.agent("work");
    let mut command = fixture.world.agtmux();
    command.current_dir(fixture.world.home());
    command.args(["task", "run", "server", "--session", "pi-shop-1", "--", "echo from-the-task; exec sleep 1000"]);
    let done = run(&mut command);
    assert_eq!(done.code, Some(0), "{done:?}");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle"]);
    seat.press(&["t"]);
    seat.wait_for_texts(&["tasks", "server", "running", "pi-shop-1"]);
    seat.press(&["Enter"]);
    seat.wait_for_texts(&["output of", "from-the-task"]);
    seat.press(&["q", "T"]);
    seat.wait_for_texts(&["targets", "host", "this machine"]);
    // The key that opened a list closes it, too.
    seat.press(&["T", "A"]);
    seat.wait_for_texts(&["audit", "run a task", "done"]);
    seat.press(&["q", ":"]);
    seat.write("quit");
    seat.wait_for_texts(&["the agents go on"]);
    seat.press(&["Enter"]);
    seat.assert_ended("0");
}

#[test]
fn own_commands_get_the_fields_of_the_agent_as_arguments() {
    let settings = "interface.keys.send = \"S\"\ninterface.commands = [\
        {key = \"ctrl-g\", name = \"mark\", run = [\"touch\", \"{cwd}/marked\", \"{cwd}/$(touch evil)\"]},\
        {key = \"ctrl-y\", name = \"note\", shell = 'printf %s \"$AGTMUX_SELECTED_AGENT\" >\"$AGTMUX_SELECTED_CWD/noted\"'},\
        {key = \"ctrl-x\", name = \"fails\", run = [\"sh\", \"-c\", \"echo no such thing >&2; exit 3\"]}]";
    let fixture = ActionFixture::new(settings);
    let agent = fixture.agent("work");
    let cwd =
        fixture.item(&agent).expect("the agent")["cwd"].as_str().map(std::path::PathBuf::from).expect("a directory");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle", "S send"]);
    seat.press(&["C-g"]);
    wait_until("the files", SOON, || cwd.join("marked").exists() && cwd.join("$(touch evil)").exists());
    assert!(!cwd.join("evil").exists(), "an argument is not code");
    seat.wait_for_texts(&["1 idle"]);
    seat.press(&["C-y"]);
    wait_until("the note", SOON, || std::fs::read_to_string(cwd.join("noted")).is_ok_and(|text| text == "claude"));
    seat.wait_for_texts(&["1 idle"]);
    seat.press(&["C-x"]);
    seat.wait_for_texts(&["'fails' failed: no such thing"]);
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn a_wrong_setting_of_the_interface_is_named() {
    let fixture = ActionFixture::new("interface.keys.sned = \"S\"");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["there is no command 'sned'"]);
    wait_until("the exit status", SOON, || seat.file("status").trim() == "1");
}

#[test]
fn the_interface_remembers_its_grouping_and_selection() {
    let fixture = ActionFixture::new("");
    let (_one, _two) = (fixture.agent("one"), fixture.agent("two"));
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["2 idle", "claude  one:0.0"]);
    seat.press(&["g", "j"]);
    seat.wait_for_texts(&["by directory", "claude  two:0.0"]);
    seat.press(&["q"]);
    seat.assert_ended("0");
    seat.server.run(&["kill-session", "-t", "=seat"]);
    let again = Seat::open(&fixture.world, "");
    again.wait_for_texts(&["by directory", "claude  two:0.0"]);
}

#[test]
fn a_copied_text_reaches_the_clipboard_of_the_terminal() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle"]);
    seat.press(&["y", "r"]);
    seat.wait_for_texts(&["copied the reference"]);
    let printed = seat.file("printed");
    let coded = printed.split("\u{1b}]52;c;").nth(1).and_then(|rest| rest.split('\u{7}').next()).expect("OSC 52");
    assert_eq!(decoded(coded), agent.runtime);
}

/// The text of a base 64 code.
fn decoded(coded: &str) -> String {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = coded.chars().filter_map(|c| DIGITS.find(c));
    let bits: String = bits.map(|digit| format!("{digit:06b}")).collect();
    let bytes = bits.as_bytes().chunks_exact(8);
    let byte = |bits: &[u8]| u8::from_str_radix(std::str::from_utf8(bits).expect("digits"), 2).expect("a byte");
    String::from_utf8(bytes.map(byte).collect()).expect("a text")
}

/// A person who knows nothing but the screen: presses the key that the screen offers for the first option.
#[track_caller]
fn answer_by_what_is_shown(seat: &Seat) -> u32 {
    let screen = seat.wait_for_texts(&["waits for approval", "1  Yes", "1-9 option"]);
    assert!(screen.contains("cargo test login") || screen.contains("rm -r build"), "the command is shown: {screen}");
    // A key that comes too soon after the dialog is not taken.
    std::iter::repeat_n((), 50)
        .zip(1..)
        .find_map(|((), keys)| {
            seat.press(&["1"]);
            let taken = wait_for("a reaction to the key", SOON, || {
                let screen = seat.screen();
                let taken = ["answering", "answered 1. Yes"].iter().any(|text| screen.contains(text));
                let is_early = screen.contains("just appeared");
                (taken || is_early).then_some(taken)
            });
            taken.then_some(keys)
        })
        .expect("the key is taken")
}

#[test]
fn after_make_run_an_approval_takes_one_key() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    fixture.show_scene(&agent, "permission", "waiting_approval");
    // `make run` ends with this command.
    let seat = Seat::open(&fixture.world, "welcome");
    seat.wait_for_texts(&["waits for approval"]);
    // The dialog is on the screen for as long as it takes to read it.
    agent.complete_input();
    let keys = answer_by_what_is_shown(&seat);
    seat.wait_for_texts(&["answered 1. Yes"]);
    assert_eq!(agent.input_so_far(), b"1");
    println!("an approval took {keys} key");
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn the_approval_of_the_demo_is_answered() {
    let fixture = ActionFixture::new("");
    let command = format!("env -u TMUX {PROGRAM} demo");
    let seat = Seat::open_on(&fixture.world, fixture.world.tmux("seat"), &command);
    seat.server.run(&["resize-window", "-t", "=seat:", "-x", "120", "-y", "40"]);
    seat.wait_for_texts(&["2 waiting", "Do you want to proceed?"]);
    answer_by_what_is_shown(&seat);
    seat.wait_for_texts(&["answered 1. Yes · 1 left"]);
    seat.press(&["q"]);
    seat.assert_ended("0");
}
