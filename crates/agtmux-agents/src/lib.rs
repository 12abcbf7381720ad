//! What agtmux knows about agents, as data, and the pure functions that judge evidence by it.
//!
//! Each agent has one manifest in `manifests/`. Adding an agent is adding a file there and naming it in the table of
//! [`Registry::builtin`].

mod command_line;
mod foreground;
pub mod generic;
mod glob;
mod manifest;
mod process;
mod registry;
pub mod screen;

pub use manifest::{CONTRACT, ManifestError};
pub use process::{Found, ProcessFacts};
pub use registry::Registry;
