use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};

pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "opencode",
    title: "opencode",
    program: "opencode",
    home: SettingsDir { variable: ("XDG_CONFIG_HOME", "opencode"), below_home: ".config/opencode" },
    files: &[SettingsFile {
        name: "plugin/agtmux.js",
        content: SettingsContent::Whole(include_str!("../../../../../../extensions/opencode/agtmux.js")),
    }],
    next: "Restart opencode to load the plugin. For its first plugin, opencode fetches @opencode-ai/plugin from npm.",
};
