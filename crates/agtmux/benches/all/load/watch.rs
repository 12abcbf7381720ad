//! Reads the event stream and records when each event arrives.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::wait_for;
use serde::Deserialize;

use super::send::EventLoad;
use super::setup::LoadBench;
use crate::harness::stats::millis;

/// How long to wait for the last events after all posts are acknowledged.
const STREAM_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct StreamWatcher {
    stream: UnixStream,
    received: Arc<AtomicUsize>,
    expected: usize,
    reader: thread::JoinHandle<StreamLags>,
}

/// The lags of the stream in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct StreamLags {
    pub(crate) since_post: Vec<f64>,
    /// The lag since the time at which the post was planned. It includes the time that the post waited for the previous
    /// post on the same connection.
    pub(crate) since_due: Vec<f64>,
}

#[derive(Deserialize)]
struct StreamLine {
    r#type: String,
    item: Option<StreamItem>,
}

#[derive(Deserialize)]
struct StreamItem {
    runtime_id: Option<String>,
    state_version: Option<u64>,
}

pub(crate) fn start(bench: &LoadBench, load: &Arc<EventLoad>) -> StreamWatcher {
    let mut stream = UnixStream::connect(bench.world.socket()).expect("the daemon accepts connections");
    stream
        .write_all(b"GET /v1/events?scope=panes HTTP/1.0\r\nhost: agtmux\r\n\r\n")
        .expect("the daemon reads the request");
    let (received, load_of_reader) = (Arc::new(AtomicUsize::new(0)), load.clone());
    let (reading, counter) = (stream.try_clone().expect("a socket can be shared"), received.clone());
    let reader = thread::spawn(move || read(reading, &load_of_reader, &counter));
    StreamWatcher { stream, received, expected: load.count, reader }
}

fn read(stream: UnixStream, load: &EventLoad, received: &AtomicUsize) -> StreamLags {
    let index: HashMap<&str, usize> = load.runtimes.iter().enumerate().map(|(n, r)| (r.id.as_str(), n)).collect();
    let mut lags = StreamLags::default();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let now = Instant::now();
        let line: StreamLine = serde_json::from_str(data).expect("the daemon writes JSON");
        let Some(item) = line.item.filter(|_| line.r#type == "upsert") else { continue };
        let runtime = item.runtime_id.and_then(|id| index.get(id.as_str()).copied());
        let event = runtime.zip(item.state_version).and_then(|(runtime, version)| load.event_of(runtime, version));
        if let Some((n, posted)) = event.and_then(|n| Some((n, load.post_time(n)?))) {
            let after = now - load.start;
            lags.since_post.push(millis(after.saturating_sub(posted)));
            lags.since_due.push(millis(after.saturating_sub(load.due(n))));
            received.store(lags.since_post.len(), Ordering::Release);
        }
    }
    lags
}

impl StreamWatcher {
    pub(crate) fn finish(self) -> StreamLags {
        let start = Instant::now();
        wait_for("the last events on the stream", STREAM_TIMEOUT * 2, || {
            let received = self.received.load(Ordering::Acquire);
            // Do not wait for missing events: the report counts them.
            if received >= self.expected || start.elapsed() > STREAM_TIMEOUT { Ok(()) } else { Err(received) }
        });
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        self.reader.join().expect("the reader does not panic")
    }
}
