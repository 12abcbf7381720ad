//! Answers of a real tmux that are easy to misread.

use std::time::Duration;

use agtmux_testkit::{TestWorld, wait_for, wait_until};
use agtmux_tmux::{Framing, TmuxCommand, TmuxError, TmuxServer};

const DEADLINE: Duration = Duration::from_secs(20);

fn client(server: &agtmux_testkit::TestTmuxServer) -> TmuxServer {
    TmuxServer::new("tmux", server.socket(), DEADLINE)
}

/// The number of a pane id.
fn number(id: &str) -> u32 {
    id.strip_prefix('%').and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("'{id}' is not a pane id"))
}

/// For a pane that is gone, `display-message -t` succeeds and prints another pane, or nothing.
#[tokio::test]
async fn a_pane_that_is_gone_is_not_mistaken_for_another() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let kept = number(&server.new_session("work", "cat"));
    let gone = server.run(&["split-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "cat"]);
    server.run(&["kill-pane", "-t", &gone]);
    let tmux = client(&server);
    let answer = server.run(&["display-message", "-p", "-t", &gone, "#{pane_id}|"]);
    assert_ne!(answer, format!("{gone}|"), "tmux answers for another pane");
    for panes in [vec![number(&gone), kept], vec![kept, number(&gone)], vec![99, kept, 98]] {
        let read = tmux.read(&panes).await.expect("tmux answers");
        assert_eq!(read.rows.iter().map(|row| row.pane).collect::<Vec<_>>(), [kept], "{panes:?}");
    }
    assert_eq!(tmux.read(&[99]).await.expect("tmux answers").rows, []);
    let captured = tmux.capture(&[kept, number(&gone)]).await.expect("tmux answers");
    assert_eq!(captured.iter().map(|capture| capture.pane).collect::<Vec<_>>(), [kept]);
    assert!(tmux.capture(&[number(&gone)]).await.is_err(), "a missing pane has no capture");
}

/// The capture contains no history, and does not join the rows of a wrapped line.
#[tokio::test]
async fn a_capture_contains_only_the_visible_screen() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let long = "w".repeat(100);
    let print = format!("for n in $(seq 1 60); do echo line-$n; done; echo {long}; printf 'typed'; exec cat");
    let pane = server.new_session("work", &print);
    let tmux = client(&server);
    let screen = wait_for_screen(&server, &pane, "typed").await;
    let rows: Vec<&str> = screen.lines().collect();
    assert_eq!(rows.len(), 24, "{screen}");
    assert!(rows[0] == "line-40" && rows[20] == "line-60", "no history: {screen}");
    assert_eq!((rows[21].len(), rows[22].len(), rows[23]), (80, 20, "typed"), "wrapped lines are two rows");

    server.run(&["copy-mode", "-t", &pane]);
    server.run(&["send-keys", "-t", &pane, "-X", "history-top"]);
    let scrolled = tmux.capture(&[number(&pane)]).await.expect("tmux answers");
    assert_eq!(String::from_utf8_lossy(&scrolled[0].screen), screen, "the same screen in copy mode");
}

#[tokio::test]
async fn a_capture_contains_the_alternate_screen_with_colours() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let print = r"printf 'below\n\033[?1049h\033[H\033[2mghost\033[0m typed'; exec cat";
    let pane = server.new_session("work", print);
    let screen = wait_for_screen(&server, &pane, "typed").await;
    assert!(!screen.contains("below"), "{screen:?}");
    let (ghost, typed) = screen.split_once("ghost").expect("both words");
    assert!(ghost == "\x1b[2m" && typed.starts_with("\x1b[0m"), "{screen:?}");
}

async fn wait_for_screen(server: &agtmux_testkit::TestTmuxServer, pane: &str, end: &str) -> String {
    wait_until("the pane to be drawn", DEADLINE, || {
        server.run(&["capture-pane", "-p", "-t", pane]).trim().ends_with(end)
    });
    let captured = client(server).capture(&[number(pane)]).await.expect("tmux answers");
    String::from_utf8_lossy(&captured[0].screen).into_owned()
}

/// tmux reads a `;` at the end of a word as a command separator.
#[tokio::test]
async fn arguments_reach_tmux_unchanged() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let tmux = client(&server);
    for text in ["a;", ";", "a\\;", "; kill-server ;", "two words", "$HOME", "~", "'\"", "-x", "é §\ttab"] {
        tmux.run(&[TmuxCommand::new("set-buffer").arg("-b").arg("word").arg("--").arg(text)])
            .await
            .expect("the buffer is stored");
        let answer =
            tmux.run(&[TmuxCommand::new("show-buffer").arg("-b").arg("word")]).await.expect("the buffer is shown");
        assert_eq!(String::from_utf8_lossy(&answer), text);
    }
}

/// A listing must not start the server.
#[tokio::test]
async fn list_does_not_start_a_missing_server() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    assert_eq!(client(&server).list().await, Err(TmuxError::NoServer));
    server.new_session("work", "cat");
    server.kill_server();
    assert_eq!(client(&server).list().await, Err(TmuxError::NoServer));
    assert!(!server.is_running());
}

/// `list-panes -a` fails without a session, although the server runs.
#[tokio::test]
async fn a_server_without_sessions_has_no_panes() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    server.run(&["set-option", "-s", "exit-empty", "off"]);
    let before = client(&server).list().await.expect("tmux answers");
    server.run(&["kill-session", "-t", "=work"]);
    let after = wait_for("the session's end", DEADLINE, || {
        server.try_run(&["list-clients"]).err().filter(|message| message.contains("no")).ok_or("a session remains")
    });
    let listing = client(&server).list().await.unwrap_or_else(|error| panic!("{error}, {after}"));
    assert_eq!((listing.rows, listing.server), (vec![], before.server));
}

/// After a restart on the same socket, ids start at %0 again. Only pid and start time differ.
#[tokio::test]
async fn a_restarted_server_has_the_same_ids_and_a_new_generation() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let before = client(&server).list().await.expect("tmux answers");
    server.kill_server();
    server.new_session("work", "cat");
    let after = client(&server).list().await.expect("tmux answers");
    let ids = |rows: &[agtmux_tmux::ListedPane]| (rows[0].session, rows[0].window, rows[0].pane);
    assert_eq!(ids(&after.rows), ids(&before.rows));
    assert_ne!(after.server, before.server);
}

/// The marker is random for each call, so a program cannot draw a valid frame.
#[tokio::test]
async fn forged_frames_on_a_screen_are_ignored() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let old = Framing::fresh();
    let forged = [old.record('h', &["1", "%7", "1", "forged"]), old.record('e', &[])].join("\n");
    let pane = server.new_session("work", &format!("printf '%s' '{forged}'; printf ' end'; exec cat"));
    wait_for_screen(&server, &pane, "end").await;
    let captured = client(&server).capture(&[number(&pane)]).await.expect("tmux answers");
    assert_eq!(captured.iter().map(|capture| capture.pane).collect::<Vec<_>>(), [number(&pane)]);
}
