//! `agtmux respond`: which dialogs it answers and which callers may use it. Fake agents record what is typed.

use std::fs;

use agtmux_testkit::agtmux::{SOON, agtmux, configure, items, list, start, world};
use agtmux_testkit::dialog_agent::DialogAgent;
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_for_next_second};
use serde_json::Value;

#[test]
fn respond_is_refused_after_the_dialog_is_replaced() {
    let agent = DialogAgent::start();
    let rounds = if agtmux_testkit::agtmux::soak() { 100 } else { 8 };
    for round in 0..rounds {
        let (first, second) = (format!("touch first-{round}"), format!("touch second-{round}"));
        agent.ask_permission(&first);
        let fingerprint = agent.wait_for_dialog(&first);
        // The dialog is replaced, and agtmux may not have noticed yet.
        agent.ask_permission(&second);
        let guarded = ["respond", &agent.pane, "approve", "--if-dialog", &fingerprint];
        let done = agtmux(&agent.world, &guarded);
        assert_eq!(done.code, Some(5), "{}", done.stderr);
        assert!(["the dialog has changed", "no longer open"].iter().any(|why| done.stderr.contains(why)), "{done:?}");
        assert_eq!(agent.typed(), "", "nothing was typed");
    }
}

#[test]
fn respond_reports_a_dialog_that_stays_open() {
    let agent = DialogAgent::start();
    agent.ask_permission("touch a");
    agent.wait_for_dialog("touch a");
    // The dialog stays open: the answer was not accepted.
    let done = agtmux(&agent.world, &["respond", &agent.pane, "approve"]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("the dialog is still open"), "{}", done.stderr);
    assert_eq!(agent.typed(), "1111", "the same key a few times");
}

#[test]
fn two_digit_options_are_selected_by_arrow_keys() {
    let agent = DialogAgent::start();
    let options: String = (1..=12).map(|n| format!(" {} {n}. Colour {n}\n", if n == 9 { '❯' } else { ' ' })).collect();
    let rule = "─".repeat(100);
    agent.draw(&format!("{rule}\n ☐ Colour\n\nWhich colour?\n\n{options}\nEnter to select · ↑/↓ to navigate"));
    agent.wait_for_dialog("Colour 12");
    let done = agtmux(&agent.world, &["respond", &agent.pane, "11"]);
    // The fake agent does not move its selection, so Enter is never pressed.
    assert!(done.stderr.contains("option 11 could not be selected"), "{}", done.stderr);
    let typed = agent.typed();
    assert!(typed.starts_with("\x1b[B\x1b[B") && !typed.contains(['1', '\r', '\n']), "{typed:?}");
}

#[test]
fn text_answers_are_refused_by_dialogs_without_a_text_option() {
    let agent = DialogAgent::start();
    let rule = "─".repeat(100);
    agent.draw(&format!("{rule}\n Exit plan mode?\n\n ❯ 1. Yes\n   2. No\n"));
    agent.wait_for_dialog("Exit plan mode");
    let done = agtmux(&agent.world, &["respond", &agent.pane, "--text", "1"]);
    assert_eq!(done.code, Some(5));
    assert!(
        done.stderr.contains("accepts no text") && done.stderr.contains("accepted answers: approve, deny, 1, 2"),
        "{done:?}"
    );
    let done = agtmux(&agent.world, &["send", &agent.pane, "--text", "1"]);
    assert!(done.stderr.contains("agtmux respond"), "{}", done.stderr);
    let done = agtmux(&agent.world, &["respond", &agent.pane, "7"]);
    assert!(done.stderr.contains("no option 7"), "{}", done.stderr);
    // Without an answer and without a terminal, respond prints the dialog.
    let done = agtmux(&agent.world, &["respond", &agent.pane]);
    assert_eq!(done.code, Some(2));
    assert!(done.text().contains("Exit plan mode?") && done.text().contains("2. No"), "{}", done.text());
    assert!(done.stderr.contains("--if-dialog"), "{}", done.stderr);
    assert_eq!(agent.typed(), "");
}

#[test]
fn respond_on_a_terminal_prompts_and_answers_only_the_shown_dialog() {
    let agent = DialogAgent::start();
    let program = env!("CARGO_BIN_EXE_agtmux");
    let shell = agent.server.new_session("person", "PS1='$ ' exec sh -i");
    let shows = |what: &str| {
        let shown = || agent.server.run(&["capture-pane", "-p", "-J", "-t", &shell]);
        wait_for(what, SOON, || shown().contains(what).then_some(()));
    };
    // The shell is younger than the agent, so only keys of a client prove that a person uses it.
    let client = agent.server.attach("person");
    wait_for_next_second();
    let types = |line: &str| client.type_keys(format!("{line}\r").as_bytes());
    let respond = format!("clear; {program} respond {}", agent.pane);
    agent.ask_permission("touch a");
    agent.wait_for_dialog("touch a");
    types(&respond);
    shows("approve, deny, a number");
    shows("2. Yes, always");
    agent.ask_permission("touch b");
    types("approve");
    shows("nothing was typed\n");
    assert_eq!(agent.typed(), "");
    agent.wait_for_dialog("touch b");
    types(&respond);
    shows("touch b");
    types("maybe");
    shows("expected approve, deny or the number");
    types("2");
    wait_for("the answer to be typed", SOON, || (agent.typed() == "2").then_some(()));
}

/// A multiple-choice dialog. `selected` is the option with the cursor, `ticked` are the ticked options, and
/// `text_label` is the label of the option for free text.
fn checkbox_dialog(selected: u32, ticked: &[u32], text_label: &str) -> String {
    let rule = "─".repeat(100);
    let option = |(n, label): (u32, &str)| {
        let (sign, tick) = (if n == selected { '❯' } else { ' ' }, if ticked.contains(&n) { '✔' } else { ' ' });
        format!("{sign} {n}. [{tick}] {label}\n")
    };
    let options: String = (1..).zip(["Round", "Square", "Oval", text_label]).map(option).collect();
    let (head, foot) = ("←  ☐ Shape  ✔ Submit  →", "Enter to select · ↑/↓ to navigate · Esc to cancel");
    format!("{rule}\n{head}\n\nWhich shapes?\n\n{options}     Submit\n{rule}\n  5. Chat about this\n\n{foot}")
}

#[test]
fn options_are_not_submitted_unless_all_are_ticked() {
    let agent = DialogAgent::start();
    agent.draw(&checkbox_dialog(1, &[2], "Type something"));
    agent.wait_for_dialog("Oval");
    // The fake agent ticks nothing, so respond stops after the first option.
    let done = agtmux(&agent.world, &["respond", &agent.pane, "1,3"]);
    assert_eq!(done.code, Some(5), "{done:?}");
    assert!(done.stderr.contains("option 1 could not be ticked; nothing was submitted"), "{}", done.stderr);
    assert_eq!(agent.typed(), "1");
    for (answer, why) in
        [("4", "option 4 is a text field"), ("1,4", "option 4 cannot be ticked"), ("1,9", "no option 9")]
    {
        let done = agtmux(&agent.world, &["respond", &agent.pane, answer]);
        assert!(done.code == Some(5) && done.stderr.contains(why), "{answer}: {}", done.stderr);
    }
    assert_eq!(agent.typed(), "1");
}

#[test]
fn a_digit_is_not_typed_into_a_text_field() {
    let agent = DialogAgent::start();
    agent.draw(&checkbox_dialog(4, &[4], "a shape of mine"));
    agent.wait_for_dialog("Oval");
    let done = agtmux(&agent.world, &["respond", &agent.pane, "2"]);
    assert!(done.stderr.contains("option 1 could not be selected"), "{}", done.stderr);
    let typed = agent.typed();
    assert!(!typed.is_empty() && typed.replace("\x1b[A", "").is_empty(), "only Up keys: {typed:?}");
}

#[test]
fn several_options_are_refused_by_a_single_choice_dialog() {
    let agent = DialogAgent::start();
    agent.ask_permission("touch a");
    agent.wait_for_dialog("touch a");
    let done = agtmux(&agent.world, &["respond", &agent.pane, "1,2"]);
    assert!(done.code == Some(5) && done.stderr.contains("the dialog takes one answer, not several"), "{done:?}");
    assert_eq!(agent.typed(), "");
}

/// Two panes: a shell in which an agent can be started, and a shell that is the target of `send`.
struct CallerFixture {
    world: TestWorld,
    server: TestTmuxServer,
    pane: String,
    other: String,
}

impl CallerFixture {
    fn start(configuration: &str) -> Self {
        let world = world();
        configure(&world, configuration);
        let server = world.tmux("default");
        let path = std::path::Path::new(env!("CARGO_BIN_EXE_agtmux")).parent().expect("a directory");
        let shell = format!("PATH={}:$PATH PS1='$ ' exec sh -i", path.display());
        let pane = server.new_session("work", &shell);
        let other = server.new_session("other", &shell);
        start(&world);
        wait_for("both panes to be listed", SOON, || (items(&list(&world)).len() == 2).then_some(()));
        Self { world, server, pane, other }
    }

    fn type_line(&self, pane: &str, line: &str) {
        self.server.run(&["send-keys", "-t", pane, "-l", line]);
        self.server.run(&["send-keys", "-t", pane, "Enter"]);
    }

    /// Starts an agent that executes typed lines.
    fn start_agent(&self) {
        let program = self.world.shell_copy("claude");
        self.type_line(&self.pane, &format!("{} -c 'while read -r line; do eval \"$line\"; done'", program.display()));
        wait_for("the agent to be listed", SOON, || (self.agent()["agent_type"] == "claude").then_some(()));
    }

    fn agent(&self) -> Value {
        let listing = list(&self.world);
        items(&listing)
            .iter()
            .find(|item| item["identity"]["pane_id"] == self.pane.as_str())
            .cloned()
            .unwrap_or_default()
    }

    /// A shell command that sends to the other pane and stores its output and exit code under this name.
    fn send_command(&self, name: &str) -> String {
        let dir = self.world.dir().display();
        let program = env!("CARGO_BIN_EXE_agtmux");
        let send = format!("{program} send {} --profile shell --text \"touch {dir}/{name}.typed\"", self.other);
        format!("{send} >{dir}/{name}.output 2>&1; echo $? >{dir}/{name}.code; mv {dir}/{name}.code {dir}/{name}.ended")
    }

    #[track_caller]
    fn wait_for_exit(&self, name: &str) -> (i32, String) {
        let read = |what: &str| fs::read_to_string(self.world.dir().join(format!("{name}.{what}"))).ok();
        let code = wait_for(&format!("{name} to exit"), SOON, || read("ended"));
        (code.trim().parse().expect("a code"), read("output").unwrap_or_default())
    }

    #[track_caller]
    fn assert_refused(&self, name: &str) {
        let (code, output) = self.wait_for_exit(name);
        assert!(code != 0 && output.contains("agents may not send"), "{name}: {code} {output}");
        assert!(output.contains("actions.allow_from_agents"), "{output}");
        assert!(!self.world.dir().join(format!("{name}.typed")).exists(), "the text of {name} was typed");
    }

    #[track_caller]
    fn assert_allowed(&self, name: &str) {
        let (code, output) = self.wait_for_exit(name);
        assert_eq!(code, 0, "{name}: {output}");
        wait_for("the text to be typed", SOON, || {
            self.world.dir().join(format!("{name}.typed")).exists().then_some(())
        });
    }
}

#[test]
fn send_is_refused_for_agents_and_allowed_for_people() {
    let fixture = CallerFixture::start("");
    let dir = fixture.world.dir().display();
    // This background job of the shell starts before the agent.
    let earlier_job = format!("(while [ ! -e {dir}/go ]; do sleep 0.1; done; {}) &", fixture.send_command("earlier"));
    fixture.type_line(&fixture.pane, &earlier_job);
    fixture.start_agent();
    fixture.type_line(&fixture.pane, &fixture.send_command("child"));
    fixture.assert_refused("child");
    // A detached process in its own session.
    let script = fixture.world.dir().join("left.sh");
    fs::write(&script, fixture.send_command("left")).expect("written");
    fixture.type_line(&fixture.pane, &format!("setsid -f sh {}", script.display()));
    fixture.assert_refused("left");
    fs::write(fixture.world.dir().join("go"), "").expect("written");
    fixture.assert_allowed("earlier");
    fixture.type_line(&fixture.other, &fixture.send_command("elsewhere"));
    fixture.assert_allowed("elsewhere");
    let outside = ["send", &fixture.other, "--profile", "shell", "--text", &format!("touch {dir}/outside.typed")];
    assert_eq!(agtmux(&fixture.world, &outside).code, Some(0));
    // The agent is suspended and its shell is in the foreground.
    fixture.server.run(&["send-keys", "-t", &fixture.pane, "C-z"]);
    wait_for("the agent to be suspended", SOON, || (fixture.agent()["reason_code"] == "suspended").then_some(()));
    fixture.type_line(&fixture.pane, &fixture.send_command("beside"));
    fixture.assert_allowed("beside");
    fixture.type_line(&fixture.pane, "kill -9 %2; kill -9 %1");
}

#[test]
fn a_task_has_the_permissions_of_its_starter() {
    let fixture = CallerFixture::start("");
    let task = |name: &str, detached: &str| {
        let script = fixture.world.dir().join(format!("{name}.sh"));
        fs::write(&script, fixture.send_command(name)).expect("written");
        format!("agtmux task run --session pi-foo-{name} {name} -- '{detached}sh {}'", script.display())
    };
    fixture.type_line(&fixture.other, &task("persons", ""));
    fixture.assert_allowed("persons");
    // Until the child has its own session, the end of the task would hang it up.
    let detached = "trap \"\" HUP; setsid -f ";
    fixture.type_line(&fixture.other, &task("left-by-a-person", detached));
    fixture.assert_allowed("left-by-a-person");
    fixture.start_agent();
    fixture.type_line(&fixture.pane, &task("agents", ""));
    fixture.assert_refused("agents");
    fixture.type_line(&fixture.pane, &task("left", detached));
    fixture.assert_refused("left");
    // Another task starts this task, with the identifying variables removed.
    let inner = task("inner", "env -u AGTMUX_RUN_ID -u TMUX -u TMUX_PANE ");
    let script = fixture.world.dir().join("outer.sh");
    fs::write(&script, inner.replacen("agtmux", env!("CARGO_BIN_EXE_agtmux"), 1)).expect("written");
    fixture.type_line(
        &fixture.pane,
        &format!("agtmux task run --session pi-foo-outer outer -- 'sh {}'", script.display()),
    );
    fixture.assert_refused("inner");
    let (_, output) = fixture.wait_for_exit("agents");
    assert!(output.contains("the caller is an agent (claude)"), "{output}");
}

#[test]
fn agents_may_send_with_allow_from_agents() {
    let fixture = CallerFixture::start("[actions]\nallow_from_agents = true\n");
    fixture.start_agent();
    fixture.type_line(&fixture.pane, &fixture.send_command("child"));
    fixture.assert_allowed("child");
}
