use super::{Agent, Content, Home, SettingsFile};
use crate::commands::setup::edit::hooks::{Format, Shape};

pub(super) static AGENT: Agent = Agent {
    name: "codex",
    title: "Codex",
    program: "codex",
    home: Home { variable: ("CODEX_HOME", ""), below_home: ".codex" },
    files: &[
        SettingsFile {
            name: "hooks.json",
            content: Content::Hooks(Format {
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
                shape: Shape::Grouped { matcher: None, named: false },
                // The most that it allows for SessionEnd.
                timeout: 3,
            }),
        },
        SettingsFile { name: "config.toml", content: Content::Notify },
    ],
    next: "At its next start Codex asks you to review the new hooks (\"Hooks need review\"): choose to trust them.",
};
