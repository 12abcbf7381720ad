//! Converts tmux listings to fleet types.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use agtmux_core::fleet::{PaneExitStatus, PaneRow};
use agtmux_core::ids::{Generation, PaneId, ServerKey, ServerName, SessionId, TargetName, WindowId};
use agtmux_core::text;
use agtmux_tmux::{ServerInfo, SocketDir};

pub(crate) fn pane_row(row: agtmux_tmux::ListedPane) -> PaneRow {
    PaneRow {
        session: SessionId(row.session),
        session_name: text::from_bytes(&row.session_name),
        window: WindowId(row.window),
        window_index: row.window_index,
        window_name: text::from_bytes(&row.window_name),
        pane: PaneId(row.pane),
        pane_index: row.pane_index,
        pid: row.pid,
        tty: text::from_bytes(&row.tty),
        dead: row.dead.map(|d| PaneExitStatus { status: d.status, signal: d.signal }),
        title: text::from_bytes(&row.title),
    }
}

pub(crate) fn generation(server: &ServerInfo) -> Generation {
    Generation { pid: server.pid, start_time: server.start_time }
}

/// The name of the server with this socket.
pub(crate) fn server_name(socket: &Path) -> ServerName {
    server_key(socket, &default_socket_dir()).server
}

/// The default socket directory of this user.
pub(crate) fn default_socket_dir() -> SocketDir {
    SocketDir::below(std::env::var_os("TMUX_TMPDIR").as_deref())
}

/// The key of a server. The name of the server is the file name of its socket if the socket is in the default
/// directory, otherwise the full path.
pub(crate) fn server_key(socket: &Path, default_dir: &SocketDir) -> ServerKey {
    let name = match socket.file_name() {
        Some(name) if socket.parent() == Some(default_dir.path()) => text::from_bytes(name.as_bytes()),
        _ => path_text(socket),
    };
    ServerKey { target: TargetName::local(), server: ServerName::new(name) }
}

pub(crate) fn path_text(path: &Path) -> String {
    text::from_bytes(path.as_os_str().as_bytes())
}
