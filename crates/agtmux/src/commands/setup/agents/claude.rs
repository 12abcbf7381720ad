use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};
use crate::commands::setup::edit::hooks::{HookFormat, HookShape};

pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    home: SettingsDir { variable: ("CLAUDE_CONFIG_DIR", ""), below_home: ".claude" },
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
                "SubagentStop",
                "SessionEnd",
                "Elicitation",
                "ElicitationResult",
            ],
            shape: HookShape::Grouped { matcher: Some(""), named: false },
            timeout: 5,
        }),
    }],
    next: "Restart running sessions to load the hooks; /hooks in Claude Code lists them.",
};
