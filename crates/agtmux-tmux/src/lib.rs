//! Runs tmux commands and watches panes. This crate knows nothing about agents.
//!
//! The output of tmux is untrusted. Records are therefore framed with a random marker, and ids are checked.

mod activity;
mod attach;
mod capture;
mod client_terminals;
mod client_views;
mod clients;
mod command;
pub mod hooks;
pub mod host;
mod input;
mod listing;
mod mirror;
mod new_pane;
pub mod platform;
mod server;
mod sidebar;
mod sockets;
pub mod ssh;
mod tap;
mod tasks;
mod version;

pub use activity::{ActivityListing, PaneActivity};
pub use attach::AttachMethod;
pub use capture::{Capture, PaneScreenCapture};
pub use client_terminals::ClientTerminal;
pub use client_views::{ClientPlace, ClientView, is_terminal_path};
pub use clients::TmuxClient;
pub use command::{Framing, TmuxCommand};
pub use input::{InvalidKey, PaneGuard, PaneInput, TmuxKey, TypeError, TypeRefusal};
pub use listing::{ListedPane, PaneExit, ServerInfo, ServerListing};
pub use mirror::{MirrorLaunch, SplitSource};
pub use new_pane::{OpenedPane, PanePlace};
pub use server::{TmuxError, TmuxServer};
pub use sidebar::WindowPane;
pub use sockets::{SocketDir, is_listening, is_own_socket, listener_pid, socket_of_tmux_variable};
pub use tasks::{
    CursorScreen, LaunchError, LaunchedPane, TRUNCATION_MARK, TaskLaunch, TaskPane, TaskSessionOwner, TmuxTaskSession,
    default_socket, quoted_for_shell,
};
pub use version::{MIN_VERSION, TmuxVersion};
