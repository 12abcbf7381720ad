use super::{SettingsContent, SettingsDir, SettingsFile, SetupAgent};

pub(super) static AGENT: SetupAgent = SetupAgent {
    name: "pi",
    title: "Pi",
    program: "pi",
    home: SettingsDir { variable: ("PI_CODING_AGENT_DIR", ""), below_home: ".pi/agent" },
    files: &[SettingsFile {
        name: "extensions/agtmux.ts",
        content: SettingsContent::Whole(include_str!("../../../../../../extensions/pi/agtmux.ts")),
    }],
    next: "New sessions load the extension; run /reload in running sessions.",
};
