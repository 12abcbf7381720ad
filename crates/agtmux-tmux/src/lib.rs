//! Speaks tmux and watches its panes. Knows nothing of agents.
//!
//! Everything that comes back from tmux is hostile until parsed: replies are framed with a word that no pane could have
//! known, and ids are checked.

mod attach;
mod capture;
mod command;
pub mod hooks;
pub mod host;
mod input;
mod listing;
pub mod platform;
mod pulse;
mod server;
mod sockets;
pub mod ssh;
mod tap;
mod tasks;
mod version;

pub use attach::Way;
pub use capture::Capture;
pub use command::{Command, Framing};
pub use input::{BadKey, Key, PaneGuard, Refused, TypeError, Typing};
pub use listing::{Dead, Listing, PaneRow, ServerFacts};
pub use pulse::{Pulse, PulseListing};
pub use server::{TmuxError, TmuxServer};
pub use sockets::{SocketDir, is_listening, listener_pid, own_socket, socket_of_tmux_variable};
pub use tasks::{
    CUT as SHOWN_CUT, CursorLook, Launch, LaunchError, Launched, SlotKeeper, SlotPane, TaskSession, default_socket,
    quoted_for_shell,
};
pub use version::{MINIMUM, Version};
