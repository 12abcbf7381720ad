//! opencode.

use serde_json::json;

use super::{Agent, FREE_TOOL, Launch, Mark, Place, Reply, Scene, Wish};

pub(super) struct OpenCode;

/// Where its settings are, seen from the home directory: all that knows about `XDG_CONFIG_HOME` goes there.
const SETTINGS: &str = "../config/opencode";

/// Passes every event on to the keeper but those that come with each word.
const KEEPER: &str = r#"import { spawn } from "node:child_process"
export const Keeper = async () => ({
  event: async ({ event }) => {
    if (!event.type.startsWith("message.")) spawn("PROGRAM", [event.type]).stdin.end(JSON.stringify(event))
  },
})
"#;

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("opencode-ai", "1.18.33")
    }

    fn prepare(&self, place: &Place) {
        let models = json!({"mock-model": {"name": "Mock Model", "limit": {"context": 128_000, "output": 8192}}});
        let options = json!({"baseURL": format!("{}/v1", place.url), "apiKey": "sk-test"});
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
        if let Some(keeper) = &place.hook_keeper {
            let plugin = KEEPER.replace("PROGRAM", &keeper.display().to_string());
            place.write(&format!("{SETTINGS}/plugin/keeper.js"), &plugin);
        }
    }

    fn environment(&self, _place: &Place) -> Vec<(&'static str, String)> {
        let off = ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"];
        off.into_iter().map(|name| (name, "1".into())).collect()
    }

    fn launch(&self, how: &Launch) -> String {
        match how {
            Launch::Plain | Launch::Plan => "opencode".into(),
            // It puts quotes around an argument that has a blank in it.
            Launch::Headless(prompt) => format!("opencode run {prompt}"),
        }
    }

    fn mark(&self, scene: Scene) -> Option<Mark> {
        // The box and what is below it have six rows; above them stands how the last turn ended.
        let at_rest = |mark: Mark| mark.lacks("esc interrupt").and_shows("ctrl+p commands");
        let ended = |how| at_rest(Mark::shows(how).lacks("△ ").in_last(7));
        Some(match scene {
            Scene::Ready | Scene::ReadyToPlan => at_rest(Mark::shows("Ask anything").lacks("▣ ")),
            Scene::Approval => Mark::shows("△ Permission required").and_shows("Allow once"),
            Scene::Question => Mark::shows("Which colour").and_shows("esc dismiss"),
            Scene::Trust | Scene::Plan | Scene::Background => return None,
            Scene::Done => ended("▣  Build · Mock Model · ").lacks("· interrupted"),
            Scene::Quoted => ended("▣  Build · Mock Model · ").in_last(12).and_shows("end-of-quote."),
            Scene::Denied => ended("▣  Build · Mock Model"),
            Scene::Interrupted => ended("· interrupted"),
            Scene::Retrying => Mark::shows("[retrying in ").in_last(2),
            Scene::Failed => ended("mock failure").in_last(9),
            Scene::Subagent => Mark::shows("esc interrupt").and_shows("view subagents"),
            Scene::Queued => Mark::shows("QUEUED"),
        })
    }

    fn keys(&self, reply: Reply) -> &'static [&'static str] {
        match reply {
            Reply::Trust | Reply::Approve | Reply::AcceptPlan | Reply::Choose => &["Enter"],
            Reply::Deny => &["Escape"],
            // Twice within five seconds; but two that it reads at once are another key to it. At rest it does nothing.
            Reply::Interrupt => &["Escape"; 5],
            Reply::PlanMode => &[],
        }
    }

    fn command(&self, wish: Wish) -> &'static str {
        match wish {
            Wish::Clear => "/new",
            Wish::Exit => "/exit",
        }
    }

    /// It tries again for ever after most others.
    fn failure(&self) -> &'static str {
        "FAIL 400"
    }
}
