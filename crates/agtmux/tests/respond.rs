//! Whom `agtmux respond` answers, and who may ask for it. The agents are stand-ins that keep what is typed.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_asking.rs"]
mod asking;

use std::fs;

use agtmux::{SOON, agtmux, configure, items, list, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use asking::Asking;
use serde_json::Value;

#[test]
fn what_was_swapped_before_it_is_known_is_refused() {
    let agent = Asking::start();
    let rounds = if agtmux::soak() { 100 } else { 8 };
    for round in 0..rounds {
        let (first, second) = (format!("touch first-{round}"), format!("touch second-{round}"));
        agent.permission(&first);
        let fingerprint = agent.knows(&first);
        // From here on it asks something else, and agtmux may not have heard of it.
        agent.permission(&second);
        let guarded = ["respond", &agent.pane, "approve", "--if-dialog", &fingerprint];
        let done = agtmux(&agent.world, &guarded);
        assert_eq!(done.code, Some(5), "{}", done.stderr);
        assert!(["asks something else", "not open any more"].iter().any(|why| done.stderr.contains(why)), "{done:?}");
        assert_eq!(agent.typed(), "", "nothing was typed");
    }
}

#[test]
fn one_key_is_pressed_once_also_when_the_same_is_asked_again() {
    let agent = Asking::start();
    agent.permission("touch a");
    agent.knows("touch a");
    // It stays as it is: the answer was not taken.
    let done = agtmux(&agent.world, &["respond", &agent.pane, "approve"]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("the dialog is still open"), "{}", done.stderr);
    assert_eq!(agent.typed(), "1");
}

#[test]
fn numbers_of_two_digits_are_walked_to() {
    let agent = Asking::start();
    let options: String = (1..=12).map(|n| format!(" {} {n}. Colour {n}\n", if n == 9 { '❯' } else { ' ' })).collect();
    let rule = "─".repeat(100);
    agent.draws(&format!("{rule}\n ☐ Colour\n\nWhich colour?\n\n{options}\nEnter to select · ↑/↓ to navigate"));
    agent.knows("Colour 12");
    let done = agtmux(&agent.world, &["respond", &agent.pane, "11"]);
    // The stand-in does not move its selection, so Enter is never pressed.
    assert!(done.stderr.contains("option 11 could not be selected"), "{}", done.stderr);
    let typed = agent.typed();
    assert!(typed.starts_with("\x1b[B\x1b[B") && !typed.contains(['1', '\r', '\n']), "{typed:?}");
}

#[test]
fn words_are_refused_where_there_is_no_place_for_them() {
    let agent = Asking::start();
    let rule = "─".repeat(100);
    agent.draws(&format!("{rule}\n Exit plan mode?\n\n ❯ 1. Yes\n   2. No\n"));
    agent.knows("Exit plan mode");
    let done = agtmux(&agent.world, &["respond", &agent.pane, "--text", "1"]);
    assert_eq!(done.code, Some(5));
    assert!(done.stderr.contains("takes no words") && done.stderr.contains("it takes approve, deny, 1, 2"), "{done:?}");
    let done = agtmux(&agent.world, &["send", &agent.pane, "--text", "1"]);
    assert!(done.stderr.contains("agtmux respond"), "{}", done.stderr);
    let done = agtmux(&agent.world, &["respond", &agent.pane, "7"]);
    assert!(done.stderr.contains("no option 7"), "{}", done.stderr);
    // Without an answer and without a terminal it is shown.
    let done = agtmux(&agent.world, &["respond", &agent.pane]);
    assert_eq!(done.code, Some(2));
    assert!(done.text().contains("Exit plan mode?") && done.text().contains("2. No"), "{}", done.text());
    assert!(done.stderr.contains("--if-dialog"), "{}", done.stderr);
    assert_eq!(agent.typed(), "");
}

#[test]
fn on_a_terminal_it_is_asked_for_and_only_what_was_shown_is_answered() {
    let agent = Asking::start();
    let program = env!("CARGO_BIN_EXE_agtmux");
    let person = agent.server.new_session("person", "PS1='$ ' exec sh -i");
    let shows = |what: &str| {
        let shown = || agent.server.run(&["capture-pane", "-p", "-J", "-t", &person]);
        wait_for(what, SOON, || shown().contains(what).then_some(()));
    };
    let types = |line: &str| {
        agent.server.run(&["send-keys", "-t", &person, "-l", line]);
        agent.server.run(&["send-keys", "-t", &person, "Enter"]);
    };
    let asks = format!("clear; {program} respond {}", agent.pane);
    agent.permission("touch a");
    agent.knows("touch a");
    types(&asks);
    shows("approve, deny, a number");
    shows("2. Yes, always");
    agent.permission("touch b");
    types("approve");
    shows("nothing was typed\n");
    assert_eq!(agent.typed(), "");
    agent.knows("touch b");
    types(&asks);
    shows("touch b");
    types("maybe");
    shows("write approve, deny or the number");
    types("2");
    wait_for("it is answered", SOON, || (agent.typed() == "2").then_some(()));
}

/// A question whose options are ticked, with the selection and the ticks that are wanted. The words are somebody's.
fn checkbox_dialog(selected: u32, ticked: &[u32], words: &str) -> String {
    let rule = "─".repeat(100);
    let option = |(n, label): (u32, &str)| {
        let (sign, tick) = (if n == selected { '❯' } else { ' ' }, if ticked.contains(&n) { '✔' } else { ' ' });
        format!("{sign} {n}. [{tick}] {label}\n")
    };
    let options: String = (1..).zip(["Round", "Square", "Oval", words]).map(option).collect();
    let (head, foot) = ("←  ☐ Shape  ✔ Submit  →", "Enter to select · ↑/↓ to navigate · Esc to cancel");
    format!("{rule}\n{head}\n\nWhich shapes?\n\n{options}     Submit\n{rule}\n  5. Chat about this\n\n{foot}")
}

#[test]
fn options_that_are_not_seen_to_be_ticked_are_not_sent_off() {
    let agent = Asking::start();
    agent.draws(&checkbox_dialog(1, &[2], "Type something"));
    agent.knows("Oval");
    // It does not tick anything, so that it is left at the first.
    let done = agtmux(&agent.world, &["respond", &agent.pane, "1,3"]);
    assert_eq!(done.code, Some(5), "{done:?}");
    assert!(done.stderr.contains("option 1 could not be ticked; nothing was submitted"), "{}", done.stderr);
    assert_eq!(agent.typed(), "1");
    for (answer, why) in [("4", "words of your own"), ("1,4", "option 4 cannot be ticked"), ("1,9", "no option 9")] {
        let done = agtmux(&agent.world, &["respond", &agent.pane, answer]);
        assert!(done.code == Some(5) && done.stderr.contains(why), "{answer}: {}", done.stderr);
    }
    assert_eq!(agent.typed(), "1");
}

#[test]
fn a_digit_is_not_typed_into_somebodys_words() {
    let agent = Asking::start();
    agent.draws(&checkbox_dialog(4, &[4], "a shape of mine"));
    agent.knows("Oval");
    let done = agtmux(&agent.world, &["respond", &agent.pane, "2"]);
    assert!(done.stderr.contains("option 1 could not be selected"), "{}", done.stderr);
    let typed = agent.typed();
    assert!(!typed.is_empty() && typed.replace("\x1b[A", "").is_empty(), "nothing but steps up: {typed:?}");
}

#[test]
fn several_options_are_refused_where_one_is_taken() {
    let agent = Asking::start();
    agent.permission("touch a");
    agent.knows("touch a");
    let done = agtmux(&agent.world, &["respond", &agent.pane, "1,2"]);
    assert!(done.code == Some(5) && done.stderr.contains("it takes one answer, not several"), "{done:?}");
    assert_eq!(agent.typed(), "");
}

/// Two panes: a shell in which an agent can be started, and a shell that is typed into.
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
        wait_for("both are listed", SOON, || (items(&list(&world)).len() == 2).then_some(()));
        Self { world, server, pane, other }
    }

    fn type_line(&self, pane: &str, line: &str) {
        self.server.run(&["send-keys", "-t", pane, "-l", line]);
        self.server.run(&["send-keys", "-t", pane, "Enter"]);
    }

    /// An agent that does what is typed.
    fn start_agent(&self) {
        let program = self.world.shell_copy("claude");
        self.type_line(&self.pane, &format!("{} -c 'while read -r line; do eval \"$line\"; done'", program.display()));
        wait_for("the agent lives", SOON, || (self.agent()["agent_type"] == "claude").then_some(()));
    }

    fn agent(&self) -> Value {
        let listing = list(&self.world);
        items(&listing)
            .iter()
            .find(|item| item["identity"]["pane_id"] == self.pane.as_str())
            .cloned()
            .unwrap_or_default()
    }

    /// A command that types into the other pane, and keeps what came of it under this name.
    fn send_command(&self, name: &str) -> String {
        let dir = self.world.dir().display();
        let program = env!("CARGO_BIN_EXE_agtmux");
        let send = format!("{program} send {} --profile shell --text \"touch {dir}/{name}.typed\"", self.other);
        format!("{send} >{dir}/{name}.said 2>&1; echo $? >{dir}/{name}.code; mv {dir}/{name}.code {dir}/{name}.ended")
    }

    #[track_caller]
    fn wait_for_exit(&self, name: &str) -> (i32, String) {
        let read = |what: &str| fs::read_to_string(self.world.dir().join(format!("{name}.{what}"))).ok();
        let code = wait_for(&format!("{name} has ended"), SOON, || read("ended"));
        (code.trim().parse().expect("a code"), read("said").unwrap_or_default())
    }

    #[track_caller]
    fn assert_refused(&self, name: &str) {
        let (code, said) = self.wait_for_exit(name);
        assert!(code != 0 && said.contains("an agent may not send by itself"), "{name}: {code} {said}");
        assert!(said.contains("actions.allow_from_agents"), "{said}");
        assert!(!self.world.dir().join(format!("{name}.typed")).exists(), "{name} was typed");
    }

    #[track_caller]
    fn assert_allowed(&self, name: &str) {
        let (code, said) = self.wait_for_exit(name);
        assert_eq!(code, 0, "{name}: {said}");
        wait_for("it was typed", SOON, || self.world.dir().join(format!("{name}.typed")).exists().then_some(()));
    }
}

#[test]
fn an_agent_acts_on_nobody_and_a_person_does() {
    let asked = CallerFixture::start("");
    let dir = asked.world.dir().display();
    // A job that was there before the agent.
    let waits = format!("(while [ ! -e {dir}/go ]; do sleep 0.1; done; {}) &", asked.send_command("earlier"));
    asked.type_line(&asked.pane, &waits);
    asked.start_agent();
    asked.type_line(&asked.pane, &asked.send_command("child"));
    asked.assert_refused("child");
    // One that has left its parents behind, in a session of its own.
    let script = asked.world.dir().join("left.sh");
    fs::write(&script, asked.send_command("left")).expect("written");
    asked.type_line(&asked.pane, &format!("setsid -f sh {}", script.display()));
    asked.assert_refused("left");
    fs::write(asked.world.dir().join("go"), "").expect("written");
    asked.assert_allowed("earlier");
    asked.type_line(&asked.other, &asked.send_command("elsewhere"));
    asked.assert_allowed("elsewhere");
    let outside = ["send", &asked.other, "--profile", "shell", "--text", &format!("touch {dir}/outside.typed")];
    assert_eq!(agtmux(&asked.world, &outside).code, Some(0));
    // It is suspended, and its shell is there again.
    asked.server.run(&["send-keys", "-t", &asked.pane, "C-z"]);
    wait_for("it is suspended", SOON, || (asked.agent()["reason_code"] == "suspended").then_some(()));
    asked.type_line(&asked.pane, &asked.send_command("beside"));
    asked.assert_allowed("beside");
    asked.type_line(&asked.pane, "kill -9 %2; kill -9 %1");
}

#[test]
fn a_task_counts_as_whoever_has_started_it() {
    let asked = CallerFixture::start("");
    let task = |name: &str, detached: &str| {
        let script = asked.world.dir().join(format!("{name}.sh"));
        fs::write(&script, asked.send_command(name)).expect("written");
        format!("agtmux task run --session pi-foo-{name} {name} -- '{detached}sh {}'", script.display())
    };
    asked.type_line(&asked.other, &task("persons", ""));
    asked.assert_allowed("persons");
    asked.type_line(&asked.other, &task("left-by-a-person", "setsid -f "));
    asked.assert_allowed("left-by-a-person");
    asked.start_agent();
    asked.type_line(&asked.pane, &task("agents", ""));
    asked.assert_refused("agents");
    asked.type_line(&asked.pane, &task("left", "setsid -f "));
    asked.assert_refused("left");
    // One that another one has started, without what tells of it.
    let inner = task("inner", "env -u AGTMUX_RUN_ID -u TMUX -u TMUX_PANE ");
    let script = asked.world.dir().join("outer.sh");
    fs::write(&script, inner.replacen("agtmux", env!("CARGO_BIN_EXE_agtmux"), 1)).expect("written");
    asked.type_line(&asked.pane, &format!("agtmux task run --session pi-foo-outer outer -- 'sh {}'", script.display()));
    asked.assert_refused("inner");
    let (_, said) = asked.wait_for_exit("agents");
    assert!(said.contains("claude asked for this"), "{said}");
}

#[test]
fn an_agent_acts_where_the_settings_say_so() {
    let asked = CallerFixture::start("[actions]\nallow_from_agents = true\n");
    asked.start_agent();
    asked.type_line(&asked.pane, &asked.send_command("child"));
    asked.assert_allowed("child");
}
