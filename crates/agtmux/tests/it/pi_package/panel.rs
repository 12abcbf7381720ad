//! The command `/tmux-tasks`.

use std::fs;

use super::pi_fixture::PiFixture;

/// Pi, while the settings of agtmux allow agents no actions. Pi may end its own tasks.
fn start_with_default_settings() -> Option<PiFixture> {
    let pi = PiFixture::open()?;
    pi.sandbox.forbid_agent_actions();
    pi.launch("pi");
    Some(pi)
}

#[test]
fn the_panel_lists_tasks_shows_their_output_and_closes() {
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("server", "echo listening on 8080; until [ -e go ]; do sleep 0.05; done");
    pi.wait_for_idle();
    pi.type_line("/tmux-tasks");
    pi.wait_for_screen("the panel", |screen| {
        screen.contains("server") && screen.contains("running") && screen.contains("│ listening on 8080")
    });
    pi.sandbox.press("Enter");
    pi.wait_for_screen("the details", |screen| screen.contains("command: echo listening on 8080;"));
    pi.sandbox.press("Escape");
    pi.wait_for_screen("the list", |screen| screen.contains("Esc close"));
    // A narrow and low terminal must not end Pi.
    pi.sandbox.server.run(&["resize-window", "-t", &pi.sandbox.pane, "-x", "30", "-y", "12"]);
    pi.wait_for_screen("the narrow panel", |screen| {
        screen.lines().any(|line| line.starts_with("Tasks of pi-proj") && line.trim_end().ends_with("..."))
    });
    pi.sandbox.server.run(&["resize-window", "-t", &pi.sandbox.pane, "-x", "120", "-y", "40"]);
    pi.wait_for_screen("the wide panel", |screen| screen.contains('│'));
    pi.sandbox.press("k");
    pi.wait_for_screen("the question", |screen| screen.contains("Kill server?"));
    pi.sandbox.press("n");
    pi.wait_for_screen("the list", |screen| screen.contains("Esc close"));
    pi.sandbox.press("Escape");
    pi.wait_for_screen("the panel to close", |screen| !screen.contains("Tasks of pi-"));
    pi.prompt("SAY still here");
    fs::write(pi.project_file("go"), "").expect("written");
}

#[test]
fn a_task_killed_in_the_panel_is_reported_as_killed_by_the_user() {
    let Some(pi) = start_with_default_settings() else { return };
    pi.run_task("server", "sleep 1000");
    pi.wait_for_idle();
    pi.type_line("/tmux-tasks");
    pi.wait_for_screen("the panel", |screen| screen.contains("running"));
    pi.sandbox.press("k");
    pi.wait_for_screen("the question", |screen| screen.contains("Kill server?"));
    pi.sandbox.press("y");
    let messages = pi.wait_for_messages(1);
    let text = messages[0]["content"].as_str().unwrap_or_default();
    assert!(text.contains("(server) disappeared from session after the user manually killed it"), "{text}");
}

#[test]
fn the_panel_kills_only_the_task_that_it_asked_about() {
    let Some(pi) = start_with_default_settings() else { return };
    for name in ["first", "second", "third", "fourth"] {
        pi.run_task(name, "sleep 1000");
        pi.wait_for_idle();
    }
    let stop = |name: &str| {
        let session = pi.sandbox.server.run(&["list-sessions", "-F", "#{session_name}"]);
        let session = session.lines().find(|name| name.starts_with("pi-")).expect("a session").to_owned();
        let (done, _, error) = pi.sandbox.run_agtmux(&["task", "stop", "--session", &session, "--window", name]);
        assert!(done, "{error}");
    };
    let selected = |screen: &str| screen.lines().find(|line| line.contains('→')).unwrap_or_default().to_owned();
    pi.type_line("/tmux-tasks");
    pi.wait_for_screen("the panel", |screen| screen.contains("fourth") && selected(screen).contains("first"));
    pi.sandbox.press("Down");
    pi.wait_for_screen("the second task", |screen| selected(screen).contains("second"));
    // The list changes while the panel asks: the question keeps its task.
    pi.sandbox.press("k");
    pi.wait_for_screen("the question", |screen| screen.contains("Kill second?"));
    stop("first");
    pi.wait_for_screen("three tasks", |screen| screen.contains("tmux: 3 tasks"));
    pi.sandbox.press("y");
    pi.wait_for_screen("the other task", |screen| {
        screen.contains("Killed second.") && screen.contains("tmux: 2 tasks") && selected(screen).contains("third")
    });
    // The task ends while the panel asks: nothing is left to kill.
    pi.sandbox.press("k");
    pi.wait_for_screen("the question", |screen| screen.contains("Kill third?"));
    stop("third");
    pi.wait_for_screen("the end of the question", |screen| screen.contains("third is no longer in the list"));
    pi.sandbox.press("y");
    pi.wait_for_screen("the task that was not asked about", |screen| selected(screen).contains("fourth"));
    pi.sandbox.press("Escape");
    pi.wait_for_screen("the panel to close", |screen| !screen.contains("Tasks of pi-"));
    assert!(pi.screen().contains("tmux: 1 task"), "{}", pi.screen());
}

#[test]
fn the_subcommands_remove_ended_tasks_and_kill_all() {
    let Some(pi) = start_with_default_settings() else { return };
    pi.run_task("short", "exit 0");
    pi.wait_for_messages(1);
    pi.run_task("long", "sleep 1000");
    pi.wait_for_screen("two tasks", |screen| screen.contains("tmux: 2 tasks"));
    pi.wait_for_idle();
    pi.type_line("/tmux-tasks prune-dead");
    pi.wait_for_screen("one task", |screen| screen.contains("tmux: 1 task"));
    pi.type_line("/tmux-tasks kill-all");
    pi.wait_for_screen("the question", |screen| screen.contains("Kill all tasks of this session?"));
    pi.sandbox.press("Escape");
    pi.wait_for_screen("the question to close", |screen| !screen.contains("Kill all tasks of this session?"));
    pi.type_line("/tmux-tasks kill-all --yes");
    pi.wait_for_screen("no tasks", |screen| !screen.contains("tmux: 1 task"));
    assert_eq!(pi.task_messages().len(), 1, "killed by the user: no message");
}
