//! Serves one client over stdin and stdout.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;
use rustix::fs::{FileType, fstat};
use tokio::net::UnixStream;

use crate::McpOptions;
use crate::server::AgtmuxMcp;

/// Serves the client until it closes stdin.
pub async fn serve_stdio(options: McpOptions) -> io::Result<()> {
    let server = AgtmuxMcp::new(options);
    let ended = match (socket_of(io::stdin())?, socket_of(io::stdout())?) {
        (Some(input), Some(output)) => serve(server, (input, output)).await,
        _ => serve(server, stdio_pipes()).await,
    };
    ended.map_err(io::Error::other)
}

async fn serve<R, W>(server: AgtmuxMcp, (input, output): (R, W)) -> Result<(), String>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    use rmcp::service::ServerInitializeError;
    match server.serve((input, output)).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
        // A client that closes the connection before it says anything is no error.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The stream as a socket, if it is one. Node gives sockets instead of pipes to its children. A socket that is read
/// without blocking needs no thread.
fn socket_of(stream: impl AsFd) -> io::Result<Option<UnixStream>> {
    let is_socket = FileType::from_raw_mode(fstat(&stream)?.st_mode) == FileType::Socket;
    if !is_socket {
        return Ok(None);
    }
    let copy: OwnedFd = stream.as_fd().try_clone_to_owned()?;
    let socket = StdUnixStream::from(copy);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket).map(Some)
}
