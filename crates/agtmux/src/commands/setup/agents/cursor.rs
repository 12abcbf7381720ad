use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};

/// Read in its documentation, never tried. One name of an event that it does not know makes it ignore the whole file.
pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "cursor",
    title: "Cursor CLI",
    program: "cursor-agent",
    // No variable is known to move its hooks.
    home: SettingsDir { variable: ("", ""), below_home: ".cursor" },
    files: &[SettingsFile {
        name: "hooks.json",
        content: SettingsContent::FlatHooks(&[
            "beforeSubmitPrompt",
            "preToolUse",
            "afterAgentResponse",
            "stop",
            "sessionEnd",
        ]),
    }],
    next: "These hooks are made from its documentation; whether they work was not seen on Cursor itself. The editor of that \
           name runs them as well; what comes from outside tmux is ignored.",
};
