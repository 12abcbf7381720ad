use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};
use crate::commands::setup::edit::hooks::{HookFormat, HookShape};

/// Not BeforeModel, AfterModel and PreCompress: those come with every request and every piece of an answer.
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
            // Milliseconds here.
            timeout: 5000,
        }),
    }],
    next: "Sessions that already run take the hooks over when they are started anew; /hooks in Gemini CLI lists them.",
};
