//! Many commands in a row, with the person typing in between.

use std::sync::atomic::{AtomicBool, Ordering};

use agtmux_testkit::agtmux::{SOON, soak};
use agtmux_testkit::{process, wait_until};
use serde_json::Value;

use super::{MirrorFixture, for_each_shell};

/// What the person types.
fn line(number: usize) -> String {
    format!("echo person {number}")
}

/// The output without what the person has typed while the command ran. The terminal echoes these keys into the output.
fn without_keys(output: &str) -> String {
    let (mut kept, mut rest) = (String::new(), output);
    while let Some(at) = rest.find("echo person ") {
        let (before, typed) = rest.split_at(at);
        let after = typed.trim_start_matches("echo person ").trim_start_matches(|c: char| c.is_ascii_digit());
        kept += before;
        rest = after.strip_prefix('\n').unwrap_or(after);
    }
    kept + rest
}

#[test]
fn rapid_commands_and_the_keys_of_the_person_never_mix_in_bash() {
    run_while_the_person_types("bash");
}

#[test]
fn rapid_commands_and_the_keys_of_the_person_never_mix_in_zsh() {
    run_while_the_person_types("zsh");
}

#[test]
fn rapid_commands_and_the_keys_of_the_person_never_mix_in_fish() {
    run_while_the_person_types("fish");
}

fn run_while_the_person_types(shell: &'static str) {
    let count = if soak() { 10_000 } else { 25 };
    let Some(fixture) = MirrorFixture::with_shell(shell) else { return };
    let (pane, over) = (fixture.pane(), AtomicBool::new(false));
    let mut results = Vec::new();
    let typed = std::thread::scope(|scope| {
        let person = scope.spawn(|| {
            let mut typed = 0;
            while !over.load(Ordering::Relaxed) {
                typed += 1;
                // One write, so that no key of agtmux comes between the text and Enter.
                fixture.server.run(&["send-keys", "-t", &pane, &line(typed), "Enter"]);
                fixture.activity(typed.min(100));
            }
            typed
        });
        for n in 0..count {
            results.push(fixture.exec(&format!("echo agent {n}; sh -c 'exit {}'", n % 50)));
        }
        over.store(true, Ordering::Relaxed);
        person.join().expect("the person types to the end")
    });
    for (n, result) in results.iter().enumerate() {
        let found = (without_keys(&result.text()), result.code);
        let wanted = (format!("agent {n}\n"), i32::try_from(n % 50).ok());
        assert_eq!(found, wanted, "{}: {:?} {}", fixture.shell, result.text(), result.stderr);
    }
    let items = fixture.activity(typed.min(100));
    let commands: Vec<&str> = items.iter().filter_map(|item| item["command"].as_str()).collect();
    let wanted: Vec<String> = (typed + 1 - items.len()..=typed).map(line).collect();
    assert_eq!(commands, wanted, "{}: each line ran once, in order", fixture.shell);
    // A key of agtmux that comes while a command of the person starts is echoed by the terminal.
    let without_codes = |text: &str| text.replace("^[[24;8~", "").replace("^[[24;7~", "");
    // The person types the next line before the output of the last one.
    let shown = |text: &str| without_keys(&without_codes(text));
    let is_own = |item: &Value| {
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        shown(&text("output")) == text("command").replace("echo ", "") + "\n"
    };
    // The outputs of earlier commands are no longer stored.
    let is_stored = |item: &&Value| item["truncated"] == false;
    assert!(items.iter().rev().take(20).all(|item| is_stored(&item)), "{}", fixture.shell);
    let wrong: Vec<_> = items.iter().filter(is_stored).filter(|item| !is_own(item)).collect();
    assert!(wrong.is_empty(), "{}: {wrong:?}", fixture.shell);
}

/// While commands run, the daemon is killed again and again. Each command writes a line, so that it is known how often it
/// ran.
#[test]
fn rapid_commands_survive_a_daemon_that_is_killed_at_random() {
    let count = if soak() { 1000 } else { 12 };
    for_each_shell(|fixture| {
        let log = fixture.world.dir().join("tmp/runs");
        std::fs::write(&log, "").expect("the world is writable");
        let over = AtomicBool::new(false);
        let (results, kills) = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                let (mut kills, mut next) = (0_usize, 1);
                while !over.load(Ordering::Relaxed) {
                    let lines = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
                    wait_until("some commands", SOON, || lines() >= next || over.load(Ordering::Relaxed));
                    kills += usize::from(daemon_pid(fixture).is_some_and(try_kill));
                    next = lines() + 1 + kills * 7 % 11;
                }
                kills
            });
            let results: Vec<_> = (0..count)
                .map(|n| {
                    fixture.exec(&format!("echo {n} >>{}; echo agent {n}; sh -c 'exit {}'", log.display(), n % 50))
                })
                .collect();
            over.store(true, Ordering::Relaxed);
            (results, killer.join().expect("the killer ends"))
        });
        let runs = std::fs::read_to_string(&log).expect("text");
        let mut unknown = 0;
        for (n, result) in results.iter().enumerate() {
            let times = runs.lines().filter(|line| *line == n.to_string()).count();
            let is_right =
                result.text() == format!("agent {n}\n") && result.code == i32::try_from(n % 50).ok() && times == 1;
            let is_reported = !result.stderr.is_empty() && times <= 1;
            assert!(is_right || is_reported, "{}: {n} ran {times} times: {result:?}", fixture.shell);
            unknown += usize::from(!is_right);
        }
        assert!(kills > 0, "{}: the daemon was killed", fixture.shell);
        eprintln!("{}: {count} commands, {kills} kills, {unknown} results unknown or not run", fixture.shell);
    });
}

/// The pid of the daemon if one runs. Starts none.
fn daemon_pid(fixture: &MirrorFixture) -> Option<u32> {
    let is_daemon = |pid: &u32| {
        let argv = process::argv(*pid);
        argv.iter().any(|word| word == b"daemon") && argv.iter().any(|word| word == b"run")
    };
    fixture.world.processes().into_iter().find(is_daemon)
}

fn try_kill(pid: u32) -> bool {
    process::signal(pid, rustix::process::Signal::KILL)
}
