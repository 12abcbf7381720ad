//! Snapshots of the help of every command. `INSTA_UPDATE=always cargo test --test it help::` accepts a change.

use agtmux_testkit::TestWorld;
use agtmux_testkit::agtmux::{agtmux, listed_commands, world};

#[track_caller]
fn help(world: &TestWorld, command: &[String]) -> String {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    let result = agtmux(world, &args);
    assert_eq!(result.code, Some(0), "{args:?}: {}", result.stderr);
    assert_eq!(result.stderr, "", "{args:?}");
    result.text()
}

/// The help of a command and of all its subcommands.
fn all_help(world: &TestWorld, command: &[String]) -> String {
    let text = help(world, command);
    let mut all = format!("$ agtmux {}\n{text}", [command, &["--help".to_owned()]].concat().join(" "));
    for name in listed_commands(&text) {
        all.push('\n');
        all.push_str(&all_help(world, &[command, &[name]].concat()));
    }
    all
}

#[test]
fn the_help_of_every_command_is_as_recorded() {
    let world = world();
    let overview = help(&world, &[]);
    insta::assert_snapshot!("agtmux", overview);
    let commands = listed_commands(&overview);
    assert!(commands.len() >= 20, "{commands:?}");
    for command in commands {
        let text = all_help(&world, std::slice::from_ref(&command));
        insta::assert_snapshot!(command, text);
    }
}

#[test]
fn the_short_help_of_agtmux_fits_on_a_screen() {
    let world = world();
    let result = agtmux(&world, &["-h"]);
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    assert!(result.text().lines().count() <= 60, "{}", result.text());
}
