//! A mock model server on loopback. It speaks the wire protocols of real models and does what the last user message
//! says. So tests can bring real command line agents into any state without a network.

mod answer_stream;
mod log;
mod script;
mod serve;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use log::RequestLog;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use log::ModelRequest;
pub use script::{CLOSING_TEXT, QUOTED_TEXT, SLOW_END_TEXT, ScriptedAction};

/// The mock model server. It runs until it is dropped.
#[derive(Debug)]
pub struct MockModel {
    address: SocketAddr,
    log: Arc<RequestLog>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MockModel {
    #[expect(clippy::new_without_default, reason = "creating a server opens a port")]
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the runtime starts");
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).expect("loopback has a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let log = Arc::new(RequestLog::default());
        let (stop, stopped) = oneshot::channel();
        let for_server = Arc::clone(&log);
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = axum::serve(listener, serve::router(for_server)) => {}
                    _ = stopped => {}
                }
            });
            // End unfinished answers at once. A normal shutdown would wait for slow ones.
            runtime.shutdown_background();
        });
        Self { address, log, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL, without a path and without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The stored requests, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.log.all()
    }

    /// The newest request whose prompt has a line that begins with this text. Side requests are ignored.
    pub fn find_request(&self, text: &str) -> Option<ModelRequest> {
        let is_it = |request: &ModelRequest| request.prompt.lines().any(|line| line.trim_start().starts_with(text));
        self.requests().into_iter().rev().find(|request| !request.is_side_request && is_it(request))
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        // Fails only if the server has already ended.
        let _ = self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take() {
            // A drop must not panic. A panic in the thread was already printed.
            let _ = thread.join();
        }
    }
}
