//! The web port. It opens at the start of the daemon if the configuration has an address, or when `agtmux web` asks for
//! it. It can close while the daemon runs.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_api::config::WebConfig;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use super::tokens::WebTokens;
use super::{WebAuth, connections, peers, routes};
use crate::serve::ServeContext;

/// The port that `agtmux web` opens if the configuration has no address and this port is free. A port that stays the
/// same keeps bookmarks and tunnels valid.
const USUAL_PORT: u16 = 7777;

/// How long closing the port waits until its connections have ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The web port of the daemon. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WebPort(Arc<PortInner>);

struct PortInner {
    config: WebConfig,
    state_dir: PathBuf,
    open: Mutex<Option<OpenPort>>,
}

struct OpenPort {
    auth: Arc<WebAuth>,
    closes: watch::Sender<PortEnd>,
    task: JoinHandle<()>,
}

/// When the port closes. `None`: when the daemon stops.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PortEnd {
    pub(super) at: Option<(Instant, Timestamp)>,
}

impl PortEnd {
    pub(super) fn after(time: Duration) -> Self {
        // A time that cannot be represented is longer than any daemon runs.
        let at = Instant::now().checked_add(time).zip(Timestamp::now().checked_add(time).ok());
        Self { at }
    }
}

/// The open port, as requests see it.
pub(super) struct PortStatus {
    pub(super) auth: Arc<WebAuth>,
    pub(super) closes_at: Option<Timestamp>,
}

impl WebPort {
    pub(crate) fn new(config: WebConfig, state_dir: PathBuf) -> Self {
        Self(Arc::new(PortInner { config, state_dir, open: Mutex::default() }))
    }

    /// Opens the port if the configuration has an address.
    pub(crate) async fn open_if_configured(&self, context: &ServeContext) -> io::Result<()> {
        match self.0.config.listen.0 {
            Some(_) => self.open(context, PortEnd::default()).await.map(drop),
            None => Ok(()),
        }
    }

    /// Opens the port, or sets a new end for an open port. A port that the configuration opens has no end.
    pub(super) async fn open(&self, context: &ServeContext, end: PortEnd) -> io::Result<PortStatus> {
        let mut open = self.0.open.lock().await;
        let is_configured = self.0.config.listen.0.is_some();
        let end = if is_configured { PortEnd::default() } else { end };
        let port = match open.take().filter(|port| !port.task.is_finished()) {
            Some(port) => {
                port.closes.send_replace(end);
                port
            }
            None => self.start(context, end).await?,
        };
        let status = port.status();
        *open = Some(port);
        Ok(status)
    }

    async fn start(&self, context: &ServeContext, end: PortEnd) -> io::Result<OpenPort> {
        let config = &self.0.config;
        let proxy_uids = peers::user_ids(&config.proxy_users)?;
        let listener = self.listen().await?;
        let tokens = WebTokens::load_or_create(&self.0.state_dir)?;
        let hosts: Vec<String> =
            config.hosts.iter().cloned().chain(config.public_url.host().map(str::to_owned)).collect();
        let auth = Arc::new(WebAuth::new(listener.local_addr()?, tokens, &hosts, proxy_uids));
        let (closes, end) = watch::channel(end);
        let task = tokio::spawn(serve_until_closed(listener, auth.clone(), context.clone(), end));
        Ok(OpenPort { auth, closes, task })
    }

    async fn listen(&self) -> io::Result<TcpListener> {
        if let Some(address) = self.0.config.listen.0 {
            return TcpListener::bind(address).await;
        }
        match TcpListener::bind((Ipv4Addr::LOCALHOST, USUAL_PORT)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
            bound => bound,
        }
    }

    /// The open port. `None` if the port is closed.
    pub(super) async fn status(&self) -> Option<PortStatus> {
        let open = self.0.open.lock().await;
        open.as_ref().filter(|port| !port.task.is_finished()).map(OpenPort::status)
    }

    /// Closes the port and ends all logins. Returns the number of browsers that were logged in. `None` if the port was
    /// closed already.
    pub(super) async fn close(&self) -> Option<usize> {
        let port = self.0.open.lock().await.take().filter(|port| !port.task.is_finished())?;
        let logins = port.auth.list_logins().len();
        port.end().await;
        Some(logins)
    }

    /// Waits until the connections of the port have ended, after the daemon was told to stop.
    pub(crate) async fn finish(&self) {
        if let Some(port) = self.0.open.lock().await.take() {
            port.end().await;
        }
    }

    /// The first part of a login link.
    pub(super) fn link_base(&self, address: SocketAddr) -> String {
        self.0.config.public_url.url().map_or_else(|| format!("http://{address}"), str::to_owned)
    }

    pub(super) fn has_public_url(&self) -> bool {
        self.0.config.public_url.url().is_some()
    }
}

impl OpenPort {
    fn status(&self) -> PortStatus {
        PortStatus { auth: self.auth.clone(), closes_at: self.closes.borrow().at.map(|(_, at)| at) }
    }

    async fn end(self) {
        // The end of this channel closes the port.
        drop(self.closes);
        let mut task = self.task;
        if tokio::time::timeout(CLOSE_TIMEOUT, &mut task).await.is_err() {
            task.abort();
        }
    }
}

/// Serves until the daemon stops, the time is over, or the sender of `end` is dropped.
async fn serve_until_closed(
    listener: TcpListener,
    auth: Arc<WebAuth>,
    context: ServeContext,
    end: watch::Receiver<PortEnd>,
) {
    let (close, closing) = watch::channel(false);
    let mut stopping = context.stopping.clone();
    // The streams of this port end with the port, not with the daemon.
    let context = ServeContext { stopping: closing.clone(), ..context };
    let serving = connections::serve(listener, auth.clone(), routes(context, auth), closing);
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => return log_failure(result),
        _ = stopping.wait_for(|stop| *stop) => {}
        () = time_over(end) => {}
    }
    close.send_replace(true);
    log_failure(serving.await);
}

fn log_failure(result: io::Result<()>) {
    if let Err(error) = result {
        tracing::error!(%error, "the web port failed");
    }
}

/// Returns at the end of the port.
async fn time_over(mut end: watch::Receiver<PortEnd>) {
    loop {
        let at = end.borrow_and_update().at.map(|(at, _)| at);
        let over = async {
            match at {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => return,
            changed = end.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_port_can_be_moved() {
        let (closes, end) = watch::channel(PortEnd::after(Duration::from_secs(60)));
        let over = tokio::spawn(time_over(end));
        tokio::time::sleep(Duration::from_secs(30)).await;
        closes.send_replace(PortEnd::default());
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert!(!over.is_finished());
        drop(closes);
        over.await.expect("the port closes with its sender");
        assert!(PortEnd::after(Duration::MAX).at.is_none());
    }
}
