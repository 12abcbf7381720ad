//! The unix socket: private to its user, with a write timeout.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::{API_HEADER, API_VERSION, VERSION, VERSION_HEADER};
use agtmux_tmux::platform::{FileUse, has_room};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::background::BackgroundTasks;
use crate::file_identity::FileIdentity;

/// A client that reads nothing for this long is disconnected. The client can resume later.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a refused client may take to send its request.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(500);

/// How many refused clients get a response at the same time. Each of them uses one of the reserved file descriptors.
const MAX_REFUSALS: usize = 4;

/// The name of the socket in the health report.
const SOCKET: &str = "socket";

pub(crate) struct BoundSocket {
    listener: UnixListener,
    path: PathBuf,
    identity: Option<FileIdentity>,
    /// Requests a check whether the socket still exists.
    pub(crate) check: Arc<Notify>,
    background: BackgroundTasks,
    /// Limits how many clients are refused at the same time.
    refusals: Arc<Semaphore>,
}

/// Creates the socket and replaces an existing one. Call this function only while this daemon holds its locks: the
/// existing socket then belongs to a dead daemon.
pub(crate) fn bind(path: &Path, background: &BackgroundTasks) -> io::Result<BoundSocket> {
    let listener = listen(path)?;
    Ok(BoundSocket {
        listener,
        path: path.to_owned(),
        identity: FileIdentity::at(path),
        check: Arc::default(),
        background: background.clone(),
        refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
    })
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the path exists and is not a socket")),
        Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

impl BoundSocket {
    fn is_in_place(&self) -> bool {
        FileIdentity::at(&self.path).is_some_and(|found| Some(found) == self.identity)
    }

    /// Creates the socket again if another program removed it. Open connections are not affected.
    fn restore_if_removed(&mut self) {
        if self.is_in_place() {
            return;
        }
        match listen(&self.path) {
            Ok(listener) => {
                (self.listener, self.identity) = (listener, FileIdentity::at(&self.path));
                self.background.clear(SOCKET);
                tracing::warn!(socket = %self.path.display(), "the socket was removed; the daemon listens on it again");
            }
            Err(error) => self.background.report_fault(
                SOCKET,
                format!("'{}' was removed, and the daemon cannot listen on it again: {error}", self.path.display()),
            ),
        }
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        // Another daemon may listen on the path by now.
        if self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The peer's identity, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) uid: u32,
    pub(crate) pid: Option<u32>,
}

impl axum::extract::connect_info::Connected<axum::serve::IncomingStream<'_, BoundSocket>> for Peer {
    fn connect_info(stream: axum::serve::IncomingStream<'_, BoundSocket>) -> Self {
        *stream.remote_addr()
    }
}

impl axum::serve::Listener for BoundSocket {
    type Io = StallGuard<UnixStream>;
    type Addr = Peer;

    async fn accept(&mut self) -> (StallGuard<UnixStream>, Peer) {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = self.check.notified() => {
                    self.restore_if_removed();
                    continue;
                }
            };
            match accepted {
                Ok((stream, _)) if !has_room(stream.as_fd(), FileUse::Connection) => {
                    // Without a permit the connection is closed at once: refused clients must not use up the reserved
                    // file descriptors.
                    if let Ok(permit) = self.refusals.clone().try_acquire_owned() {
                        self.background.run("refusal", async move {
                            refuse_busy(stream).await;
                            drop(permit);
                        });
                    }
                }
                Ok((stream, _)) => match peer(&stream) {
                    Some(peer) => return (StallGuard::new(stream), peer),
                    None => tracing::warn!("rejected a connection from another user"),
                },
                Err(error) => {
                    pause_after_accept_error(&error).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer { uid: rustix::process::geteuid().as_raw(), pid: Some(std::process::id()) })
    }
}

/// Waits after a failed accept. The usual cause is that the daemon has no free file descriptor until a client
/// disconnects.
pub(super) async fn pause_after_accept_error(error: &io::Error) {
    tracing::warn!(%error, "could not accept a connection");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Answers 503 to a client for which too few file descriptors are left, and closes the connection.
async fn refuse_busy(mut stream: UnixStream) {
    let error = ApiError::new(ErrorCode::Busy, "the daemon has too few free file descriptors for another client")
        .with_hint("close other clients, or raise the limit (ulimit -n) and run agtmux daemon restart");
    let body = serde_json::to_string(&error).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 {} Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         {API_HEADER}: {API_VERSION}\r\n{VERSION_HEADER}: {VERSION}\r\nconnection: close\r\n\r\n{body}",
        ErrorCode::Busy.http_status(),
        body.len()
    );
    let exchange = async {
        // The client sends its request first. Closing the socket before the request was read could discard the
        // response.
        let _ = stream.read(&mut [0; 4096]).await?;
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    // A client that sends nothing is disconnected without a response.
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, exchange).await;
}

/// The peer of the connection. `None` if the peer belongs to another user.
fn peer(stream: &UnixStream) -> Option<Peer> {
    let peer = stream.peer_cred().ok().filter(|peer| peer.uid() == rustix::process::geteuid().as_raw())?;
    Some(Peer { uid: peer.uid(), pid: peer.pid().and_then(|pid| u32::try_from(pid).ok()) })
}

/// A connection that fails when its peer stops reading.
pub(crate) struct StallGuard<S> {
    stream: S,
    stall_timer: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, stall_timer: None }
    }

    fn check_stall<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stall_timer = None;
            return progress;
        }
        let timer = self.stall_timer.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + WRITE_TIMEOUT)));
        match timer.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.check_stall(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.check_stall(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
