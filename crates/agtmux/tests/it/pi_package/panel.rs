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
