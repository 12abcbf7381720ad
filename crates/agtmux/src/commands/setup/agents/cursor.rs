use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};
use crate::commands::setup::edit::hooks::{HookFormat, HookShape};

/// From Cursor's documentation; not tested with Cursor. Cursor ignores the whole file if one event name is unknown.
pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "cursor",
    title: "Cursor CLI",
    program: "cursor-agent",
    // No variable is known that moves the directory.
    home: SettingsDir { variable: ("", ""), below_home: ".cursor" },
    files: &[SettingsFile {
        name: "hooks.json",
        content: SettingsContent::Hooks(HookFormat {
            events: &["beforeSubmitPrompt", "preToolUse", "afterAgentResponse", "stop", "sessionEnd"],
            shape: HookShape::Flat { version: 1 },
            timeout: 0,
        }),
    }],
    next: "These hooks follow Cursor's documentation and were not tested with Cursor. The Cursor editor runs them too; \
           agtmux ignores events from outside tmux.",
};
