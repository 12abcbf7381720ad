use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};
use crate::commands::setup::edit::hooks::{HookFormat, HookShape};

/// Without preToolUse and permissionRequest: they run before every tool, and Copilot treats a hook that cannot run
/// there as a veto.
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
    next: "Restart running sessions to load the hooks.",
};
