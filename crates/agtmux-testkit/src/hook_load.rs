//! Posts hooks of many agents at a fixed rate over keep-alive connections.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// For each agent, a series of turns. Each turn is a prompt hook followed by a stop hook.
pub struct HookLoad {
    /// The session ids of the agents. Each session has its own connection.
    sessions: Vec<String>,
    /// How many hooks all sessions together post per second.
    per_second: f64,
    turns_each: usize,
    /// For each agent, the times at which its prompts were posted.
    prompt_times: Vec<Mutex<Vec<Instant>>>,
}

impl HookLoad {
    /// Plans about as many turns as fit into this duration at `per_second` hooks per second.
    pub fn new(sessions: &[String], per_second: f64, duration: Duration) -> Self {
        let turns = duration.as_secs_f64() * per_second / 2.0;
        let turns_each = ((turns / sessions.len() as f64).round() as usize).max(1);
        let prompt_times = sessions.iter().map(|_| Mutex::default()).collect();
        Self { sessions: sessions.to_vec(), per_second, turns_each, prompt_times }
    }

    pub fn turns(&self) -> usize {
        self.turns_each * self.sessions.len()
    }

    /// When the nth prompt of this agent was posted. None if it has not been posted yet.
    pub fn prompt_posted_at(&self, agent: usize, nth: usize) -> Option<Instant> {
        self.prompt_times[agent].lock().unwrap_or_else(PoisonError::into_inner).get(nth).copied()
    }

    /// Posts all hooks and waits for their responses. Returns the elapsed time.
    pub fn run(&self, socket: &Path) -> Duration {
        let start = Instant::now();
        thread::scope(|scope| {
            for agent in 0..self.sessions.len() {
                scope.spawn(move || self.post_all(agent, socket, start));
            }
        });
        start.elapsed()
    }

    fn post_all(&self, agent: usize, socket: &Path, start: Instant) {
        let mut connection = HookConnection::open(socket).expect("the daemon accepts connections");
        for n in 0..self.turns_each * 2 {
            let index = n * self.sessions.len() + agent;
            let due = Duration::from_secs_f64(index as f64 / self.per_second);
            thread::sleep(due.saturating_sub(start.elapsed()));
            let is_prompt = n % 2 == 0;
            if is_prompt {
                self.prompt_times[agent].lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            }
            let event = if is_prompt { "user-prompt-submit" } else { "stop" };
            let body = json!({"session_id": self.sessions[agent], "prompt": format!("number {n}")});
            let (status, response) = connection.post(&format!("/hook/{event}"), &body).expect("the daemon answers");
            assert_eq!(status, 200, "hook {n} of agent {agent}: {response}");
        }
    }
}

pub struct HookConnection(BufReader<UnixStream>);

impl HookConnection {
    pub fn open(socket: &Path) -> io::Result<Self> {
        UnixStream::connect(socket).map(BufReader::new).map(Self)
    }

    /// Posts a body. Returns the status and the JSON of the response.
    pub fn post(&mut self, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nhost: agtmux\r\ncontent-type: application/json");
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        self.0.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length, mut line) = (0, 0, String::new());
        while self.0.read_line(&mut line)? > 2 {
            let name = line.to_ascii_lowercase();
            if let Some(value) = name.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            } else if name.starts_with("http/") {
                status = name.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
            }
            line.clear();
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}
