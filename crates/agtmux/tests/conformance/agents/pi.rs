//! Pi.

use serde_json::json;

use super::{
    AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ScreenPattern, ScreenState, SlashCommand,
};

pub(super) struct Pi;

/// It asks for nothing by itself; extensions do. This one asks before each command but the free one and stops where the
/// answer is no, and it brings the tool with which the model asks.
const APPROVAL_EXTENSION: &str = r#"
export default function (pi) {
	pi.on("tool_call", async (event, ctx) => {
		const command = event.input.command ?? "";
		if (event.toolName !== "bash" || command.startsWith("FREE") || !ctx.hasUI) return;
		if (await ctx.ui.confirm("Run this command?", command)) return;
		ctx.abort();
		return { block: true, reason: "Blocked by user" };
	});
	pi.registerTool({
		name: "ask_user",
		label: "Ask",
		description: "Asks the user",
		parameters: { type: "object", properties: { message: { type: "string" }, requestedSchema: { type: "object" } } },
		execute: async (_id, asked, _signal, _onUpdate, ctx) => {
			const chosen = await ctx.ui.select(asked.message, asked.requestedSchema.properties.colour.enum);
			return { content: [{ type: "text", text: `They chose ${chosen}` }], details: undefined };
		},
	});
}
"#;

/// Passes every event that our own extension may hear on to the keeper.
const PAYLOAD_SAVER_EXTENSION: &str = r#"
import { spawn } from "node:child_process";
const EVENTS = [
	"session_start", "session_shutdown", "session_compact", "input", "before_agent_start", "agent_start", "turn_start", "turn_end",
	"agent_end", "agent_before_settle", "agent_settled", "ui_prompt_start", "ui_prompt_end", "tool_call", "tool_result",
];
export default function (pi) {
	for (const name of EVENTS) pi.on(name, (event) => {
		const { type, reason, outcome, kind, title, toolName, turnIndex, source } = event;
		const told = { type, reason, outcome, kind, title, toolName, turnIndex, source };
		spawn("PROGRAM", [name]).stdin.end(JSON.stringify(told));
	});
}
"#;

impl ConformanceAgent for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@earendil-works/pi-coding-agent", "0.87.1")
    }

    fn needs_newer_node(&self) -> bool {
        true
    }

    fn prepare(&self, place: &AgentWorkspace) {
        let model = json!({"id": "mock-1", "contextWindow": 128_000, "maxTokens": 8192});
        let url = format!("{}/v1", place.model_url);
        let provider = json!({"baseUrl": url, "api": "openai-completions", "apiKey": "sk-test", "models": [model]});
        place.write(".pi/agent/models.json", &json!({"providers": {"mock": provider}}).to_string());
        let retry = json!({"enabled": true, "maxRetries": 1});
        let settings = json!({"defaultProvider": "mock", "defaultModel": "mock-1", "retry": retry});
        place.write(".pi/agent/settings.json", &settings.to_string());
        place.write(".pi/agent/extensions/gate.ts", &APPROVAL_EXTENSION.replace("FREE", FREE_TOOL));
        if let Some(keeper) = &place.hook_payload_saver {
            let extension = PAYLOAD_SAVER_EXTENSION.replace("PROGRAM", &keeper.display().to_string());
            place.write(".pi/agent/extensions/keeper.ts", &extension);
        }
        if !place.trusted {
            // A directory that can bring nothing of its own is not asked about.
            let own = place.project.join(".pi/settings.json");
            std::fs::create_dir_all(own.parent().expect("a file has a directory")).expect("the world is writable");
            std::fs::write(own, "{}").expect("the world is writable");
        }
    }

    fn environment(&self, _place: &AgentWorkspace) -> Vec<(&'static str, String)> {
        let set = [("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1"), ("PI_TELEMETRY", "0")];
        set.into_iter().map(|(name, value)| (name, value.into())).collect()
    }

    fn launch(&self, how: &LaunchMode) -> String {
        match how {
            LaunchMode::Plain | LaunchMode::Plan => "pi".into(),
            LaunchMode::Headless(prompt) => format!("pi -p '{prompt}'"),
        }
    }

    fn screen_pattern(&self, scene: ScreenState) -> Option<ScreenPattern> {
        // The rules of the box, where it is and how full its memory is; above them stands what was said last.
        let at_rest = |mark: ScreenPattern| mark.and_shows(" mock-1").lacks(" Working ").lacks("↑↓ navigate");
        Some(match scene {
            ScreenState::Ready | ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows("0.0%/128k").in_last_rows(6)),
            ScreenState::Trust => ScreenPattern::shows("trust").and_shows("↑↓"),
            ScreenState::Approval => ScreenPattern::shows("Run this command?").and_shows("→ Yes"),
            ScreenState::Question => ScreenPattern::shows("Which colour").and_shows("→ Red"),
            ScreenState::Plan | ScreenState::Background | ScreenState::Subagent => return None,
            ScreenState::Done => {
                at_rest(ScreenPattern::shows("%/128k").lacks(" 0.0%").lacks("Error: ").lacks("aborted").in_last_rows(6))
            }
            ScreenState::Quoted => at_rest(ScreenPattern::shows("end-of-quote.").in_last_rows(6)),
            ScreenState::Denied => at_rest(ScreenPattern::shows("Operation aborted").in_last_rows(8)),
            ScreenState::Interrupted => at_rest(ScreenPattern::shows("Operation aborted").in_last_rows(6)),
            ScreenState::Retrying => ScreenPattern::shows("Retrying (").in_last_rows(8),
            ScreenState::Failed => at_rest(ScreenPattern::shows("Error: Retry failed after ").in_last_rows(6)),
            ScreenState::Queued => ScreenPattern::shows("SLOW 4").in_last_rows(8),
        })
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str] {
        match reply {
            DialogReply::Trust | DialogReply::Approve | DialogReply::AcceptPlan | DialogReply::Choose => &["Enter"],
            DialogReply::Deny | DialogReply::Interrupt => &["Escape"],
            DialogReply::PlanMode => &[],
        }
    }

    fn slash_command(&self, wish: SlashCommand) -> &'static str {
        match wish {
            SlashCommand::Clear => "/new",
            SlashCommand::Exit => "/quit",
        }
    }
}
