//! A server with the parts of the ntfy protocol that publish and delete messages. It checks requests as ntfy does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// A server on a port of 127.0.0.1. Its thread ends with the test.
pub struct NtfyServer {
    address: SocketAddr,
    state: Arc<Mutex<NtfyState>>,
}

#[derive(Default)]
struct NtfyState {
    behaviour: NtfyBehaviour,
    token: Option<String>,
    /// Every accepted request: the published messages, and `message_delete` events.
    events: Vec<Value>,
    /// Connections that get no answer. They stay open.
    hanging: Vec<TcpStream>,
    refused: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum NtfyBehaviour {
    #[default]
    Works,
    /// Reads the request and never answers.
    Hangs,
    /// Answers with 500.
    Fails,
}

struct NtfyRequest {
    method: String,
    path: String,
    token: Option<String>,
    body: Vec<u8>,
}

impl NtfyServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state: Arc<Mutex<NtfyState>> = Arc::default();
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn behave(&self, behaviour: NtfyBehaviour) {
        lock(&self.state).behaviour = behaviour;
    }

    /// From now on, requests need this token.
    pub fn require_token(&self, token: &str) {
        lock(&self.state).token = Some(token.to_owned());
    }

    /// All accepted messages and deletions, oldest first.
    pub fn events(&self) -> Vec<Value> {
        lock(&self.state).events.clone()
    }

    /// The published messages.
    pub fn published(&self) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == "message").collect()
    }

    /// What a phone shows that follows the topic: the newest message of each sequence, without the deleted ones.
    pub fn shown(&self) -> Vec<Value> {
        let mut shown = BTreeMap::new();
        for event in self.events() {
            let sequence = event["sequence_id"].as_str().unwrap_or_default().to_owned();
            match event["event"] == "message" {
                true => shown.insert(sequence, event),
                false => shown.remove(&sequence),
            };
        }
        shown.into_values().collect()
    }

    /// The number of requests that were refused, failed or got no answer.
    pub fn refused(&self) -> usize {
        lock(&self.state).refused
    }
}

fn lock(state: &Mutex<NtfyState>) -> MutexGuard<'_, NtfyState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, state: &Mutex<NtfyState>) {
    let Some(request) = read_request(&stream) else { return };
    let mut state = lock(state);
    let answer = match state.behaviour {
        NtfyBehaviour::Works => state.accept(&request),
        NtfyBehaviour::Fails => Err((500, "internal error".into())),
        NtfyBehaviour::Hangs => {
            state.refused += 1;
            state.hanging.push(stream);
            return;
        }
    };
    let (status, body) = match answer {
        Ok(event) => {
            state.events.push(event.clone());
            (200, event)
        }
        Err((status, error)) => {
            state.refused += 1;
            (status, json!({"code": status * 100, "http": status, "error": error}))
        }
    };
    drop(state);
    let body = body.to_string();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    let _ = (&stream).write_all((head + &body).as_bytes());
}

fn read_request(stream: &TcpStream) -> Option<NtfyRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let (mut length, mut token) = (0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "authorization" => token = value.strip_prefix("Bearer ").map(str::to_owned),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(NtfyRequest { method, path, token, body })
}

impl NtfyState {
    fn accept(&self, request: &NtfyRequest) -> Result<Value, (u16, String)> {
        if self.token.is_some() && self.token != request.token {
            return Err((403, "forbidden".into()));
        }
        let bad = |error: &str| (400, error.to_owned());
        match (request.method.as_str(), request.path.trim_matches('/').split('/').collect::<Vec<_>>().as_slice()) {
            ("POST" | "PUT", [""]) => {
                let message: Value = serde_json::from_slice(&request.body).map_err(|_| bad("invalid JSON"))?;
                published(&message).ok_or_else(|| bad(&format!("invalid message {message}")))
            }
            ("DELETE", [topic, sequence]) if is_name(topic) && is_name(sequence) => {
                Ok(json!({"event": "message_delete", "topic": topic, "sequence_id": sequence}))
            }
            _ => Err((404, "page not found".into())),
        }
    }
}

/// The event of a valid message. `None` if ntfy would refuse the message.
fn published(message: &Value) -> Option<Value> {
    let is_text = |name: &str| message[name].is_null() || message[name].is_string();
    let valid = is_name(message["topic"].as_str()?)
        && is_name(message["sequence_id"].as_str()?)
        && is_text("title")
        && is_text("message")
        && (1..=5).contains(&message["priority"].as_i64()?)
        && message["tags"].as_array()?.iter().all(Value::is_string);
    let mut event = message.as_object()?.clone();
    event.insert("event".into(), "message".into());
    valid.then_some(Value::Object(event))
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}
