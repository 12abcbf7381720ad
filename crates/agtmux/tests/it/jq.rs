//! `--jq` through the real program.

use agtmux_testkit::agtmux::{SOON, agtmux, list, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

/// A world with a fake claude in %0. The title of the pane has a character that changes the direction of text.
fn world_with_claude() -> (TestWorld, TestTmuxServer) {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", &world.fake_agent_command("claude"));
    start(&world);
    server.run(&["select-pane", "-t", "%0", "-T", "\u{202e}zebra"]);
    wait_for("the agent and its title", SOON, || {
        let listing = list(&world).to_string();
        if listing.contains("zebra") && listing.contains("claude") { Ok(()) } else { Err(listing) }
    });
    (world, server)
}

#[test]
fn a_filter_prints_texts_without_quotes_and_other_values_as_json() {
    let (world, _server) = world_with_claude();
    for (filter, expected) in [
        (".items[].agent_type", "claude\n"),
        (
            ".items[0] | .identity.pane_id, .dead, .needs_action, {agent_type}",
            "%0\nnull\nfalse\n{\"agent_type\":\"claude\"}\n",
        ),
        (".items[] | select(.agent_type == \"codex\")", ""),
        (".items[0].title", "\u{202e}zebra\n"),
        ("[.items[0].title]", "[\"\\u202ezebra\"]\n"),
    ] {
        let filtered = agtmux(&world, &["list", "panes", "--jq", filter]);
        assert_eq!((filtered.code, filtered.text().as_str()), (Some(0), expected), "{filter}: {}", filtered.stderr);
    }
    let lines = agtmux(&world, &["watch", "--once", "--scope", "panes", "--jq", ".item.agent_type // .type"]);
    assert!(lines.text().lines().any(|line| line == "claude"), "{lines:?}");
    let table = agtmux(&world, &["watch", "--once", "--format", "table", "--jq", "."]);
    assert!(table.code == Some(2) && table.stderr.contains("--format jsonl"), "{table:?}");
}

#[test]
fn errors_of_a_filter_are_reported() {
    let (world, _server) = world_with_claude();
    let wrong = agtmux(&world, &["list", "--jq", ".items | lenght"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("unknown filter 'lenght', at character 10"), "{}", wrong.stderr);
    let unfit = agtmux(&world, &["list", "--jq", ".schema_version, .items.state"]);
    assert_eq!((unfit.code, unfit.text().as_str()), (Some(1), "2\n"), "{unfit:?}");
    assert!(unfit.stderr.contains("does not fit the data"), "{}", unfit.stderr);
}

#[test]
fn texts_are_sanitized_on_a_terminal() {
    let (world, _server) = world_with_claude();
    let terminal = world.tmux("terminal");
    let command = format!("{AGTMUX} list --jq '.items[0].title'; echo code=$?; exec cat");
    terminal.new_session("here", &format!("unset TMUX TMUX_PANE; {command}"));
    let screen = || terminal.run(&["capture-pane", "-p", "-J", "-t", "%0"]);
    wait_until("the end of the command", SOON, || screen().contains("code=0"));
    assert!(screen().contains("\\u{202e}zebra"), "{}", screen());
}
