//! A mock model server on loopback. It speaks the wire protocols of real models and does what the last user message
//! asks for. With it, tests can bring real command line agents into any state without a network.

mod answer_stream;
mod connection;
mod failure;
mod log;
mod script;
mod serve;
mod wire;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use connection::ClientConnection;
use log::RequestLog;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use failure::ModelFailure;
pub use log::ModelRequest;
pub use script::{CLOSING_TEXT, QUOTED_TEXT, SLOW_END_TEXT, ScriptedAction};

/// The mock model server. It runs until it is stopped or dropped.
#[derive(Debug)]
pub struct MockModel {
    address: SocketAddr,
    log: Arc<RequestLog>,
    server: Mutex<Option<RunningServer>>,
}

#[derive(Debug)]
struct RunningServer {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
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
            let service = serve::router(for_server).into_make_service_with_connect_info::<ClientConnection>();
            runtime.block_on(async {
                tokio::select! {
                    _ = axum::serve(listener, service) => {}
                    _ = stopped => {}
                }
            });
            // End unfinished answers at once. A normal shutdown would wait for slow ones.
            runtime.shutdown_background();
        });
        Self { address, log, server: Mutex::new(Some(RunningServer { stop, thread })) }
    }

    /// Stops the server and closes all connections. From now on, new connections are refused.
    pub fn stop(&self) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(RunningServer { stop, thread }) = server {
            // Fails only if the server has already ended.
            let _ = stop.send(());
            // `drop` calls this function and must not panic. A panic in the thread was already printed.
            let _ = thread.join();
        }
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
        self.requests().into_iter().rev().find(|request| request.asks(text))
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        self.stop();
    }
}
