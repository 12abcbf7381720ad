//! What a real tmux answers where it would be easy to be misled by it.

use std::time::Duration;

use agtmux_testkit::{TestWorld, wait_for, wait_until};
use agtmux_tmux::{Framing, TmuxCommand, TmuxError, TmuxServer};

const SOON: Duration = Duration::from_secs(20);

fn asked(server: &agtmux_testkit::TestTmuxServer) -> TmuxServer {
    TmuxServer::new("tmux", server.socket(), SOON)
}

/// The number of a pane.
fn number(id: &str) -> u32 {
    id.strip_prefix('%').and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("'{id}' is no pane"))
}

/// `display-message -t %99` succeeds and speaks of another pane, or of none.
#[tokio::test]
async fn a_pane_that_is_gone_is_not_mistaken_for_another() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let stays = number(&server.new_session("work", "cat"));
    let goes = server.run(&["split-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "cat"]);
    server.run(&["kill-pane", "-t", &goes]);
    let tmux = asked(&server);
    let misled = server.run(&["display-message", "-p", "-t", &goes, "#{pane_id}|"]);
    assert_ne!(misled, format!("{goes}|"), "tmux answers, but not for the pane that was meant");
    for question in [vec![number(&goes), stays], vec![stays, number(&goes)], vec![99, stays, 98]] {
        let read = tmux.read(&question).await.expect("it answers");
        assert_eq!(read.rows.iter().map(|row| row.pane).collect::<Vec<_>>(), [stays], "{question:?}");
    }
    assert_eq!(tmux.read(&[99]).await.expect("it answers").rows, []);
    let captured = tmux.capture(&[stays, number(&goes)]).await.expect("it answers");
    assert_eq!(captured.iter().map(|capture| capture.pane).collect::<Vec<_>>(), [stays]);
    assert!(tmux.capture(&[number(&goes)]).await.is_err(), "nothing is shown of nobody");
}

/// A capture from the history has the whole screen besides, and one with joined lines has other rows than the screen.
#[tokio::test]
async fn a_capture_is_the_screen_and_nothing_but_it() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let long = "w".repeat(100);
    let print = format!("for n in $(seq 1 60); do echo line-$n; done; echo {long}; printf 'typed'; exec cat");
    let pane = server.new_session("work", &print);
    let tmux = asked(&server);
    let screen = wait_for_screen(&server, &pane, "typed").await;
    let rows: Vec<&str> = screen.lines().collect();
    assert_eq!(rows.len(), 24, "{screen}");
    assert!(rows[0] == "line-40" && rows[20] == "line-60", "nothing of the history: {screen}");
    assert_eq!((rows[21].len(), rows[22].len(), rows[23]), (80, 20, "typed"), "wrapped lines are two rows");

    server.run(&["copy-mode", "-t", &pane]);
    server.run(&["send-keys", "-t", &pane, "-X", "history-top"]);
    let scrolled = tmux.capture(&[number(&pane)]).await.expect("it answers");
    assert_eq!(String::from_utf8_lossy(&scrolled[0].screen), screen, "also while somebody scrolls");
}

#[tokio::test]
async fn a_capture_shows_the_screen_that_is_in_use_with_its_colours() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let print = r"printf 'below\n\033[?1049h\033[H\033[2mghost\033[0m typed'; exec cat";
    let pane = server.new_session("work", print);
    let screen = wait_for_screen(&server, &pane, "typed").await;
    assert!(!screen.contains("below"), "{screen:?}");
    let (ghost, typed) = screen.split_once("ghost").expect("both are there");
    assert!(ghost == "\x1b[2m" && typed.starts_with("\x1b[0m"), "{screen:?}");
}

async fn wait_for_screen(server: &agtmux_testkit::TestTmuxServer, pane: &str, end: &str) -> String {
    wait_until("the pane to be drawn", SOON, || server.run(&["capture-pane", "-p", "-t", pane]).trim().ends_with(end));
    let captured = asked(server).capture(&[number(pane)]).await.expect("it answers");
    String::from_utf8_lossy(&captured[0].screen).into_owned()
}

/// tmux takes a `;` at the end of a word for the end of the command.
#[tokio::test]
async fn words_reach_tmux_as_they_are() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let tmux = asked(&server);
    for text in ["a;", ";", "a\\;", "; kill-server ;", "two words", "$HOME", "~", "'\"", "-x", "é §\ttab"] {
        tmux.run(&[TmuxCommand::new("set-buffer").arg("-b").arg("word").arg("--").arg(text)])
            .await
            .expect("it is stored");
        let answer = tmux.run(&[TmuxCommand::new("show-buffer").arg("-b").arg("word")]).await.expect("it is shown");
        assert_eq!(String::from_utf8_lossy(&answer), text);
    }
}

/// A listing must not start the server that it asks for.
#[tokio::test]
async fn who_asks_a_server_that_is_not_there_does_not_start_it() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    assert_eq!(asked(&server).list().await, Err(TmuxError::NoServer));
    server.new_session("work", "cat");
    server.kill_server();
    assert_eq!(asked(&server).list().await, Err(TmuxError::NoServer));
    assert!(!server.is_running());
}

/// `list-panes -a` fails where there is no session, which is neither an outage nor the end of the server.
#[tokio::test]
async fn a_server_without_sessions_has_no_panes() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    server.run(&["set-option", "-s", "exit-empty", "off"]);
    let before = asked(&server).list().await.expect("it answers");
    server.run(&["kill-session", "-t", "=work"]);
    let after = wait_for("the session's end", SOON, || {
        server.try_run(&["list-clients"]).err().filter(|said| said.contains("no")).ok_or("a session is left")
    });
    let listing = asked(&server).list().await.unwrap_or_else(|error| panic!("{error}, {after}"));
    assert_eq!((listing.rows, listing.server), (vec![], before.server));
}

/// Ids begin at %0 again and the socket is the same: only pid and start time tell.
#[tokio::test]
async fn another_life_of_a_server_has_the_same_ids_and_another_generation() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let before = asked(&server).list().await.expect("it answers");
    server.kill_server();
    server.new_session("work", "cat");
    let after = asked(&server).list().await.expect("it answers");
    let ids = |rows: &[agtmux_tmux::ListedPane]| (rows[0].session, rows[0].window, rows[0].pane);
    assert_eq!(ids(&after.rows), ids(&before.rows));
    assert_ne!(after.server, before.server);
}

/// What a program draws can look like our frames only if it knows the word of the call, which is made for each.
#[tokio::test]
async fn frames_on_a_screen_are_not_ours() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let old = Framing::fresh();
    let forged = [old.record('h', &["1", "%7", "1", "forged"]), old.record('e', &[])].join("\n");
    let pane = server.new_session("work", &format!("printf '%s' '{forged}'; printf ' end'; exec cat"));
    wait_for_screen(&server, &pane, "end").await;
    let captured = asked(&server).capture(&[number(&pane)]).await.expect("it answers");
    assert_eq!(captured.iter().map(|capture| capture.pane).collect::<Vec<_>>(), [number(&pane)]);
}
