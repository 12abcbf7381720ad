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
            // Milliseconds; newer versions count in seconds, and still take so large a number for what it was.
            timeout: 5000,
        }),
    }],
    next: "Sessions that already run take the hooks over when they are started anew; /hooks in Qwen Code lists them.",
};
