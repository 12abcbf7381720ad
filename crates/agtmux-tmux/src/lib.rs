//! Runs tmux commands and watches panes. This crate knows nothing about agents.
//!
//! The output of tmux is untrusted. Records are therefore framed with a random marker, and ids are checked.

mod activity;
mod attach;
mod capture;
mod clients;
mod command;
pub mod hooks;
pub mod host;
mod input;
mod listing;
mod mirror;
pub mod platform;
mod server;
mod sockets;
pub mod ssh;
mod tap;
mod tasks;
mod version;

pub use activity::{ActivityListing, PaneActivity};
pub use attach::AttachMethod;
pub use capture::{Capture, PaneScreenCapture};
pub use clients::TmuxClient;
pub use command::{Framing, TmuxCommand};
pub use input::{InvalidKey, PaneGuard, PaneInput, TmuxKey, TypeError, TypeRefusal};
pub use listing::{ListedPane, PaneExit, ServerInfo, ServerListing};
pub use mirror::{MirrorLaunch, SplitSource};
pub use server::{TmuxError, TmuxServer};
pub use sockets::{SocketDir, is_listening, is_own_socket, listener_pid, socket_of_tmux_variable};
pub use tasks::{
    CursorScreen, LaunchError, LaunchedPane, TRUNCATION_MARK, TaskLaunch, TaskPane, TaskSessionOwner, TmuxTaskSession,
    default_socket, quoted_for_shell,
};
pub use version::{MIN_VERSION, TmuxVersion};
