//! What an agent's manifest amounts to.

use std::collections::BTreeSet;

use agtmux_core::evidence::{Assertion, DialogKind, Source};
use agtmux_core::state::State;

use crate::manifest::{CONTRACT, Manifest};

/// One agent that can be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    pub name: String,
    pub contract: u32,
    /// Of its rules.
    pub version: u32,
    pub capabilities: AgentCapabilities,
    /// Where its evidence comes from.
    pub sources: BTreeSet<Source>,
    /// Whether its rules were seen to be right on the agent itself, or come from its documentation.
    pub measured: bool,
    /// What it can tell of an agent.
    pub states: BTreeSet<State>,
    pub origin: ManifestOrigin,
    /// Keys in its manifest that this build does not know.
    pub warnings: Vec<String>,
}

/// Where a manifest comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestOrigin {
    BuiltIn,
    /// A file of the user's, perhaps in place of one of this build.
    File {
        path: String,
        replaces: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// It tells of itself.
    pub event_driven: bool,
    /// Some of what it does is seen on its screen only.
    pub polling_required: bool,
    pub supports_waiting_approval: bool,
    pub supports_waiting_input: bool,
    pub supports_completed: bool,
}

impl Adapter {
    pub(crate) fn from_manifest(manifest: &Manifest, origin: &ManifestOrigin) -> Self {
        let rules = manifest.rules();
        let shown = rules.screen.iter().map(|rule| rule.state);
        let titled = rules.title.iter().map(|rule| rule.state);
        let asked = rules.dialog.iter().map(|rule| Assertion::DialogOpen(rule.kind));
        let told = manifest.event.iter().flat_map(|rule| rule.assertions());
        let states: BTreeSet<State> =
            shown.chain(titled).chain(asked.chain(told).filter_map(Assertion::state)).collect();
        let mut sources: BTreeSet<Source> = manifest.event.iter().map(|rule| rule.source()).collect();
        sources.insert(Source::Process);
        let is_read = !rules.screen.is_empty() || !rules.dialog.is_empty();
        sources.extend(is_read.then_some(Source::Screen));
        sources.extend((!rules.title.is_empty()).then_some(Source::Title));
        let asks = |kind| Assertion::DialogOpen(kind).state().is_some_and(|state| states.contains(&state));
        Self {
            name: manifest.name.to_string(),
            contract: CONTRACT,
            version: manifest.version,
            capabilities: AgentCapabilities {
                event_driven: !manifest.event.is_empty(),
                polling_required: is_read,
                supports_waiting_approval: asks(DialogKind::Approval),
                supports_waiting_input: asks(DialogKind::Input),
                supports_completed: states.contains(&State::Completed),
            },
            sources,
            measured: manifest.measured,
            states,
            origin: origin.clone(),
            warnings: manifest.warnings.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentRegistry;

    #[test]
    fn those_that_tell_of_themselves_support_everything() {
        for name in ["claude", "codex", "copilot", "gemini", "opencode", "pi", "qwen"] {
            let adapter = AgentRegistry::builtin().adapters().find(|a| a.name == name).expect("is known");
            let AgentCapabilities {
                event_driven,
                polling_required,
                supports_waiting_approval,
                supports_waiting_input,
                supports_completed,
            } = adapter.capabilities;
            assert!(event_driven && polling_required, "{name}");
            assert!(supports_waiting_approval && supports_waiting_input && supports_completed, "{name}");
            assert!(adapter.sources.contains(&Source::Hook) && adapter.measured, "{name}");
        }
    }

    #[test]
    fn what_was_only_read_about_is_said_to_be_so() {
        let read: Vec<String> = AgentRegistry::builtin().adapters().filter(|a| !a.measured).map(|a| a.name).collect();
        assert_eq!(read, ["cursor"]);
    }
}
