//! A summary of an agent's manifest: its sources, states and capabilities.

use std::collections::BTreeSet;

use agtmux_core::evidence::{Assertion, DialogKind, Source};
use agtmux_core::state::State;

use crate::known_agent::KnownAgent;
use crate::manifest::CONTRACT;

/// Describes one supported agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    pub name: String,
    pub contract: u32,
    /// The version of the agent's rules, as the agent's manifest states it.
    pub version: u32,
    pub capabilities: AgentCapabilities,
    /// The sources of evidence that the agent's rules use.
    pub sources: BTreeSet<Source>,
    /// Whether the rules were tested with the real agent. If false, they come from the agent's documentation only.
    pub measured: bool,
    /// The states that the agent's rules can report.
    pub states: BTreeSet<State>,
    pub origin: ManifestOrigin,
    /// One warning per manifest key that this build does not know.
    pub warnings: Vec<String>,
}

/// The origin of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestOrigin {
    /// The manifest is part of this build.
    BuiltIn,
    /// A user's file. `replaces` is true if the file replaces a built-in manifest.
    File { path: String, replaces: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// Whether the agent sends events of its own.
    pub event_driven: bool,
    /// Whether agtmux must also read the agent's screen, because rules for the screen or for dialogs exist.
    pub polling_required: bool,
    pub supports_waiting_approval: bool,
    pub supports_waiting_input: bool,
    pub supports_completed: bool,
}

impl From<&KnownAgent> for Adapter {
    fn from(KnownAgent { manifest, origin }: &KnownAgent) -> Self {
        let screen_states = manifest.screen.iter().map(|rule| rule.state);
        let title_states = manifest.title.iter().map(|rule| rule.state);
        let dialogs = manifest.dialog.iter().map(|rule| Assertion::DialogOpen(rule.kind));
        let events = manifest.event.iter().flat_map(|rule| rule.assertions());
        let states: BTreeSet<State> =
            screen_states.chain(title_states).chain(dialogs.chain(events).filter_map(Assertion::state)).collect();
        let mut sources: BTreeSet<Source> = manifest.event.iter().map(|rule| rule.source).collect();
        sources.insert(Source::Process);
        let reads_screen = !manifest.screen.is_empty() || !manifest.dialog.is_empty();
        sources.extend(reads_screen.then_some(Source::Screen));
        sources.extend((!manifest.title.is_empty()).then_some(Source::Title));
        let asks = |kind| Assertion::DialogOpen(kind).state().is_some_and(|state| states.contains(&state));
        Self {
            name: manifest.name.to_string(),
            contract: CONTRACT,
            version: manifest.version,
            capabilities: AgentCapabilities {
                event_driven: !manifest.event.is_empty(),
                polling_required: reads_screen,
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
    fn agents_with_events_support_all_capabilities() {
        for name in ["claude", "codex", "copilot", "gemini", "opencode", "pi", "qwen"] {
            let adapter = AgentRegistry::builtin().adapters().find(|a| a.name == name).expect("the agent is built in");
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
    fn only_cursor_is_not_measured() {
        let unmeasured: Vec<String> =
            AgentRegistry::builtin().adapters().filter(|a| !a.measured).map(|a| a.name).collect();
        assert_eq!(unmeasured, ["cursor"]);
    }
}
