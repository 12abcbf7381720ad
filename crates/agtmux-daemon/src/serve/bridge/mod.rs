//! The HTTP interface of tmux-bridge, a service that agtmux can replace. `docs/bridge.md` describes its paths and field
//! names.

mod failure;
pub(super) mod hooks;
mod request;
pub(super) mod respond;
pub(super) mod stream;
