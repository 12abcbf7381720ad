use super::{Agent, Content, Home, SettingsFile};

pub(super) static AGENT: Agent = Agent {
    name: "pi",
    title: "Pi",
    program: "pi",
    home: Home { variable: ("PI_CODING_AGENT_DIR", ""), below_home: ".pi/agent" },
    files: &[SettingsFile {
        name: "extensions/agtmux.ts",
        content: Content::Whole(include_str!("../../../../../../extensions/pi/agtmux.ts")),
    }],
    next: "Sessions that already run take the extension over with /reload, others when they are started.",
};
