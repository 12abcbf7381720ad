use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};
use crate::commands::setup::edit::hooks::{HookFormat, HookShape};

pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "codex",
    title: "Codex",
    program: "codex",
    home: SettingsDir { variable: ("CODEX_HOME", ""), below_home: ".codex" },
    files: &[
        SettingsFile {
            name: "hooks.json",
            content: SettingsContent::Hooks(HookFormat {
                events: &[
                    "SessionStart",
                    "UserPromptSubmit",
                    "PreModelRequest",
                    "PostModelRequest",
                    "PreToolUse",
                    "PermissionRequest",
                    "PostToolUse",
                    "Stop",
                    "Interrupt",
                    "SessionEnd",
                ],
                shape: HookShape::Grouped { matcher: None, named: false },
                // Codex allows at most 3 s for SessionEnd.
                timeout: 3,
            }),
        },
        SettingsFile { name: "config.toml", content: SettingsContent::Notify },
    ],
    next: "At its next start, Codex asks you to review the new hooks (\"Hooks need review\"): choose to trust them.",
};
