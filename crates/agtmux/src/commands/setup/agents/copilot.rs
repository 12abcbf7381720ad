use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};
use crate::commands::setup::edit::hooks::{HookFormat, HookShape};

/// Not preToolUse and permissionRequest: they come before every tool, asked for or not, and Copilot takes a hook there that
/// cannot be run for a veto.
pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "copilot",
    title: "Copilot CLI",
    program: "copilot",
    home: SettingsDir { variable: ("COPILOT_HOME", ""), below_home: ".copilot" },
    files: &[SettingsFile {
        name: "hooks/agtmux.json",
        content: SettingsContent::Hooks(HookFormat {
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
            shape: HookShape::Own { version: 1 },
            timeout: 5,
        }),
    }],
    next: "Sessions that already run take the hooks over when they are started anew.",
};
