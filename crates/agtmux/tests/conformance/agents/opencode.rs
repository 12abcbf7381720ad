//! opencode.

use serde_json::json;

use super::{
    AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ScreenPattern, ScreenState, SlashCommand,
};

pub(super) struct OpenCode;

/// Where its settings are, seen from the home directory: all that knows about `XDG_CONFIG_HOME` goes there.
const SETTINGS: &str = "../config/opencode";

/// Passes every event on to the keeper but those that come with each word.
const PAYLOAD_SAVER_PLUGIN: &str = r#"import { spawn } from "node:child_process"
export const Keeper = async () => ({
  event: async ({ event }) => {
    if (!event.type.startsWith("message.")) spawn("PROGRAM", [event.type]).stdin.end(JSON.stringify(event))
  },
})
"#;

impl ConformanceAgent for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("opencode-ai", "1.18.33")
    }

    fn prepare(&self, place: &AgentWorkspace) {
        let models = json!({"mock-model": {"name": "Mock Model", "limit": {"context": 128_000, "output": 8192}}});
        let options = json!({"baseURL": format!("{}/v1", place.model_url), "apiKey": "sk-test"});
        let provider =
            json!({"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": options, "models": models});
        let commands = json!({"*": "ask", format!("{FREE_TOOL} *"): "allow"});
        let config = json!({
            "$schema": "https://opencode.ai/config.json",
            "provider": {"mock": provider},
            "model": "mock/mock-model", "small_model": "mock/mock-model", "enabled_providers": ["mock"],
            "permission": {"bash": commands, "edit": "ask"},
            "autoupdate": false, "share": "disabled",
        });
        place.write(&format!("{SETTINGS}/opencode.json"), &format!("{config:#}\n"));
        // Else it fetches the types that plugins are written with, and starts no plugin before it has them.
        let fetched = json!({"packages": {"": {"dependencies": {"@opencode-ai/plugin": self.package().1}}}});
        place.write(&format!("{SETTINGS}/package-lock.json"), &fetched.to_string());
        place.write(&format!("{SETTINGS}/node_modules/.package-lock.json"), "{}");
        if let Some(keeper) = &place.hook_payload_saver {
            let plugin = PAYLOAD_SAVER_PLUGIN.replace("PROGRAM", &keeper.display().to_string());
            place.write(&format!("{SETTINGS}/plugin/keeper.js"), &plugin);
        }
    }

    fn environment(&self, _place: &AgentWorkspace) -> Vec<(&'static str, String)> {
        let off = ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"];
        off.into_iter().map(|name| (name, "1".into())).collect()
    }

    fn launch(&self, how: &LaunchMode) -> String {
        match how {
            LaunchMode::Plain | LaunchMode::Plan => "opencode".into(),
            // It puts quotes around an argument that has a blank in it.
            LaunchMode::Headless(prompt) => format!("opencode run {prompt}"),
        }
    }

    fn screen_pattern(&self, scene: ScreenState) -> Option<ScreenPattern> {
        // The box and what is below it have six rows; above them stands how the last turn ended.
        let at_rest = |mark: ScreenPattern| mark.lacks("esc interrupt").and_shows("ctrl+p commands");
        let ended = |how| at_rest(ScreenPattern::shows(how).lacks("△ ").in_last_rows(7));
        Some(match scene {
            ScreenState::Ready | ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows("Ask anything").lacks("▣ ")),
            ScreenState::Approval => ScreenPattern::shows("△ Permission required").and_shows("Allow once"),
            ScreenState::Question => ScreenPattern::shows("Which colour").and_shows("esc dismiss"),
            ScreenState::Trust | ScreenState::Plan | ScreenState::Background => return None,
            ScreenState::Done => ended("▣  Build · Mock Model · ").lacks("· interrupted"),
            ScreenState::Quoted => ended("▣  Build · Mock Model · ").in_last_rows(12).and_shows("end-of-quote."),
            ScreenState::Denied => ended("▣  Build · Mock Model"),
            ScreenState::Interrupted => ended("· interrupted"),
            ScreenState::Retrying => ScreenPattern::shows("[retrying in ").in_last_rows(2),
            ScreenState::Failed => ended("mock failure").in_last_rows(9),
            ScreenState::Subagent => ScreenPattern::shows("esc interrupt").and_shows("view subagents"),
            ScreenState::Queued => ScreenPattern::shows("QUEUED"),
        })
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str] {
        match reply {
            DialogReply::Trust | DialogReply::Approve | DialogReply::AcceptPlan | DialogReply::Choose => &["Enter"],
            DialogReply::Deny => &["Escape"],
            // Twice within five seconds; but two that it reads at once are another key to it. At rest it does nothing.
            DialogReply::Interrupt => &["Escape"; 5],
            DialogReply::PlanMode => &[],
        }
    }

    fn slash_command(&self, wish: SlashCommand) -> &'static str {
        match wish {
            SlashCommand::Clear => "/new",
            SlashCommand::Exit => "/exit",
        }
    }

    /// It tries again for ever after most others.
    fn failing_prompt(&self) -> &'static str {
        "FAIL 400"
    }
}
