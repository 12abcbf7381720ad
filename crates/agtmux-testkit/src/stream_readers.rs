//! Many concurrent readers of the bridge's event stream, all on one thread. Also opens stalled connections, which read
//! nothing.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;

use crate::hook_load::HookLoad;

/// How readers connect to the daemon, and the hook load that causes the events they read.
#[derive(Clone)]
pub struct StreamSubscription {
    pub address: SocketAddr,
    /// The authorization header that readers send.
    pub bearer: String,
    /// The ids of the agents, in the same order as the sessions of `load`.
    pub agent_ids: Arc<[String]>,
    pub load: Arc<HookLoad>,
}

#[derive(Debug, Default)]
pub struct ReaderProgress {
    /// The id of the last event that this reader has received.
    last_id: AtomicU64,
    pub events: AtomicU64,
    /// How many prompts this reader has received.
    pub prompts: AtomicU64,
    /// How many events this reader has missed. A resync counts too.
    pub missed: AtomicU64,
    /// For each prompt: when it was posted, and how many milliseconds later this reader received it.
    lags: Mutex<Vec<(Instant, f64)>>,
}

pub struct StreamReaders {
    readers: Vec<Arc<ReaderProgress>>,
    /// Open connections that the tests never read from.
    _stalled: Vec<TcpStream>,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl StreamReaders {
    /// Opens all connections. Returns when the daemon has answered on every one.
    pub fn connect(subscription: &StreamSubscription, readers: usize, stalled: usize) -> Self {
        let stalled = (0..stalled).map(|_| subscription.open_stream()).collect();
        let (end, ended) = watch::channel(false);
        let readers: Vec<_> =
            (0..readers).map(|_| (subscription.open_stream(), Arc::<ReaderProgress>::default())).collect();
        let progress = readers.iter().map(|(_, progress)| progress.clone()).collect();
        let subscription = subscription.clone();
        let thread = thread::spawn(move || read_all(&subscription, readers, ended));
        Self { readers: progress, _stalled: stalled, end, thread: Some(thread) }
    }

    pub fn readers(&self) -> &[Arc<ReaderProgress>] {
        &self.readers
    }

    pub fn have_received(&self, prompts: u64) -> bool {
        self.readers.iter().all(|reader| reader.prompts.load(Ordering::SeqCst) >= prompts)
    }

    pub fn missed(&self) -> u64 {
        self.readers.iter().map(|reader| reader.missed.load(Ordering::SeqCst)).sum()
    }

    /// The delays with which the readers received the prompts, ordered by the times at which the prompts were posted.
    pub fn lags(&self) -> Vec<f64> {
        let of = |reader: &Arc<ReaderProgress>| reader.lags.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut lags: Vec<(Instant, f64)> = self.readers.iter().flat_map(of).collect();
        lags.sort_by_key(|(posted, _)| *posted);
        lags.into_iter().map(|(_, lag)| lag).collect()
    }
}

impl Drop for StreamReaders {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic was already printed by the thread.
            let _ = thread.join();
        }
    }
}

impl StreamSubscription {
    fn open_stream(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the port is open");
        let host = format!("Host: {}", self.address);
        let request = format!("GET /api/events/stream HTTP/1.1\r\n{host}\r\n{}\r\n\r\n", self.bearer);
        stream.write_all(request.as_bytes()).expect("the daemon reads the request");
        let mut byte = [0];
        stream.peek(&mut byte).expect("the daemon answers");
        stream
    }
}

fn read_all(
    subscription: &StreamSubscription,
    readers: Vec<(TcpStream, Arc<ReaderProgress>)>,
    mut ended: watch::Receiver<bool>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for (stream, progress) in readers {
            stream.set_nonblocking(true).expect("a socket");
            let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
            let subscription = subscription.clone();
            tokio::spawn(async move { read(stream, &subscription, &progress).await });
        }
        let _ = ended.wait_for(|ended| *ended).await;
    });
}

async fn read(stream: tokio::net::TcpStream, subscription: &StreamSubscription, progress: &ReaderProgress) {
    let mut lines = BufReader::with_capacity(1 << 16, stream).lines();
    let mut received = vec![0; subscription.agent_ids.len()];
    let (mut is_turn, mut id) = (false, 0);
    while let Ok(Some(line)) = lines.next_line().await {
        match line.split_once(": ") {
            Some(("id", number)) => id = number.parse().unwrap_or(0),
            // An id without an event is the position at which the stream starts.
            _ if line.is_empty() => progress.start_at(id),
            Some(("event", kind)) => {
                progress.advance_to(id);
                is_turn = kind == "turn_created";
                progress.missed.fetch_add(u64::from(kind == "resync"), Ordering::SeqCst);
            }
            Some(("data", data)) if is_turn && data.contains(r#""intent":"COMMAND""#) => {
                let agent = subscription.agent_ids.iter().position(|id| data.contains(id.as_str()));
                progress.record_prompt(agent, &mut received, &subscription.load);
            }
            _ => {}
        }
    }
}

impl ReaderProgress {
    fn start_at(&self, id: u64) {
        let _ = self.last_id.compare_exchange(0, id, Ordering::SeqCst, Ordering::SeqCst);
    }

    fn advance_to(&self, id: u64) {
        let before = self.last_id.swap(id, Ordering::SeqCst);
        let gap = if before == 0 { 0 } else { id.abs_diff(before + 1) };
        self.missed.fetch_add(gap, Ordering::SeqCst);
        self.events.fetch_add(1, Ordering::SeqCst);
    }

    fn record_prompt(&self, agent: Option<usize>, received: &mut [usize], load: &HookLoad) {
        let now = Instant::now();
        let Some(agent) = agent else { return };
        if let Some(posted) = load.prompt_posted_at(agent, received[agent]) {
            let lag = now.saturating_duration_since(posted).as_secs_f64() * 1e3;
            self.lags.lock().unwrap_or_else(PoisonError::into_inner).push((posted, lag));
        }
        received[agent] += 1;
        self.prompts.fetch_add(1, Ordering::SeqCst);
    }
}
