use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};
use crate::commands::setup::edit::hooks::{HookFormat, HookShape};

/// Without BeforeModel, AfterModel and PreCompress: they run for every request and every chunk of an answer.
pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    home: SettingsDir { variable: ("GEMINI_CLI_HOME", ".gemini"), below_home: ".gemini" },
    files: &[SettingsFile {
        name: "settings.json",
        content: SettingsContent::Hooks(HookFormat {
            events: &[
                "SessionStart",
                "BeforeAgent",
                "AfterAgent",
                "BeforeTool",
                "AfterTool",
                "Notification",
                "SessionEnd",
            ],
            shape: HookShape::Grouped { matcher: None, named: true },
            // In milliseconds.
            timeout: 5000,
        }),
    }],
    next: "Restart running sessions to load the hooks; /hooks in Gemini CLI lists them.",
};
