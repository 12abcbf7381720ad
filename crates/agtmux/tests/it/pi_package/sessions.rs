//! Sessions that begin and end, and Pi without what the package needs.

use std::fs;
use std::path::Path;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::real_agents::sandbox::write_program;
use agtmux_testkit::wait_until;

use super::pi_fixture::PiFixture;

const MARK: &str = "[tmux-task notification]";

#[test]
fn a_reloaded_or_continued_session_gets_each_event_once() {
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("first", "exit 1");
    pi.wait_for_messages(1);
    pi.wait_for_request(MARK);
    pi.wait_for_idle();
    pi.run_task("second", "until [ -e second ]; do sleep 0.05; done; exit 2");
    pi.wait_for_idle();
    pi.type_line("/reload");
    pi.wait_for_screen("the reload", |screen| screen.contains("Reloaded") || screen.contains("reloaded"));
    fs::write(pi.project_file("second"), "").expect("written");
    pi.wait_for_messages(2);
    pi.wait_for_idle();
    pi.run_task("third", "until [ -e third ]; do sleep 0.05; done; exit 3");
    pi.wait_for_idle();
    pi.quit();
    fs::write(pi.project_file("third"), "").expect("written");
    wait_until("the task has ended", SOON, || {
        pi.task_events().iter().filter(|event| event["type"] == "exited").count() == 3
    });
    pi.launch("pi -c");
    let messages = pi.wait_for_messages(3);
    let text = |n: usize| messages[n]["content"].as_str().unwrap_or_default().to_owned();
    for (n, code) in [(0, 1), (1, 2), (2, 3)] {
        assert!(text(n).contains(&format!("exited with code {code}")), "{}", text(n));
    }
}

#[test]
fn a_new_session_has_its_own_tasks() {
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("old", "until [ -e old ]; do sleep 0.05; done");
    pi.wait_for_screen("the status line", |screen| screen.contains("tmux: 1 task"));
    pi.wait_for_idle();
    pi.type_line("/new");
    pi.wait_for_screen("the new session", |screen| !screen.contains("tmux: 1 task"));
    pi.run_task("new", "exit 7");
    let messages = pi.wait_for_messages(1);
    let sessions: Vec<_> = pi.task_events().iter().map(|event| event["session"].clone()).collect();
    assert_ne!(sessions[0], messages[0]["details"]["sessionName"]);
    assert!(messages[0]["content"].as_str().is_some_and(|text| text.contains("(new) exited with code 7")));
    fs::write(pi.project_file("old"), "").expect("written");
    wait_until("the old task has ended", SOON, || {
        pi.task_events().iter().any(|event| event["type"] == "exited" && event["task"] == "old")
    });
    pi.prompt("SAY done");
    assert_eq!(pi.task_messages().len(), 1, "the old session is told when it is resumed");
}

#[test]
fn pi_without_agtmux_works_and_says_what_is_missing() {
    let Some(pi) = PiFixture::open() else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_agtmux"));
    let dir = program.parent().expect("a directory").display();
    pi.launch(&format!("PATH=$(echo \"$PATH\" | sed 's#{dir}:##g') pi"));
    pi.wait_for_screen("the notice", |screen| screen.contains("the program agtmux is not on PATH"));
    pi.prompt("RUN echo still-$((40 + 2))");
    pi.wait_for_screen("the output", |screen| screen.contains("still-42"));
}

#[test]
fn the_second_copy_of_the_package_stays_silent() {
    let Some(pi) = PiFixture::open() else { return };
    let package = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../extensions/pi"));
    let copy = pi.sandbox.world().dir().join("copy");
    let copied = pi.sandbox.world().command("cp").arg("-r").arg(package).arg(&copy).status();
    assert!(copied.is_ok_and(|status| status.success()));
    pi.use_packages(&[package, &copy]);
    pi.launch("pi");
    pi.run_task("t", "exit 8");
    pi.wait_for_messages(1);
    pi.wait_for_request(MARK);
    pi.prompt("SAY done");
    assert_eq!((pi.task_messages().len(), pi.request_count(MARK)), (1, 1));
    pi.wait_for_idle();
    // Pi renames a command that two extensions register.
    pi.type_line("/tmux-tasks");
    pi.wait_for_screen("the panel", |screen| screen.contains("Tasks of pi-proj"));
}

#[test]
fn print_mode_starts_tasks_and_ends() {
    let Some(pi) = PiFixture::open() else { return };
    let helper = concat!(env!("CARGO_MANIFEST_DIR"), "/../../extensions/pi/skills/tmux-task-manager/tmux-task-run.sh");
    pi.sandbox.type_text(&format!("pi -p \"RUN {helper} t -- 'exit 9'\"; echo ended-$?"));
    pi.sandbox.press("Enter");
    pi.wait_for_screen("the end of Pi", |screen| screen.contains("ended-0"));
    wait_until("the task has ended", SOON, || pi.task_events().iter().any(|event| event["type"] == "exited"));
    assert_eq!(pi.task_messages().len(), 0);
    assert_eq!(pi.request_count(MARK), 0);
}

#[test]
fn sessions_in_folders_of_the_same_name_do_not_mix() {
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("one", "until [ -e end-one ]; do sleep 0.05; done; exit 1");
    pi.wait_for_idle();
    pi.quit();
    let other = pi.sandbox.world().dir().join("other/proj");
    fs::create_dir_all(&other).expect("the world is writable");
    pi.sandbox.type_text(&format!("cd {}", other.display()));
    pi.sandbox.press("Enter");
    pi.launch("clear; pi");
    pi.run_task("two", "exit 2");
    let messages = pi.wait_for_messages(1);
    assert!(messages[0]["content"].as_str().is_some_and(|text| text.contains("(two) exited with code 2")));
    pi.wait_for_idle();
    assert!(!pi.screen().contains("(one)"), "no notice about another project: {}", pi.screen());
    pi.quit();
    pi.sandbox.type_text(&format!("cd {}", pi.sandbox.workspace.project.display()));
    pi.sandbox.press("Enter");
    pi.launch("clear; pi");
    // The earlier session of this folder is shown with its first message.
    pi.wait_for_screen("the notice", |screen| {
        screen.contains("(RUN") && screen.contains("still has 1 task running: one")
    });
    fs::write(pi.project_file("end-one"), "").expect("written");
    wait_until("the task has ended", SOON, || pi.has_exited("one"));
    pi.prompt("SAY done");
    assert_eq!(pi.task_messages().len(), 1, "the session that started the task is told when it is resumed");
}

#[test]
fn a_forked_session_does_not_repeat_messages() {
    let Some(pi) = PiFixture::start() else { return };
    pi.run_task("one", "exit 1");
    pi.wait_for_messages(1);
    pi.wait_for_request(MARK);
    pi.wait_for_idle();
    pi.type_line("/clone");
    pi.wait_for_screen("the new session", |screen| !screen.contains("tmux: 1 task"));
    pi.run_task("two", "exit 2");
    // The copied session contains the first message, too.
    let is_second = |message: &&serde_json::Value| {
        message["content"].as_str().is_some_and(|text| text.contains("(two) exited with code 2"))
    };
    wait_until("the message", super::pi_fixture::PI_TIMEOUT, || {
        pi.task_messages().iter().filter(is_second).count() == 1
    });
    pi.wait_for_idle();
    assert_eq!(pi.request_count(&format!("{MARK} tmux task")), 2, "a turn for each task");
}

/// Stands between Pi and agtmux: `task list` answers only when a file exists.
const SLOW_LIST: &str = r#"#!/bin/sh
[ "$1 $2" != "task list" ] || [ ! -e slow ] || { touch asked; until [ -e answer ]; do sleep 0.02; done; }
agtmux "$@"
code=$?
[ ! -e asked ] || touch answered
exit $code
"#;

#[test]
fn an_answer_for_a_session_that_has_ended_does_not_end_pi() {
    let Some(pi) = PiFixture::open() else { return };
    let slow = pi.project_file("slow-agtmux");
    write_program(pi.sandbox.world(), &slow, SLOW_LIST);
    pi.launch(&format!("AGTMUX_PROGRAM={} pi", slow.display()));
    pi.run_task("t", "until [ -e end ]; do sleep 0.05; done");
    pi.wait_for_idle();
    fs::write(pi.project_file("slow"), "").expect("written");
    pi.type_line("/tmux-tasks");
    wait_until("the question", SOON, || pi.project_file("asked").exists());
    pi.sandbox.press("Escape");
    pi.wait_for_screen("the panel to close", |screen| !screen.contains("Esc close"));
    pi.type_line("/new");
    pi.wait_for_screen("the new session", |screen| {
        screen.contains("New session started") || !screen.contains("tmux: 1")
    });
    fs::write(pi.project_file("answer"), "").expect("written");
    wait_until("the answer", SOON, || pi.project_file("answered").exists());
    pi.prompt("SAY still here");
    fs::write(pi.project_file("end"), "").expect("written");
}

#[test]
fn pi_starts_and_ends_without_waiting_for_agtmux() {
    let Some(pi) = PiFixture::open() else { return };
    let stuck = pi.project_file("stuck-agtmux");
    let script = "#!/bin/sh\necho $$ >>pids\nuntil [ -e answer ]; do sleep 0.05; done\n";
    write_program(pi.sandbox.world(), &stuck, script);
    pi.launch(&format!("AGTMUX_PROGRAM={} pi", stuck.display()));
    wait_until("the question", SOON, || pi.project_file("pids").exists());
    pi.prompt("SAY hello");
    pi.wait_for_idle();
    pi.quit();
    assert!(!pi.project_file("answer").exists(), "agtmux has not answered");
    fs::write(pi.project_file("answer"), "").expect("written");
}
