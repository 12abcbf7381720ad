use super::{Agent, Content, Home, SettingsFile};

pub(super) static AGENT: Agent = Agent {
    name: "opencode",
    title: "opencode",
    program: "opencode",
    home: Home { variable: ("XDG_CONFIG_HOME", "opencode"), below_home: ".config/opencode" },
    files: &[SettingsFile {
        name: "plugin/agtmux.js",
        content: Content::Whole(include_str!("../../../../../../extensions/opencode/agtmux.js")),
    }],
    next: "opencode loads the plugin when it is started anew; the first plugin at all makes it fetch @opencode-ai/plugin from npm.",
};
