//! Many commands in a row, with the person typing in between.

use std::sync::atomic::{AtomicBool, Ordering};

use agtmux_testkit::agtmux::soak;
use serde_json::Value;

use super::for_each_shell;

#[test]
fn rapid_commands_and_the_keys_of_the_person_never_mix() {
    let count = if soak() { 10_000 } else { 40 };
    for_each_shell(|fixture| {
        let (pane, over) = (fixture.pane(), AtomicBool::new(false));
        let typed = std::thread::scope(|scope| {
            let person = scope.spawn(|| {
                let mut typed = 0;
                while !over.load(Ordering::Relaxed) {
                    typed += 1;
                    fixture.server.run(&["send-keys", "-t", &pane, "-l", &format!("echo person {typed}")]);
                    fixture.server.run(&["send-keys", "-t", &pane, "Enter"]);
                    fixture.activity(typed.min(100));
                }
                typed
            });
            for n in 0..count {
                fixture.assert_exec(
                    &format!("echo agent {n}; sh -c 'exit {}'", n % 50),
                    &format!("agent {n}\n"),
                    n % 50,
                );
            }
            over.store(true, Ordering::Relaxed);
            person.join().expect("the person types to the end")
        });
        let items = fixture.activity(typed.min(100));
        let is_own = |item: &Value| {
            let command = item["command"].as_str().unwrap_or_default();
            command.starts_with("echo person ") && item["output"] == format!("{}\n", &command["echo ".len()..])
        };
        let wrong: Vec<_> = items.iter().filter(|item| !is_own(item)).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", fixture.shell);
    });
}
