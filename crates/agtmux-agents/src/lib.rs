//! What agtmux knows about agents, as data, and the pure functions that judge evidence by it.
//!
//! Each agent has one manifest in `manifests/`. Adding an agent is adding a file there and naming it in the table of
//! [`Registry::builtin`]. Users add theirs as files: [`UserManifests`].

mod adapter;
mod command_line;
mod foreground;
pub mod generic;
mod glob;
mod judge;
mod manifest;
pub mod native;
mod nested;
mod process;
mod registry;
mod screen;
mod user;

pub use adapter::{Adapter, Capabilities, Origin};
pub use judge::{Judgement, Reading, Said, SavedScreen, judge};
pub use manifest::{
    AnswerKeys, CONTRACT, LogFile, ManifestError, OptionKeys, OptionPattern, Plain, Resume, StatusFile, TextWay,
    TypingRules, Way, name_fits,
};
pub use process::{Found, ProcessFacts};
pub use regex::Regex as Pattern;
pub use registry::Registry;
pub use screen::{Ink, Row, Screen, Style};
pub use user::{Checked, Fault, LARGEST_MANIFEST, ManifestFile, UserManifests, check};
