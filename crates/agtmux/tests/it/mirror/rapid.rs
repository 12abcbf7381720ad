//! Many commands in a row, with the person typing in between.

use std::sync::atomic::{AtomicBool, Ordering};

use agtmux_testkit::agtmux::soak;
use serde_json::Value;

use super::for_each_shell;

/// What the person types.
fn line(number: usize) -> String {
    format!("echo person {number}")
}

/// The output without what the person has typed while the command ran. The terminal echoes these keys into the output.
fn without_keys(output: &str, typed: usize) -> String {
    (1..=typed).rev().fold(output.to_owned(), |output, number| output.replace(&format!("{}\n", line(number)), ""))
}

#[test]
fn rapid_commands_and_the_keys_of_the_person_never_mix() {
    let count = if soak() { 10_000 } else { 25 };
    for_each_shell(|fixture| {
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
            let found = (without_keys(&result.text(), typed), result.code);
            let wanted = (format!("agent {n}\n"), i32::try_from(n % 50).ok());
            assert_eq!(found, wanted, "{}: {:?} {}", fixture.shell, result.text(), result.stderr);
        }
        let items = fixture.activity(typed.min(100));
        let commands: Vec<&str> = items.iter().filter_map(|item| item["command"].as_str()).collect();
        let wanted: Vec<String> = (typed + 1 - items.len()..=typed).map(line).collect();
        assert_eq!(commands, wanted, "{}: each line ran once, in order", fixture.shell);
        // A key of agtmux that comes while a command of the person starts is echoed by the terminal.
        let without_codes = |text: &str| text.replace("^[[24;8~", "").replace("^[[24;7~", "");
        let is_own = |item: &Value| {
            let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
            without_codes(&text("output")) == text("command").replace("echo ", "") + "\n"
        };
        let wrong: Vec<_> = items.iter().filter(|item| !is_own(item)).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", fixture.shell);
    });
}
