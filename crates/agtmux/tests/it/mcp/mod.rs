//! The MCP server as an agent uses it.

mod injection;
mod mcp_fixture;
mod permissions;
mod reading;
mod registration;
mod tasks;
mod terminal;
