//! Many readers of the bridge's stream at once, all on one thread, and some that ask for it and then read nothing.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;

use super::posts::Posts;

/// What a crowd follows.
#[derive(Clone)]
pub(crate) struct Following {
    pub(crate) address: SocketAddr,
    /// The header that lets it in.
    pub(crate) bearer: String,
    /// The ids of the agents, in the order of their posts.
    pub(crate) agent_ids: Arc<[String]>,
    pub(crate) posts: Arc<Posts>,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The id of the last event.
    last: AtomicU64,
    pub(crate) events: AtomicU64,
    /// Prompts that it was told of.
    pub(crate) prompts: AtomicU64,
    /// Events that were left out, and times that it was told to start over.
    pub(crate) missed: AtomicU64,
    /// When each prompt was posted, and how many milliseconds later this reader was told of it.
    lags: Mutex<Vec<(Instant, f64)>>,
}

pub(crate) struct Crowd {
    readers: Vec<Arc<Progress>>,
    /// Held open.
    _stalled: Vec<TcpStream>,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    /// Everyone has been let in when this returns.
    pub(crate) fn gather(following: &Following, readers: usize, stalled: usize) -> Self {
        let stalled = (0..stalled).map(|_| following.begin()).collect();
        let (end, ended) = watch::channel(false);
        let readers: Vec<_> = (0..readers).map(|_| (following.begin(), Arc::<Progress>::default())).collect();
        let progress = readers.iter().map(|(_, progress)| progress.clone()).collect();
        let following = following.clone();
        let thread = thread::spawn(move || read_all(&following, readers, ended));
        Self { readers: progress, _stalled: stalled, end, thread: Some(thread) }
    }

    pub(crate) fn readers(&self) -> &[Arc<Progress>] {
        &self.readers
    }

    pub(crate) fn has_heard(&self, prompts: u64) -> bool {
        self.readers.iter().all(|reader| reader.prompts.load(Ordering::SeqCst) >= prompts)
    }

    pub(crate) fn missed(&self) -> u64 {
        self.readers.iter().map(|reader| reader.missed.load(Ordering::SeqCst)).sum()
    }

    /// Of all readers, in the order in which the prompts were posted.
    pub(crate) fn lags(&self) -> Vec<f64> {
        let of = |reader: &Arc<Progress>| reader.lags.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut lags: Vec<(Instant, f64)> = self.readers.iter().flat_map(of).collect();
        lags.sort_by_key(|(posted, _)| *posted);
        lags.into_iter().map(|(_, lag)| lag).collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // What panicked was printed there.
            let _ = thread.join();
        }
    }
}

impl Following {
    fn begin(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the port is open");
        let host = format!("Host: {}", self.address);
        let request = format!("GET /api/events/stream HTTP/1.1\r\n{host}\r\n{}\r\n\r\n", self.bearer);
        stream.write_all(request.as_bytes()).expect("it is read");
        let mut byte = [0];
        stream.peek(&mut byte).expect("it is answered");
        stream
    }
}

fn read_all(following: &Following, readers: Vec<(TcpStream, Arc<Progress>)>, mut ended: watch::Receiver<bool>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for (stream, progress) in readers {
            stream.set_nonblocking(true).expect("a socket");
            let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
            let following = following.clone();
            tokio::spawn(async move { read(stream, &following, &progress).await });
        }
        let _ = ended.wait_for(|ended| *ended).await;
    });
}

async fn read(stream: tokio::net::TcpStream, following: &Following, progress: &Progress) {
    let mut lines = BufReader::with_capacity(1 << 16, stream).lines();
    let mut told = vec![0; following.agent_ids.len()];
    let (mut is_turn, mut id) = (false, 0);
    while let Ok(Some(line)) = lines.next_line().await {
        match line.split_once(": ") {
            Some(("id", number)) => id = number.parse().unwrap_or(0),
            // An id by itself only says where the reader is.
            _ if line.is_empty() => progress.begins_at(id),
            Some(("event", kind)) => {
                progress.reaches(id);
                is_turn = kind == "turn_created";
                progress.missed.fetch_add(u64::from(kind == "resync"), Ordering::SeqCst);
            }
            Some(("data", data)) if is_turn && data.contains(r#""intent":"COMMAND""#) => {
                let agent = following.agent_ids.iter().position(|id| data.contains(id.as_str()));
                progress.hears(agent, &mut told, &following.posts);
            }
            _ => {}
        }
    }
}

impl Progress {
    fn begins_at(&self, id: u64) {
        let _ = self.last.compare_exchange(0, id, Ordering::SeqCst, Ordering::SeqCst);
    }

    fn reaches(&self, id: u64) {
        let before = self.last.swap(id, Ordering::SeqCst);
        let gap = if before == 0 { 0 } else { id.abs_diff(before + 1) };
        self.missed.fetch_add(gap, Ordering::SeqCst);
        self.events.fetch_add(1, Ordering::SeqCst);
    }

    fn hears(&self, agent: Option<usize>, told: &mut [usize], posts: &Posts) {
        let now = Instant::now();
        let Some(agent) = agent else { return };
        if let Some(posted) = posts.begun(agent, told[agent]) {
            let lag = now.saturating_duration_since(posted).as_secs_f64() * 1e3;
            self.lags.lock().unwrap_or_else(PoisonError::into_inner).push((posted, lag));
        }
        told[agent] += 1;
        self.prompts.fetch_add(1, Ordering::SeqCst);
    }
}
