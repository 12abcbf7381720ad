//! The shell of an existing pane becomes a shared terminal.

use std::fs;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::{TestWorld, wait_for, wait_until};
use serde_json::json;

use super::MirrorFixture;

/// A pane of the person in which a shell shows its prompt.
struct PersonPane {
    fixture: MirrorFixture,
    pane: String,
}

fn write_start_files(world: &TestWorld) {
    let home = world.home();
    fs::write(home.join(".bashrc"), "PS1='two rows\\n$ '\n").expect("the world is writable");
    fs::write(home.join(".zshrc"), "PS1=$'two rows\\n%# '\nHISTFILE=~/.zsh_history\nSAVEHIST=9\n").expect("written");
    let fish = world.dir().join("config/fish");
    fs::create_dir_all(&fish).expect("created");
    fs::write(fish.join("config.fish"), "function fish_prompt; echo two rows; echo '$ '; end\n").expect("written");
    // Without hooks, only the last row of a prompt is known.
    fs::write(home.join(".env"), "PS1='not two rows $ '\n").expect("written");
}

impl PersonPane {
    /// `None` if the shell is not installed.
    fn with_shell(shell: &'static str) -> Option<Self> {
        let fixture = MirrorFixture::without_terminal(shell, write_start_files)?;
        let start = if shell == "dash" { "ENV=~/.env exec dash -i" } else { &format!("exec {shell}") };
        let pane = fixture.server.new_session("mine", start);
        let person = Self { fixture, pane };
        wait_until("the prompt", SOON, || person.screen().contains("two rows"));
        person.type_line("echo before");
        wait_until("its output", SOON, || person.screen().matches("two rows").count() == 2);
        Some(person)
    }

    fn screen(&self) -> String {
        self.fixture.server.run(&["capture-pane", "-p", "-t", &self.pane]).trim_end().to_owned()
    }

    /// The screen and the row of the cursor.
    fn screen_and_row(&self) -> (String, String) {
        (self.screen(), self.fixture.server.run(&["display-message", "-p", "-t", &self.pane, "#{cursor_y}"]))
    }

    fn type_line(&self, line: &str) {
        self.fixture.server.run(&["send-keys", "-t", &self.pane, "-l", "--", line]);
        self.fixture.server.run(&["send-keys", "-t", &self.pane, "Enter"]);
    }

    /// Makes the pane a shared terminal. Returns the answer.
    #[track_caller]
    fn adopt(&self) -> serde_json::Value {
        let done = self.fixture.mirror(&["start", "--pane", &self.pane, "--json"]);
        assert_eq!(done.code, Some(0), "{}: {}", self.fixture.shell, done.stderr);
        done.json()
    }
}

#[test]
fn an_adopted_shell_shows_no_trace_and_has_marks() {
    for shell in ["bash", "zsh", "fish"] {
        let Some(person) = PersonPane::with_shell(shell) else { continue };
        let before = person.screen_and_row();
        let item = person.adopt();
        assert_eq!((&item["pane_id"], &item["method"]), (&json!(person.pane), &json!("marks")), "{shell}");
        wait_for("the screen as before", SOON, || {
            let now = person.screen_and_row();
            if now == before { Ok(()) } else { Err(format!("{shell}: {before:?}\n-- now --\n{now:?}")) }
        });
        person.fixture.assert_exec("printf 'a\\tb'", "a\tb", 0);
        person.fixture.assert_exec("sh -c 'exit 3'", "", 3);
        person.type_line("echo person");
        assert_eq!(person.fixture.activity(1)[0]["output"], "person\n", "{shell}");
    }
}

#[test]
fn what_stays_in_the_history_is_reported() {
    for (shell, ignore, list) in [
        ("bash", "HISTCONTROL=", "history"),
        ("bash", "HISTCONTROL=ignoreboth", "history"),
        ("zsh", "unsetopt hist_ignore_space", "fc -l 1"),
        ("zsh", "setopt hist_ignore_space", "fc -l 1"),
        ("fish", "true", "history"),
    ] {
        let Some(person) = PersonPane::with_shell(shell) else { continue };
        person.type_line(ignore);
        wait_until("the prompt", SOON, || person.screen().matches("two rows").count() == 3);
        let notes = person.adopt()["notes"].to_string();
        assert!(notes.contains("PAGER=cat"), "{notes}");
        let history = person.fixture.exec(list).text();
        let stays = history.contains("/adopt");
        assert!(history.contains("echo before"), "{shell}: {history}");
        assert_eq!(stays, ignore.starts_with("unsetopt"), "{shell} {ignore}: {history}");
        assert_eq!(notes.contains("history"), stays, "{shell} {ignore}: {notes}");
    }
}

#[test]
fn stop_leaves_the_pane_open_and_it_can_be_adopted_again() {
    for shell in ["bash", "zsh", "fish", "dash"] {
        let Some(person) = PersonPane::with_shell(shell) else { continue };
        for round in 0..2 {
            person.adopt();
            assert_eq!(person.fixture.exec("echo agent").text(), "agent\n", "{shell} {round}");
            let done = person.fixture.mirror(&["stop"]);
            assert!(done.text().starts_with("released"), "{shell}: {} {}", done.text(), done.stderr);
            assert!(person.fixture.json(&["status", "--json"])["items"].as_array().is_some_and(Vec::is_empty));
        }
        let file = person.fixture.world.dir().join("tmp/works");
        person.type_line(&format!("touch {}", file.display()));
        wait_until("the shell of the person", SOON, || file.exists());
    }
}

#[test]
fn a_pane_without_an_empty_prompt_is_refused_and_left_alone() {
    let Some(person) = PersonPane::with_shell("bash") else { return };
    let adopt = || person.fixture.mirror(&["start", "--pane", &person.pane]);
    person.fixture.server.run(&["send-keys", "-t", &person.pane, "-l", "echo half"]);
    wait_until("the half-written line", SOON, || person.screen().ends_with("echo half"));
    let done = adopt();
    assert!(done.stderr.contains("does not show an empty prompt"), "{}", done.stderr);
    assert!(person.screen().ends_with("echo half"), "{}", person.screen());
    person.type_line("; cat");
    wait_until("the running program", SOON, || person.screen().ends_with("half"));
    let done = adopt();
    assert_eq!(done.code, Some(5), "{}", done.stderr);
    assert!(!person.screen().contains("adopt"), "{}", person.screen());
    let left: Vec<_> = fs::read_dir(person.fixture.world.state_dir().join("mirrors")).expect("a directory").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_pipe_of_the_person_is_kept_when_a_pane_is_adopted() {
    for shell in ["bash", "zsh", "fish"] {
        let Some(person) = PersonPane::with_shell(shell) else { continue };
        let log = person.fixture.world.dir().join("tmp/log");
        person.fixture.server.run(&["pipe-pane", "-t", &person.pane, &format!("cat >{}", log.display())]);
        assert_eq!(person.adopt()["method"], "screen", "{shell}");
        person.fixture.assert_exec("echo agent; sh -c 'exit 4'", "agent\n", 4);
        wait_until("the log", SOON, || fs::read_to_string(&log).is_ok_and(|text| text.contains("agent")));
    }
}
