use super::{Agent, Content, Home, SettingsFile};
use crate::commands::setup::edit::hooks::{Format, Shape};

/// Not preToolUse and permissionRequest: they come before every tool, asked for or not, and Copilot takes a hook there that
/// cannot be run for a veto.
pub(super) static AGENT: Agent = Agent {
    name: "copilot",
    title: "Copilot CLI",
    program: "copilot",
    home: Home { variable: ("COPILOT_HOME", ""), below_home: ".copilot" },
    files: &[SettingsFile {
        name: "hooks/agtmux.json",
        content: Content::Hooks(Format {
            events: &[
                "sessionStart",
                "userPromptSubmitted",
                "postToolUse",
                "postToolUseFailure",
                "notification",
                "agentStop",
                "errorOccurred",
                "sessionEnd",
            ],
            shape: Shape::Own { version: 1 },
            timeout: 5,
        }),
    }],
    next: "Sessions that already run take the hooks over when they are started anew.",
};
