//! TCP connections. A client can open a connection without a token, so the number of connections and the time for a
//! request are limited. Connections of other local users are refused, except those of the configured proxy users.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use agtmux_tmux::platform::{FileUse, has_room};
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::{TcpClient, WebAuth, peers};
use crate::serve::listener::{StallGuard, pause_after_accept_error};

/// The most open connections. This is enough for many dashboards with many streams each.
const MAX_CONNECTIONS: usize = 512;
/// How long a client may take to send the head of a request. On a connection that is kept alive, the daemon also waits
/// at most this long for the next request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest request head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Accepts and serves connections until `stopping` turns true. Then accepts no new connections, and returns when the
/// open connections are closed.
pub(super) async fn serve(
    listener: TcpListener,
    auth: Arc<WebAuth>,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (mut connections, connection_stopping) = (JoinSet::new(), stopping.clone());
    loop {
        tokio::select! {
            (stream, from, permit) = accept(&listener, &slots) => {
                let client = TcpClient { from, to: stream.local_addr().ok() };
                let (auth, router, stopping) = (auth.clone(), router.clone(), connection_stopping.clone());
                connections.spawn(async move {
                    match peers::is_admitted(client, &auth).await {
                        true => serve_connection(stream, client, router, stopping, permit).await,
                        false => peers::refuse(stream).await,
                    }
                });
            }
            Some(_) = connections.join_next() => {}
            _ = stopping.wait_for(|stop| *stop) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    let permit = slots.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, from)) if has_room(stream.as_fd(), FileUse::Connection) => return (stream, from, permit),
            Ok(_) => tracing::warn!("closed a web connection: too few file descriptors are free"),
            Err(error) => pause_after_accept_error(&error).await,
        }
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: TcpClient,
    router: Router,
    mut stopping: watch::Receiver<bool>,
    _permit: Option<OwnedSemaphorePermit>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(client));
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let connection = builder.serve_connection(TokioIo::new(StallGuard::new(stream)), service).with_upgrades();
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => Some(result),
        _ = stopping.wait_for(|stop| *stop) => None,
    };
    let result = match result {
        Some(result) => result,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, timeout};

    /// Sends these bytes on a new connection. Returns the server's response, and the time until the server closed the
    /// connection.
    async fn answer_to(bytes: &str) -> (String, Duration) {
        // Use a stream in memory, because the paused clock does not wait for the kernel to deliver bytes.
        let (mut client, server) = duplex(MAX_HEAD_BYTES);
        let router = Router::new().route("/", get(|| async { "served" }));
        let (_stop, stopping) = watch::channel(false);
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        let connection = serve_connection(server, TcpClient { from, to: None }, router, stopping, None);
        let (sent, mut answer) = (Instant::now(), String::new());
        client.write_all(bytes.as_bytes()).await.expect("written");
        let exchange = async { tokio::join!(connection, client.read_to_string(&mut answer)).1 };
        let closed = timeout(2 * HEADER_TIMEOUT, exchange).await;
        closed.unwrap_or_else(|_| panic!("the connection with {bytes:?} stays open")).expect("the answer is text");
        (answer, sent.elapsed())
    }

    /// Connections without a complete request would use up the connection limit.
    #[tokio::test(start_paused = true)]
    async fn incomplete_requests_are_disconnected() {
        for bytes in ["", "GET / HTTP/1.1\r\nHost: ", "GET /v1/panes HTTP/1.1\r\n"] {
            let (answer, after) = answer_to(bytes).await;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
            assert!(after >= HEADER_TIMEOUT && after < HEADER_TIMEOUT * 11 / 10, "{bytes:?} after {after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_connection_without_a_next_request_is_disconnected() {
        let (answer, after) = answer_to("GET / HTTP/1.1\r\nHost: here\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("served"), "{answer}");
        assert!(after >= HEADER_TIMEOUT && after < HEADER_TIMEOUT * 11 / 10, "{after:?}");
    }
}
