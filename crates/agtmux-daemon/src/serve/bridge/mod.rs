//! The paths and field names of the tmux-bridge document.

mod failure;
pub(super) mod hooks;
mod request;
pub(super) mod respond;
pub(super) mod stream;
