use super::{Agent, Content, Home, SettingsFile};
use crate::commands::setup::edit::hooks::{Format, Shape};

/// Not BeforeModel, AfterModel and PreCompress: those come with every request and every piece of an answer.
pub(super) static AGENT: Agent = Agent {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    home: Home { variable: ("GEMINI_CLI_HOME", ".gemini"), below_home: ".gemini" },
    files: &[SettingsFile {
        name: "settings.json",
        content: Content::Hooks(Format {
            events: &[
                "SessionStart",
                "BeforeAgent",
                "AfterAgent",
                "BeforeTool",
                "AfterTool",
                "Notification",
                "SessionEnd",
            ],
            shape: Shape::Grouped { matcher: None, named: true },
            // Milliseconds here.
            timeout: 5000,
        }),
    }],
    next: "Sessions that already run take the hooks over when they are started anew; /hooks in Gemini CLI lists them.",
};
