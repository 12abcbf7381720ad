//! The live screen of a pane.

use std::io::Write;
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{SOON, configure, script, start, world};
use agtmux_testkit::http::{self, SseClient, SseEvent};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};
use serde_json::Value;

fn follow(world: &TestWorld, reference: &str) -> SseClient {
    let mut stream = http::connect(&world.socket());
    let reference = reference.replace('%', "%25");
    let request = http::request("GET", &format!("/v1/screen?ref={reference}"), "");
    stream.write_all(&request).expect("the daemon takes a request");
    SseClient::from_stream(stream)
}

/// Opens a shell whose output the test writes to its terminal.
fn quiet_pane(tmux: &TestTmuxServer) -> (String, std::fs::File) {
    let pane = tmux.new_session("work", "exec cat");
    tmux.run(&["resize-window", "-t", "=work:", "-x", "60", "-y", "12"]);
    let tty = tmux.run(&["display-message", "-p", "-t", &pane, "#{pane_tty}"]);
    (pane, std::fs::OpenOptions::new().write(true).open(tty.trim()).expect("the pane's terminal"))
}

fn row_text(row: &Value) -> String {
    let spans = row["spans"].as_array().expect("spans").iter();
    spans.filter_map(|span| span["text"].as_str()).collect()
}

/// The rows of an update: their numbers and texts.
fn rows(event: &SseEvent) -> Vec<(u64, String)> {
    let rows = event.data["rows"].as_array().expect("rows").iter();
    rows.map(|row| (row["row"].as_u64().expect("a number"), row_text(row))).collect()
}

fn shows(event: &SseEvent, text: &str) -> bool {
    event.is("screen") && rows(event).iter().any(|(_, row)| row.contains(text))
}

#[test]
fn a_viewer_gets_all_rows_and_then_only_changed_ones() {
    let world = world();
    configure(&world, "actions.allow_from_agents = true\n");
    let tmux = world.tmux("default");
    let (pane, mut tty) = quiet_pane(&tmux);
    start(&world);
    write!(tty, "first\r\n\x1b[31;1mred\x1b[0m plain\r\n").expect("written");
    let viewer = follow(&world, &pane);
    let seen = viewer.until("the first rows", |event| shows(event, "red plain"));
    let first = &seen[0].data;
    assert_eq!((&first["full"], &first["width"], &first["height"]), (&true.into(), &60.into(), &12.into()), "{first}");
    let styled =
        seen.last().expect("an update").data["rows"].as_array().expect("rows").iter().find(|row| row["row"] == 1);
    let red = &styled.expect("the second row")["spans"][0];
    assert_eq!((&red["text"], &red["fg"], &red["bold"]), (&"red".into(), &1.into(), &true.into()), "{red}");
    write!(tty, "third").expect("written");
    let update = viewer.until("the third row", |event| shows(event, "third")).pop().expect("an update");
    assert_eq!(rows(&update), [(2, "third".to_owned())]);
    assert_eq!((&update.data["full"], &update.data["cursor"]["column"]), (&false.into(), &5.into()));
    // A second viewer shares the captures and begins with all rows.
    let second = follow(&world, &pane).next().expect("an update");
    assert!(second.data["full"] == true && shows(&second, "third"), "{:?}", second.data);
    assert_eq!(tmux.run(&["list-clients"]), "", "a viewer does not attach");
    let size = tmux.run(&["display-message", "-p", "-t", &pane, "#{window_width}x#{window_height}"]);
    assert_eq!(size.trim(), "60x12", "a viewer does not resize");
    tmux.run(&["resize-window", "-t", "=work:", "-x", "50", "-y", "8"]);
    let smaller = viewer.until("the new size", |event| event.data["height"] == 8);
    assert_eq!(smaller.last().expect("an update").data["width"], 50);
}

#[test]
fn a_busy_pane_is_read_at_most_ten_times_a_second() {
    let world = world();
    configure(&world, "actions.allow_from_agents = true\n");
    let tmux = world.tmux("default");
    let pane = tmux.new_session("work", "i=0; while :; do i=$((i + 1)); echo line $i; sleep 0.005; done");
    start(&world);
    let viewer = follow(&world, &pane);
    viewer.until("the first update", |event| event.is("screen"));
    let (begin, mut updates) = (Instant::now(), 0);
    while updates < 12 {
        updates += u32::from(viewer.next().expect("the pane writes").is("screen"));
    }
    assert!(begin.elapsed() > Duration::from_millis(1000), "{:?} for 12 updates", begin.elapsed());
}

#[test]
fn hostile_output_is_text() {
    let world = world();
    configure(&world, "actions.allow_from_agents = true\n");
    let tmux = world.tmux("default");
    let (pane, mut tty) = quiet_pane(&tmux);
    start(&world);
    let viewer = follow(&world, &pane);
    write!(tty, "\x1b[2J\x1b[H<img src=x onerror=alert(1)>\r\n\u{202e}evil\u{200b}\r\n\x1b]8;;http://evil/\x1b\\link\x1b]8;;\x1b\\\r\nend")
        .expect("written");
    let mut seen = viewer.until("the last row", |event| shows(event, "end"));
    // tmux may show the rows in more than one capture.
    let text: String = seen.drain(..).flat_map(|event| rows(&event)).map(|(_, row)| row + "\n").collect();
    assert!(text.contains("<img src=x onerror=alert(1)>") && text.contains("link\n"), "{text}");
    assert!(!text.chars().any(|c| c == '\u{1b}' || c == '\u{202e}' || c == '\u{200b}'), "{text:?}");
    assert!(!text.contains("http://evil"), "{text}");
}

#[test]
fn the_stream_ends_with_the_program_in_the_pane() {
    let world = world();
    configure(&world, "actions.allow_from_agents = true\n");
    let tmux = world.tmux("default");
    let (pane, _tty) = quiet_pane(&tmux);
    start(&world);
    let viewer = follow(&world, &pane);
    viewer.next().expect("the first update");
    tmux.run(&["respawn-pane", "-k", "-t", &pane, "exec cat"]);
    let end = viewer.until("the end", |event| event.is("end")).pop().expect("an event");
    assert!(end.data["message"].as_str().is_some_and(|why| why.contains("another program")), "{:?}", end.data);
    assert!(viewer.next().is_none(), "the stream ends");
    let gone = wait_for("the pane to be unknown", SOON, || {
        let answer = http::get(&world.socket(), "/v1/screen?ref=%2599");
        (answer.status == 404).then_some(answer)
    });
    assert!(gone.json()["message"].is_string());
}

#[test]
fn a_pane_without_a_viewer_is_not_read() {
    let world = world();
    let calls = world.dir().join("calls");
    let tmux_wrapper =
        script(&world, "tmux-wrapper", &format!("echo \"$*\" >>'{}'\nexec tmux \"$@\"", calls.display()));
    configure(&world, &format!("actions.allow_from_agents = true\ntmux.program = '{}'\n", tmux_wrapper.display()));
    let tmux = world.tmux("default");
    let (pane, mut tty) = quiet_pane(&tmux);
    let other = tmux.new_session("other", "exec cat");
    let other_tty = tmux.run(&["display-message", "-p", "-t", &other, "#{pane_tty}"]);
    let mut other_tty = std::fs::OpenOptions::new().write(true).open(other_tty.trim()).expect("the pane's terminal");
    start(&world);
    let reads = || {
        let calls = std::fs::read_to_string(&calls).unwrap_or_default();
        let of_pane = format!("-t {pane} ");
        calls.lines().filter(|call| call.contains("capture-pane") && call.contains(&of_pane)).count()
    };
    let viewer = follow(&world, &pane);
    viewer.next().expect("the first update");
    assert!(reads() > 0, "the wrapper records calls");
    drop(viewer);
    let watched = follow(&world, &other);
    let mut writes = 0;
    wait_until("the last read of the pane", SOON, || {
        let before = reads();
        writes += 1;
        write!(tty, "x").expect("written");
        write!(other_tty, "\r\nwrite {writes}").expect("written");
        // The pane that is viewed was written to later, and has been read.
        watched.until("the other pane", |event| shows(event, &format!("write {writes}")));
        reads() == before
    });
}
