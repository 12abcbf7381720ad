//! The terminal interface, driven by keys in a real tmux server.

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::{SOON, agtmux, stop};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::wait_until;
use rustix::process::Signal;

use crate::seat::{PROGRAM, Seat};

#[test]
fn a_dialog_is_answered_with_what_is_on_the_screen() {
    let fixture = ActionFixture::new("");
    let (asking, _idle) = (fixture.agent("work"), fixture.agent("other"));
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["2 idle", "work", "other"]);
    fixture.show_scene(&asking, "permission", "waiting_approval");
    seat.wait_for_texts(&["1 waiting"]);
    seat.press(&["n"]);
    seat.wait_for_texts(&["Do you want to proceed?", "rm -r build", "1  Yes", "2  No", "a approve"]);
    // A key that comes too soon after the dialog is not taken, so press it until it is.
    wait_until("the answer", SOON, || {
        seat.press(&["1"]);
        fixture.item(&asking).is_some_and(|item| item["state"] == "idle")
    });
    assert_eq!(asking.input_so_far(), b"1", "the answer was typed once");
    seat.wait_for_texts(&["2 idle"]);
    let audit = fixture.audit();
    let answer = audit.iter().find(|record| record["kind"] == "respond").expect("an audit record");
    assert_eq!(answer["caller"]["client"], "tui", "{answer}");
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn a_dialog_that_changes_before_the_key_is_not_answered() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    fixture.show_scene(&agent, "dialog", "waiting_approval");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["rm -r build"]);
    let fingerprint = |item: &serde_json::Value| item["dialog"]["fingerprint"].clone();
    let before = fingerprint(&fixture.item(&agent).expect("the agent"));
    // The interface sleeps while the dialog changes and the key is pressed.
    seat.signal(Signal::STOP);
    agent.draw_scene("other");
    wait_until("the other dialog", SOON, || fixture.item(&agent).is_some_and(|item| fingerprint(&item) != before));
    seat.press(&["1"]);
    seat.signal(Signal::CONT);
    seat.wait_for_texts(&["nothing was typed", "rm -r everything"]);
    agent.assert_no_input();
    seat.press(&["C-c"]);
    seat.assert_ended("0");
}

#[test]
fn a_prompt_is_written_and_sent() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle", "earlier"]);
    seat.press(&["s"]);
    seat.wait_for_texts(&["prompt for"]);
    seat.write("run the tests, then quit");
    seat.press(&["C-j"]);
    seat.write("second line");
    seat.press(&["Enter"]);
    seat.wait_for_texts(&["sent to"]);
    assert_eq!(agent.submitted_texts(), ["run the tests, then quit\nsecond line"]);
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn the_list_is_filtered_and_fits_a_resized_terminal() {
    let fixture = ActionFixture::new("");
    let (_one, _other) = (fixture.agent("work"), fixture.agent("other"));
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["2 idle", "work", "other"]);
    seat.press(&["/"]);
    seat.write("oth");
    let screen = seat.wait_for_texts(&["/oth", "1 match"]);
    assert!(!screen.contains("work"), "{screen}");
    seat.press(&["Escape"]);
    seat.wait_for_texts(&["work", "q quit"]);
    for (columns, rows) in [("40", "10"), ("60", "20"), ("120", "40")] {
        seat.server.run(&["resize-window", "-t", "=seat:", "-x", columns, "-y", rows]);
        let width = columns.parse().expect("a number");
        // From 60 columns on, the details are on the screen.
        let texts: &[&str] = if width < 60 { &["work", "other", "q quit"] } else { &["idle for", "q quit"] };
        let screen = seat.wait_for_texts(texts);
        assert!(screen.lines().all(|line| line.chars().count() <= width), "{screen}");
    }
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn a_click_selects_an_agent() {
    let fixture = ActionFixture::new("");
    let (_one, _other) = (fixture.agent("aa"), fixture.agent("bb"));
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["2 idle", "claude  aa:0.0"]);
    // The terminal reports a click at column 5 of row 5, which shows the second agent.
    seat.write("\u{1b}[<0;5;5M\u{1b}[<0;5;5m");
    seat.wait_for_texts(&["claude  bb:0.0"]);
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn attach_returns_to_the_interface_after_a_detach() {
    let fixture = ActionFixture::new("");
    let _agent = fixture.agent("work");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle"]);
    seat.press(&["Enter"]);
    wait_until("the attached client", SOON, || fixture.server.client_pids().len() == 1);
    seat.wait_for_texts(&["[work]"]);
    fixture.server.run(&["detach-client", "-s", "=work"]);
    seat.wait_for_texts(&["1 idle", "q quit"]);
    // Keys belong to the interface again.
    seat.press(&["?"]);
    seat.wait_for_texts(&["select the next agent"]);
    seat.press(&["q", "q"]);
    seat.assert_ended("0");
}

#[test]
fn inside_tmux_the_client_is_switched_and_the_interface_goes_on() {
    let fixture = ActionFixture::new("");
    let _agent = fixture.agent("work");
    let seat = Seat::open_on(&fixture.world, fixture.server.clone(), PROGRAM);
    seat.wait_for_texts(&["1 idle"]);
    let _client = fixture.server.attach("seat");
    let session = || fixture.server.run(&["list-clients", "-F", "#{client_session}"]).trim().to_owned();
    assert_eq!(session(), "seat");
    seat.press(&["Enter"]);
    wait_until("the client to be switched", SOON, || session() == "work");
    seat.wait_for_texts(&["1 idle", "q quit"]);
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn an_agent_is_ended_after_a_question_and_stays_listed_while_its_pane_is_there() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    fixture.server.run(&["set-option", "-t", "=work:", "remain-on-exit", "on"]);
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle"]);
    seat.press(&["x"]);
    seat.wait_for_texts(&["stop claude work:0.0?", "end it with SIGKILL"]);
    seat.press(&["K"]);
    seat.wait_for_texts(&["claude work:0.0 has ended", "ended; r"]);
    assert!(fixture.item(&agent).is_none_or(|item| item["runtime_id"].is_null()));
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn hostile_text_stays_text() {
    let fixture = ActionFixture::new("");
    // tmux passes directories on as they are, and titles without control characters.
    let directory = fixture.world.home().join("evil \u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}\u{9b}31m");
    std::fs::create_dir(&directory).expect("the world is writable");
    let dir = FakeAgent::fresh_dir(&fixture.world);
    let command = FakeAgent::command(&fixture.world, &dir);
    let directory = directory.to_str().expect("UTF-8");
    let pane =
        fixture.server.run(&["new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "work", "-c", directory, &command]);
    let agent = fixture.wait_for_idle_agent(&fixture.server, pane.trim().to_owned(), dir);
    fixture.server.run(&["select-pane", "-t", &agent.pane, "-T", "\u{202e}evil ##(touch x)"]);
    let seat = Seat::open(&fixture.world, "");
    let screen = seat.wait_for_texts(&["1 idle", "evil #(touch x)", "\\x1b[2J"]);
    assert!(screen.contains("work"), "the screen was not cleared: {screen}");
    seat.press(&["q"]);
    seat.assert_ended("0");
    let printed = seat.file("printed");
    for sequence in ["\u{1b}]", "\u{9b}", "\u{202e}", "\u{7}", "\u{1b}P"] {
        assert!(!printed.contains(sequence), "{sequence:?} in {}", printed.escape_debug());
    }
}

#[test]
fn the_terminal_is_restored_after_a_signal() {
    let fixture = ActionFixture::new("");
    let _agent = fixture.agent("work");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle"]);
    seat.signal(Signal::TERM);
    seat.assert_ended("143");
}

#[test]
fn a_stopped_daemon_leaves_the_list_marked_as_out_of_date() {
    let fixture = ActionFixture::new("");
    let _agent = fixture.agent("work");
    let seat = Seat::open(&fixture.world, "");
    seat.wait_for_texts(&["1 idle"]);
    stop(&fixture.world);
    seat.wait_for_texts(&["daemon disconnected; out of date", "work"]);
    agtmux_testkit::agtmux::start(&fixture.world);
    wait_until("the list to be up to date", SOON, || !seat.screen().contains("out of date"));
    seat.press(&["q"]);
    seat.assert_ended("0");
}

#[test]
fn without_a_terminal_agtmux_prints_the_list() {
    let fixture = ActionFixture::new("");
    let _agent = fixture.agent("work");
    let done = agtmux(&fixture.world, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.text().starts_with("STATE") && done.text().contains("idle"), "{done:?}");
}

#[test]
fn the_inbox_opens_the_interface_with_the_waiting_agents() {
    let fixture = ActionFixture::new("");
    let (asking, _idle) = (fixture.agent("work"), fixture.agent("other"));
    fixture.show_scene(&asking, "dialog", "waiting_approval");
    let seat = Seat::open(&fixture.world, "inbox");
    let screen = seat.wait_for_texts(&["waiting only", "Do you want to proceed?"]);
    assert!(!screen.contains("other"), "{screen}");
    seat.press(&["w"]);
    seat.wait_for_texts(&["other"]);
    seat.press(&["q"]);
    seat.assert_ended("0");
}
