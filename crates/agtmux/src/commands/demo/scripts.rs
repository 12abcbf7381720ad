//! Shell scripts that look like agents from outside: their names, a title and a little output.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) window: &'static str,
    pub(super) title: &'static str,
    says: &'static str,
}

pub(super) const SCRIPTS: &[Script] = &[
    Script { name: "claude", window: "api", title: "Fix the login test", says: "Reading src/login.rs" },
    Script { name: "codex", window: "api", title: "Add rate limits", says: "Running cargo test" },
    Script { name: "gemini", window: "web", title: "Translate the docs", says: "Writing docs/de.md" },
];

/// They end by themselves when the demo is gone, however it went.
pub(super) fn write(dir: &Path, demo: u32) -> io::Result<()> {
    for script in SCRIPTS {
        let path = dir.join(script.name);
        let text = format!(
            "#!/bin/sh\n\
             printf '\\033]2;{title}\\033\\\\'\n\
             printf 'This is the agtmux demo: no real {name} runs here.\\n\\n{says} '\n\
             while kill -0 {demo} 2>/dev/null; do\n  sleep 2\n  printf '.'\ndone\n",
            title = script.title,
            name = script.name,
            says = script.says,
        );
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}
