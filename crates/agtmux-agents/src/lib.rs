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
mod user_manifests;

pub use adapter::{Adapter, AgentCapabilities, ManifestOrigin};
pub use judge::{Judgement, SavedScreen, ScreenObservation, ScreenReading, judge};
pub use manifest::{
    AgentLogFile, AgentStatusFile, AnswerKeys, AnswerMethod, CONTRACT, ManifestError, OptionKeys, OptionPattern,
    ResumeTemplate, SimpleAnswer, TextAnswerMethod, TypingRules, name_matches,
};
pub use process::{IdentifiedAgent, ProcessFacts};
pub use regex::Regex as Pattern;
pub use registry::AgentRegistry;
pub use screen::{CapturedScreen, CellColour, CellStyle, ScreenRow};
pub use user_manifests::{
    MAX_MANIFEST_BYTES, ManifestFault, ManifestFile, ManifestSummary, UserManifests, check_manifest,
};
