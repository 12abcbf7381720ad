//! What agtmux knows about agents, as data, and the pure functions that judge evidence by it.
//!
//! Each agent has one manifest in `manifests/`. Adding an agent is adding a file there and naming it in the table of
//! [`Registry::builtin`].

mod adapter;
mod command_line;
mod foreground;
pub mod generic;
mod glob;
mod judge;
mod manifest;
pub mod native;
mod process;
mod registry;
mod screen;

pub use adapter::{Adapter, Capabilities};
pub use judge::{Judgement, Reading, Said, SavedScreen, judge};
pub use manifest::{AnswerKeys, CONTRACT, LogFile, ManifestError, OptionKeys, StatusFile, name_fits};
pub use process::{Found, ProcessFacts};
pub use registry::Registry;
pub use screen::{Ink, Row, Screen, Style};
