//! The MCP server of agtmux. An agent starts `agtmux mcp` and talks to it over stdin and stdout. The server is a client
//! of the daemon: it sees other agents, runs tasks, and runs commands in the terminal that the agent shares with the
//! person.
//!
//! Text that other programs wrote is marked as untrusted, without control characters and without secrets
//! (`untrusted.rs`, `excerpt.rs`). Every result fits the clients: it is short, comes within 45 seconds, and says the same
//! in text and in structured content (`answer.rs`).

mod access;
mod answer;
mod excerpt;
mod options;
mod progress;
mod prompts;
mod registry;
mod resources;
mod server;
mod state;
mod stdio;
mod subscriptions;
mod tool_call;
mod tools;
mod untrusted;

pub use access::{McpAccess, McpPermission};
pub use options::{McpOptions, StartTmux};
pub use stdio::serve_stdio;
