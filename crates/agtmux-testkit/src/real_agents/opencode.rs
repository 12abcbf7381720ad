//! opencode.

use serde_json::json;

use super::{
    AfterFailure, AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ModelFailure, ScreenPattern,
    ScreenState, SlashCommand,
};

pub(super) struct OpenCode;

/// The settings directory, relative to the home directory. It is not in the home directory, because the test world sets
/// `XDG_CONFIG_HOME`.
const SETTINGS: &str = "../config/opencode";

/// A plugin that saves all events except `message.*` events, which opencode sends for each word.
const PAYLOAD_SAVER_PLUGIN: &str = r#"import { spawn } from "node:child_process"
export const PayloadSaver = async () => ({
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

    fn prepare(&self, workspace: &AgentWorkspace) {
        let models = json!({"mock-model": {"name": "Mock Model", "limit": {"context": 128_000, "output": 8192}}});
        let options = json!({"baseURL": format!("{}/v1", workspace.model_url), "apiKey": "sk-test"});
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
        workspace.write(&format!("{SETTINGS}/opencode.json"), &format!("{config:#}\n"));
        // With these files, the plugin types look installed. Without them, opencode downloads the types before it
        // starts a plugin.
        let fetched = json!({"packages": {"": {"dependencies": {"@opencode-ai/plugin": self.package().1}}}});
        workspace.write(&format!("{SETTINGS}/package-lock.json"), &fetched.to_string());
        workspace.write(&format!("{SETTINGS}/node_modules/.package-lock.json"), "{}");
        if let Some(saver) = &workspace.hook_payload_saver {
            let plugin = PAYLOAD_SAVER_PLUGIN.replace("PROGRAM", &saver.display().to_string());
            workspace.write(&format!("{SETTINGS}/plugin/payload-saver.js"), &plugin);
        }
    }

    fn environment(&self, _workspace: &AgentWorkspace) -> Vec<(&'static str, String)> {
        let off = ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"];
        off.into_iter().map(|name| (name, "1".into())).collect()
    }

    fn launch(&self, mode: &LaunchMode) -> String {
        match mode {
            LaunchMode::Plain | LaunchMode::Plan => "opencode".into(),
            // Each word of the prompt is its own argument, because opencode adds quotes to an argument with blanks.
            LaunchMode::Headless(prompt) => format!("opencode run {prompt}"),
        }
    }

    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern> {
        // The input box and the footer have six rows. The row above them shows how the last turn ended.
        let at_rest = |pattern: ScreenPattern| pattern.lacks("esc interrupt").and_shows("ctrl+p commands");
        let ended = |mode| at_rest(ScreenPattern::shows(mode).lacks("△ ").in_last_rows(7));
        Some(match state {
            ScreenState::Ready | ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows("Ask anything").lacks("▣ ")),
            ScreenState::Approval => ScreenPattern::shows("△ Permission required").and_shows("Allow once"),
            ScreenState::Question => ScreenPattern::shows("Which colour").and_shows("esc dismiss"),
            ScreenState::Trust
            | ScreenState::Plan
            | ScreenState::Background
            | ScreenState::Compacted
            | ScreenState::FailureDialog => {
                return None;
            }
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
            // opencode needs two Escapes within five seconds, but reads two that arrive together as another key. Extra
            // Escapes have no effect.
            DialogReply::Interrupt => &["Escape"; 5],
            DialogReply::PlanMode => &[],
        }
    }

    fn slash_command(&self, command: SlashCommand) -> &'static str {
        match command {
            SlashCommand::Clear => "/new",
            SlashCommand::Exit => "/exit",
        }
    }

    fn after_failure(&self, failure: ModelFailure) -> AfterFailure {
        match failure {
            // opencode compacts the conversation and continues.
            ModelFailure::Status(413) => AfterFailure::Recovers,
            ModelFailure::Status(400..429) => AfterFailure::Fails,
            _ => AfterFailure::Retries,
        }
    }
}
