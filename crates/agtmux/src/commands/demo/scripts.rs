//! Shell scripts that imitate agents: their program names, titles and screens. Each script loops through its scenes. A
//! dialog also closes when it is answered. The panes start their scripts at different scenes.

use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use agtmux_core::state::State;
use agtmux_tmux::quoted_for_shell;

/// One step of a script: a screen that shows the agent in one state.
pub(super) struct DemoScene {
    pub(super) state: State,
    title: &'static str,
    screen: (&'static str, &'static str),
    /// The hook event that the script sends if the screen alone does not show the state.
    hook_event: Option<&'static str>,
    seconds: u32,
}

pub(super) struct DemoScript {
    /// The file name of the script: the program name of the agent that the script imitates.
    pub(super) name: &'static str,
    agent: &'static str,
    pub(super) scenes: &'static [DemoScene],
}

/// A pane, its script, and the index of the script's first scene.
pub(super) struct DemoPane {
    pub(super) window: &'static str,
    pub(super) script: &'static DemoScript,
    pub(super) first: usize,
}

macro_rules! screen {
    ($name:literal) => {
        ($name, include_str!(concat!("scenes/", $name)))
    };
}

impl DemoScene {
    const fn new(state: State, seconds: u32, title: &'static str, screen: (&'static str, &'static str)) -> Self {
        Self { state, title, screen, hook_event: None, seconds }
    }

    const fn with_hook(self, event: &'static str) -> Self {
        Self { hook_event: Some(event), ..self }
    }
}

const CLAUDE: DemoScript = DemoScript {
    name: "claude",
    agent: "claude",
    scenes: &[
        DemoScene::new(State::WaitingApproval, 90, "✳ Fix the login test", screen!("claude-approval.txt")),
        DemoScene::new(State::Running, 6, "✳ Fix the login test", screen!("claude-running.txt")),
        DemoScene::new(State::Completed, 10, "✳ Fix the login test", screen!("claude-idle.txt")).with_hook("completed"),
    ],
};

const CODEX: DemoScript = DemoScript {
    name: "codex",
    agent: "codex",
    scenes: &[
        DemoScene::new(State::Running, 8, "⠋ Add rate limits | api", screen!("codex-running.txt")),
        DemoScene::new(
            State::WaitingInput,
            60,
            "[ ! ] Action Required | Add rate limits | api",
            screen!("codex-question.txt"),
        ),
        DemoScene::new(State::Completed, 9, "Add rate limits | api", screen!("codex-idle.txt")).with_hook("completed"),
    ],
};

const GEMINI: DemoScript = DemoScript {
    name: "gemini",
    agent: "gemini",
    scenes: &[
        DemoScene::new(State::Idle, 9, "◇  Ready (web)", screen!("gemini-idle.txt")).with_hook("idle"),
        DemoScene::new(State::Running, 11, "✦  Working… (web)", screen!("gemini-running.txt")),
        DemoScene::new(State::Error, 8, "◇  Ready (web)", screen!("gemini-idle.txt")).with_hook("error"),
    ],
};

const CURSOR: DemoScript = DemoScript {
    name: "cursor-agent",
    agent: "cursor",
    scenes: &[DemoScene::new(State::Unknown, 60, "", screen!("other.txt"))],
};

pub(super) const SCRIPTS: [&DemoScript; 4] = [&CLAUDE, &CODEX, &GEMINI, &CURSOR];

/// The panes of the demo. Together they show all seven states from the start.
pub(super) const PANES: &[DemoPane] = &[
    DemoPane { window: "api", script: &CLAUDE, first: 0 },
    DemoPane { window: "api", script: &CODEX, first: 0 },
    DemoPane { window: "web", script: &GEMINI, first: 0 },
    DemoPane { window: "web", script: &CLAUDE, first: 2 },
    DemoPane { window: "infra", script: &CODEX, first: 1 },
    DemoPane { window: "infra", script: &GEMINI, first: 2 },
    DemoPane { window: "infra", script: &CURSOR, first: 0 },
];

/// Writes the scripts. Each script exits when the demo process is gone.
pub(super) fn write(dir: &Path, agtmux: &Path, demo: u32) -> io::Result<()> {
    for script in SCRIPTS {
        for scene in script.scenes {
            fs::write(dir.join(scene.screen.0), scene.screen.1)?;
        }
        let path = dir.join(script.name);
        fs::write(&path, script.text(dir, agtmux, demo))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

impl DemoScript {
    fn text(&self, dir: &Path, agtmux: &Path, demo: u32) -> String {
        let mut scenes = String::new();
        for (n, scene) in self.scenes.iter().enumerate() {
            let (title, screen) = (quoted_for_shell(scene.title), quoted_for_shell(scene.screen.0));
            let tells = scene.hook_event.map(|word| format!("tell {word}; ")).unwrap_or_default();
            let wait = if scene.state.is_waiting() { "wait_for_key" } else { "wait_for" };
            let _ = writeln!(scenes, "    {n}) show {screen} {title}; {tells}{wait} {};;", scene.seconds);
        }
        format!(
            r#"#!/bin/sh
# The agtmux demo: no real {name} runs here.
show() {{
  printf '\033]2;%s\033\\\033[2J\033[H' "$2"
  cat {dir}/"$1"
}}
tell() {{
  {agtmux} hook {agent} "$1" </dev/null
}}
wait_for() {{
  left=$1
  while [ "$left" -gt 0 ]; do
    kill -0 {demo} 2>/dev/null || exit 0
    sleep 1
    left=$((left - 1))
  done
}}
# A key answers the dialog. dd returns after a second without one.
wait_for_key() {{
  left=$1
  stty -echo -icanon -icrnl min 0 time 10
  while [ "$left" -gt 0 ] && [ -z "$(dd bs=64 count=1 2>/dev/null)" ]; do
    kill -0 {demo} 2>/dev/null || exit 0
    left=$((left - 1))
  done
}}
scene=$1
while :; do
  case $scene in
{scenes}  esac
  scene=$(((scene + 1) % {count}))
done
"#,
            name = self.name,
            agent = self.agent,
            dir = quoted_for_shell(&dir.to_string_lossy()),
            agtmux = quoted_for_shell(&agtmux.to_string_lossy()),
            count = self.scenes.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agtmux_agents::{AgentRegistry, SavedScreen, judge};

    use super::*;

    #[test]
    fn the_first_scenes_show_all_seven_states() {
        let states: BTreeSet<State> = PANES.iter().map(|pane| pane.script.scenes[pane.first].state).collect();
        assert_eq!(states.len(), State::ALL.len());
    }

    #[test]
    fn each_screen_is_judged_as_its_scene_state() {
        for script in SCRIPTS {
            let agent = AgentRegistry::builtin().agent(script.agent).expect("the agent is built in");
            for scene in script.scenes {
                let saved = SavedScreen {
                    text: scene.screen.1.as_bytes(),
                    title: Some(scene.title),
                    command: Some(script.name),
                };
                let judged = judge(agent, &saved).state;
                // The hook reports how the turn ended; the screen alone shows an idle agent.
                let shown = if scene.hook_event.is_some() { State::Idle } else { scene.state };
                assert_eq!(judged, shown, "{} {}", script.name, scene.screen.0);
            }
        }
    }
}
