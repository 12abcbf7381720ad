use super::{Agent, Content, Home, SettingsFile};
use crate::commands::setup::edit::hooks::{Format, Shape};

pub(super) static AGENT: Agent = Agent {
    name: "qwen",
    title: "Qwen Code",
    program: "qwen",
    home: Home { variable: ("QWEN_HOME", ""), below_home: ".qwen" },
    files: &[SettingsFile {
        name: "settings.json",
        content: Content::Hooks(Format {
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
            shape: Shape::Grouped { matcher: None, named: true },
            // Milliseconds; newer versions count in seconds, and still take so large a number for what it was.
            timeout: 5000,
        }),
    }],
    next: "Sessions that already run take the hooks over when they are started anew; /hooks in Qwen Code lists them.",
};
