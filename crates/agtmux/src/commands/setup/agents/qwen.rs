use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};
use crate::commands::setup::edit::hooks::{HookFormat, HookShape};

pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "qwen",
    title: "Qwen Code",
    program: "qwen",
    home: SettingsDir { variable: ("QWEN_HOME", ""), below_home: ".qwen" },
    files: &[SettingsFile {
        name: "settings.json",
        content: SettingsContent::Hooks(HookFormat {
            events: &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PermissionRequest",
                "PostToolUse",
                "PostToolUseFailure",
                "Notification",
                "Stop",
                "StopFailure",
                "SessionEnd",
            ],
            shape: HookShape::Grouped { matcher: None, named: true },
            // In milliseconds. Newer versions use seconds, but still read such a large number as milliseconds.
            timeout: 5000,
        }),
    }],
    next: "Restart running sessions to load the hooks; /hooks in Qwen Code lists them.",
};
