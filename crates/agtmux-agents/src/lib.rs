//! The agents that agtmux knows, described as data, and the pure functions that judge evidence with these descriptions.
//!
//! Each agent has one manifest in `manifests/`. To add an agent, add a file there and add its name to the list
//! `EMBEDDED` in `registry.rs`. Users add their own manifests as files: [`UserManifests`].

mod adapter;
mod bridge_hooks;
mod command_line;
mod conversation;
mod foreground;
mod generic;
mod glob;
mod judge;
mod known_agent;
mod manifest;
pub mod native;
mod nested;
mod osc;
mod process;
mod registry;
mod reporting_process;
mod screen;
mod session_files;
mod transcript;
mod user_manifests;

pub use adapter::{Adapter, AgentCapabilities, ManifestOrigin};
pub use bridge_hooks::{BRIDGE_AGENT, BRIDGE_HOOKS, BridgeHook, SessionChange};
pub use conversation::{ConversationReader, ConversationTurn, TurnEnding};
pub use generic::{RULE_NAME as GENERIC_RULE, SESSION_FIELDS};
pub use judge::{Judgement, SavedScreen, ScreenReading, judge};
pub use known_agent::KnownAgent;
pub use manifest::{
    AgentLogFile, AgentSetup, AgentStatusFile, AnswerKeys, AnswerMethod, CONTRACT, ConversationStore, ManifestError,
    OptionKeys, OptionPattern, Pattern, ResumeTemplate, SetupFile, SetupFormat, SimpleAnswer, TextAnswerMethod,
    TypingRules, name_matches,
};
pub use osc::OscScanner;
pub use process::{IdentifiedAgent, ProcessFacts};
pub use registry::AgentRegistry;
pub use reporting_process::{is_shown_suspended, reporting_process};
pub use screen::{CapturedScreen, CellColour, CellStyle, ScreenRow};
pub use session_files::{SESSION_DIRS, SessionDir, SessionNames, is_session_file};
pub use transcript::{add_last_record, transcript_path};
pub use user_manifests::{MAX_MANIFEST_BYTES, ManifestFault, ManifestFile, UserManifests, check_manifest};
