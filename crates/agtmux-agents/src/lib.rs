//! The agents that agtmux knows, described as data, and the pure functions that judge evidence with these descriptions.
//!
//! Each agent has one manifest in `manifests/`. To add an agent, add a file there and list it in the table of
//! [`AgentRegistry::builtin`]. Users add their own manifests as files: [`UserManifests`].

mod adapter;
mod command_line;
mod foreground;
mod generic;
mod glob;
mod judge;
mod known_agent;
mod manifest;
pub mod native;
mod nested;
mod process;
mod registry;
mod screen;
mod user_manifests;

pub use adapter::{Adapter, AgentCapabilities, ManifestOrigin};
pub use judge::{Judgement, SavedScreen, ScreenReading, judge};
pub use known_agent::KnownAgent;
pub use manifest::{
    AgentLogFile, AgentStatusFile, AnswerKeys, AnswerMethod, CONTRACT, ManifestError, OptionKeys, OptionPattern,
    ResumeTemplate, SimpleAnswer, TextAnswerMethod, TypingRules, name_matches,
};
pub use process::{IdentifiedAgent, ProcessFacts};
pub use regex::Regex as Pattern;
pub use registry::AgentRegistry;
pub use screen::{CapturedScreen, CellColour, CellStyle, ScreenRow};
pub use user_manifests::{MAX_MANIFEST_BYTES, ManifestFault, ManifestFile, UserManifests, check_manifest};
