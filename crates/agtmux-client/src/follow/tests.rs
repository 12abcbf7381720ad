use agtmux_api::paths::Paths;
use agtmux_api::wire::ListScope;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::*;
use crate::FleetReplica;

/// Acts as a daemon: answers each request with the next text and closes the connection. Returns the requests.
async fn serve(listener: UnixListener, texts: Vec<String>) -> Vec<String> {
    let mut requests = Vec::new();
    for text in texts {
        let (mut stream, request) = loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.expect("readable");
            // The client also opens connections without a request, to check whether a daemon listens. Skip them.
            if length > 0 {
                break (stream, String::from_utf8_lossy(&request[..length]).into_owned());
            }
        };
        let head = format!("HTTP/1.1 200 OK\r\n{}: {}\r\n\r\n", agtmux_api::API_HEADER, agtmux_api::API_VERSION);
        stream.write_all((head + &text).as_bytes()).await.expect("writable");
        requests.push(request);
    }
    requests
}

fn event(kind: WatchEventKind, seq: u64) -> WatchEvent {
    WatchEvent::new(kind, ListScope::Panes, seq, Timestamp::UNIX_EPOCH)
}

fn frame(event: &WatchEvent) -> String {
    format!("event: {}\ndata: {}\n\n", event.kind.as_str(), serde_json::to_string(event).expect("writes"))
}

#[tokio::test]
async fn a_stream_resumes_at_the_last_id_and_reads_a_cut_snapshot_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let paths = Paths { config: dir.path().join("c"), state_dir: dir.path().to_owned(), socket: socket.clone() };
    let (snapshot, change) = (event(WatchEventKind::Snapshot, 5), event(WatchEventKind::Upsert, 6));
    let daemon = tokio::spawn(serve(
        UnixListener::bind(&socket).expect("bound"),
        vec![
            frame(&snapshot),
            format!("{}event: later\ndata: {{}}\n\nid: 5\n\n", frame(&snapshot)),
            format!("id: 6\n{}:\nid: 7\n\n", frame(&change)),
            ":\nid: 7\n\n".to_owned(),
        ],
    ));
    let mut signals = DaemonClient::new(paths).watch(ListQuery::default());
    let mut received = Vec::new();
    while received.len() < 9 {
        received.push(signals.next().await.expect("the daemon answers"));
    }
    let lost = || StreamSignal::Disconnected("the daemon closed the stream".into());
    let (snapshot, change) = (StreamSignal::Event(snapshot), StreamSignal::Event(change));
    let caught_up = || StreamSignal::CaughtUp;
    let expected = [snapshot.clone(), lost(), snapshot, caught_up(), lost(), change, caught_up(), lost(), caught_up()];
    assert_eq!(received, expected);
    let requests = daemon.await.expect("the daemon ends");
    let resumed_at = |request: &String| {
        let id = request.lines().find_map(|line| line.strip_prefix("last-event-id: "));
        id.map(|id| id.parse::<u64>().expect("a number"))
    };
    assert_eq!(requests.iter().map(resumed_at).collect::<Vec<_>>(), [None, None, Some(5), Some(7)]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_was_stopped_is_not_started() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let paths = Paths { config: dir.path().join("c"), state_dir: dir.path().to_owned(), socket: socket.clone() };
    let listener = || UnixListener::bind(&socket).expect("bound");
    let daemon = tokio::spawn(serve(listener(), vec![":\nid: 7\n\n".to_owned()]));
    // This program does not exist, so the stream would fail if the client tried to start a daemon.
    let program = Some(dir.path().join("missing"));
    let mut signals = DaemonClient { program, ..DaemonClient::new(paths) }.watch(ListQuery::default());
    assert_eq!(signals.next().await.expect("a position"), StreamSignal::CaughtUp);
    daemon.await.expect("the daemon ends");
    std::fs::remove_file(&socket).expect("it exists");
    assert!(matches!(signals.next().await.expect("no error"), StreamSignal::Disconnected(_)));
    let silence = tokio::time::timeout(Duration::from_secs(3600), signals.next()).await;
    assert!(silence.is_err(), "{silence:?}");
    let daemon = tokio::spawn(serve(listener(), vec![":\nid: 7\n\n".to_owned()]));
    assert_eq!(signals.next().await.expect("the daemon is back"), StreamSignal::CaughtUp);
    daemon.await.expect("the daemon ends");
}

#[test]
fn a_copy_changes_only_where_the_stream_has_caught_up() {
    let errors = |seq, errors| {
        let event = event(WatchEventKind::TargetErrors, seq);
        StreamSignal::Event(WatchEvent { target_errors: Some(errors), ..event })
    };
    let error = agtmux_api::wire::TargetError {
        target: "host".into(),
        server: None,
        code: agtmux_core::fleet::OutageCode::TmuxNotInstalled,
        message: String::new(),
        hint: String::new(),
        since: Timestamp::UNIX_EPOCH,
    };
    let lost = || StreamSignal::Disconnected(String::new());
    let mut replica = FleetReplica::default();
    let mut receive = |signal| (replica.receive(signal), replica.items().target_errors.len());
    assert_eq!(receive(errors(1, vec![error.clone()])), (false, 0));
    assert_eq!(receive(lost()), (false, 0), "the first snapshot was cut off");
    assert_eq!(receive(StreamSignal::CaughtUp), (true, 0), "the next one is empty");
    assert_eq!(receive(StreamSignal::CaughtUp), (false, 0), "a heartbeat changes nothing");
    assert_eq!(receive(errors(2, vec![error])), (false, 0));
    assert_eq!(receive(lost()), (false, 0), "the stream resumes after this event");
    assert_eq!(receive(StreamSignal::CaughtUp), (true, 1));
    assert_eq!(receive(StreamSignal::Event(event(WatchEventKind::Reset, 3))), (false, 1));
    assert_eq!(receive(StreamSignal::CaughtUp), (true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_starts_a_daemon_waits_for_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let paths = Paths { config: dir.path().join("c"), state_dir: dir.path().to_owned(), socket: socket.clone() };
    let program = Some(dir.path().join("missing"));
    let client = DaemonClient { program, ..DaemonClient::new(paths) };
    let mut signals = client.watch_running(ListQuery::default());
    let signal = signals.next().await.expect("the stream waits");
    assert_eq!(signal, StreamSignal::Disconnected("no daemon is running".into()));
    // This daemon breaks the stream, as one that crashed.
    let listener = UnixListener::bind(&socket).expect("bound");
    let daemon = tokio::spawn(serve(listener, vec![":\nid: 7\n\nid".to_owned()]));
    assert_eq!(signals.next().await.expect("the daemon answers"), StreamSignal::CaughtUp);
    assert!(matches!(signals.next().await.expect("the stream broke"), StreamSignal::Disconnected(_)));
    daemon.await.expect("the daemon ends");
    std::fs::remove_file(&socket).expect("the socket exists");
    let daemon = tokio::spawn(serve(UnixListener::bind(&socket).expect("bound"), vec![":\nid: 9\n\n".to_owned()]));
    assert_eq!(signals.next().await.expect("another daemon answers"), StreamSignal::CaughtUp);
    daemon.await.expect("the daemon ends");
}
