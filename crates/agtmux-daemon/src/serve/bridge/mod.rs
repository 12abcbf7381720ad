//! The paths of the tmux-bridge document, with its words.

mod failure;
pub(super) mod hooks;
mod request;
pub(super) mod respond;
pub(super) mod stream;
