use super::{Agent, Content, Home, SettingsFile};
use crate::commands::setup::edit::hooks::{Format, Shape};

pub(super) static AGENT: Agent = Agent {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    home: Home { variable: ("CLAUDE_CONFIG_DIR", ""), below_home: ".claude" },
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
                "SubagentStop",
                "SessionEnd",
                "Elicitation",
                "ElicitationResult",
            ],
            shape: Shape::Grouped { matcher: Some(""), named: false },
            timeout: 5,
        }),
    }],
    next: "Sessions that already run take the hooks over when they are started anew; /hooks in Claude Code lists them.",
};
