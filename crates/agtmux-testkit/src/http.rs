//! Raw HTTP over the unix socket, so that tests can also send malformed requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::agtmux::SOON;

#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl HttpResponse {
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}) in {}{text}", self.head))
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self { status, head, body: bytes[end + 4..].to_vec() })
    }
}

#[track_caller]
pub fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap_or_else(|error| panic!("cannot connect to {socket:?}: {error}"));
    stream.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
    stream.set_write_timeout(Some(SOON)).expect("a socket takes a timeout");
    stream
}

/// Sends these bytes and reads until the daemon closes the connection. Returns None if the response is missing or
/// cannot be parsed.
pub fn send(socket: &Path, bytes: &[u8]) -> Option<HttpResponse> {
    exchange(socket, bytes, false)
}

/// Sends bytes that may not be a complete request. Then closes the sending side, so that the daemon does not wait for
/// more.
pub fn send_then_close(socket: &Path, bytes: &[u8]) -> Option<HttpResponse> {
    exchange(socket, bytes, true)
}

fn exchange(socket: &Path, bytes: &[u8], close_after: bool) -> Option<HttpResponse> {
    let mut stream = connect(socket);
    // The daemon may close the connection before all bytes are written.
    let _ = stream.write_all(bytes);
    if close_after {
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    HttpResponse::parse(&answer)
}

/// An HTTP/1.0 request. The response is not chunked, and it ends when the daemon closes the connection.
pub fn request(method: &str, path: &str, headers: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.0\r\nhost: agtmux\r\n{headers}\r\n").into_bytes()
}

#[track_caller]
pub fn get(socket: &Path, path: &str) -> HttpResponse {
    send(socket, &request("GET", path, "")).unwrap_or_else(|| panic!("no response to GET {path}"))
}

/// Posts a JSON body.
#[track_caller]
pub fn post(socket: &Path, path: &str, body: &str) -> HttpResponse {
    try_post(socket, path, body).unwrap_or_else(|| panic!("no response to POST {path}"))
}

/// Posts a JSON body. Returns None if the response is missing or cannot be parsed.
pub fn try_post(socket: &Path, path: &str, body: &str) -> Option<HttpResponse> {
    let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    send(socket, &[&request("POST", path, &headers), body.as_bytes()].concat())
}

/// One server-sent event. An event with an id and no other content marks the end of a snapshot.
#[derive(Debug, Clone)]
pub struct SseEvent {
    pub id: Option<u64>,
    pub kind: Option<String>,
    pub data: Value,
}

impl SseEvent {
    pub fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    pub fn seq(&self) -> u64 {
        self.data["seq"].as_u64().unwrap_or_default()
    }

    pub fn pane(&self) -> &str {
        self.data["item"]["identity"]["pane_id"].as_str().unwrap_or_default()
    }
}

/// Receives the events of a stream. A background thread reads the stream.
pub struct SseClient(Receiver<SseEvent>);

impl SseClient {
    #[track_caller]
    pub fn open(socket: &Path, query: &str, last_event_id: Option<u64>) -> Self {
        Self::from_stream(open_stream(socket, query, last_event_id))
    }

    /// Reads from a connection on which the request was already sent.
    pub fn from_stream(stream: UnixStream) -> Self {
        // The time between two heartbeats is longer than the default read timeout.
        stream.set_read_timeout(None).expect("a socket takes a timeout");
        let (sender, events) = channel();
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            while let Some(event) = read_event(&mut reader) {
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        Self(events)
    }

    /// The next event, or None at the end of the stream.
    #[track_caller]
    pub fn next(&self) -> Option<SseEvent> {
        match self.0.recv_timeout(SOON) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("waited {SOON:?} for an event"),
        }
    }

    /// The next event, or None if the stream ends or no event arrives within this time.
    pub fn next_within(&self, deadline: Duration) -> Option<SseEvent> {
        self.0.recv_timeout(deadline).ok()
    }

    /// Reads events until one satisfies the condition. Returns all of them, including the last.
    #[track_caller]
    pub fn until(&self, what: &str, fits: impl Fn(&SseEvent) -> bool) -> Vec<SseEvent> {
        let mut seen = Vec::new();
        loop {
            match self.0.recv_timeout(SOON) {
                Ok(event) => seen.push(event),
                Err(error) => panic!("waited for {what}: {error}; the last seen: {:?}", seen.iter().rev().take(3)),
            }
            if seen.last().is_some_and(&fits) {
                return seen;
            }
        }
    }

    /// The items of the snapshot, and the id after which to resume the stream.
    #[track_caller]
    pub fn snapshot(&self) -> (Vec<SseEvent>, u64) {
        let mut items = self.until("the end of the snapshot", |event| event.kind.is_none() && event.id.is_some());
        let last = items.pop().and_then(|event| event.id).expect("a snapshot ends with an id");
        (items, last)
    }
}

/// Sends the request for an event stream, but does not read the response.
#[track_caller]
pub fn open_stream(socket: &Path, query: &str, last_event_id: Option<u64>) -> UnixStream {
    let mut stream = connect(socket);
    let header = last_event_id.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    let request = request("GET", &format!("/v1/events{query}"), &header);
    stream.write_all(&request).expect("the daemon takes a request");
    stream
}

fn read_event(reader: &mut impl BufRead) -> Option<SseEvent> {
    let empty = SseEvent { id: None, kind: None, data: Value::Null };
    let (mut event, mut is_comment) = (empty.clone(), false);
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        match line.trim_end().split_once(": ") {
            Some(("id", id)) => event.id = Some(id.parse().ok()?),
            Some(("event", kind)) => event.kind = Some(kind.to_owned()),
            Some(("data", data)) => event.data = serde_json::from_str(data).ok()?,
            // A block with a comment is not an event, even if it has an id.
            _ if line.starts_with(':') => is_comment = true,
            _ if line.trim_end().is_empty() && is_comment => (event, is_comment) = (empty.clone(), false),
            // The response head and heartbeats also end with a blank line, but have no id or kind.
            _ if line.trim_end().is_empty() && (event.id.is_some() || event.kind.is_some()) => return Some(event),
            _ => {}
        }
    }
}
