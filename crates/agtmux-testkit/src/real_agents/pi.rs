//! Pi.

use serde_json::json;

use super::{
    AfterFailure, AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ModelFailure, ScreenPattern,
    ScreenState, SlashCommand,
};

pub(super) struct Pi;

/// Pi itself shows no dialogs, but its extensions can. This extension asks before each command except the free tool,
/// and aborts the turn if the user denies the command. It also adds a tool with which the model can ask the user a
/// question.
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

/// A Pi extension that saves every event which agtmux's own extension can receive.
const PAYLOAD_SAVER_EXTENSION: &str = r#"
import { spawn } from "node:child_process";
const EVENTS = [
	"session_start", "session_shutdown", "session_compact", "input", "before_agent_start", "agent_start", "turn_start", "turn_end",
	"agent_end", "agent_before_settle", "agent_settled", "ui_prompt_start", "ui_prompt_end", "tool_call", "tool_result",
];
export default function (pi) {
	for (const name of EVENTS) pi.on(name, (event) => {
		const { type, reason, outcome, kind, title, toolName, turnIndex, source } = event;
		const payload = { type, reason, outcome, kind, title, toolName, turnIndex, source };
		spawn("PROGRAM", [name]).stdin.end(JSON.stringify(payload));
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

    fn other_versions(&self) -> &'static [&'static str] {
        &["1.5.0"]
    }

    fn archive_with(&self, version: &str) -> Option<&'static [&'static str]> {
        // The registry lacks dependencies of these versions, whose program is one bundle.
        (!version.starts_with("0.")).then_some(&["jiti@2.7.0", "typebox@1.3.27"])
    }

    fn needs_newer_node(&self) -> bool {
        true
    }

    fn prepare(&self, workspace: &AgentWorkspace) {
        let model = json!({"id": "mock-1", "contextWindow": 128_000, "maxTokens": 8192});
        let url = format!("{}/v1", workspace.model_url);
        let provider = json!({"baseUrl": url, "api": "openai-completions", "apiKey": "sk-test", "models": [model]});
        workspace.write(".pi/agent/models.json", &json!({"providers": {"mock": provider}}).to_string());
        let retry = json!({"enabled": true, "maxRetries": 1});
        let settings = json!({"defaultProvider": "mock", "defaultModel": "mock-1", "retry": retry});
        workspace.write(".pi/agent/settings.json", &settings.to_string());
        workspace.write(".pi/agent/extensions/approval.ts", &APPROVAL_EXTENSION.replace("FREE", FREE_TOOL));
        if let Some(saver) = &workspace.hook_payload_saver {
            let extension = PAYLOAD_SAVER_EXTENSION.replace("PROGRAM", &saver.display().to_string());
            workspace.write(".pi/agent/extensions/payload-saver.ts", &extension);
        }
        if !workspace.trusted {
            // Pi asks about trust only if the directory has its own settings.
            let own = workspace.project.join(".pi/settings.json");
            std::fs::create_dir_all(own.parent().expect("a file has a directory")).expect("the world is writable");
            std::fs::write(own, "{}").expect("the world is writable");
        }
    }

    fn environment(&self, _workspace: &AgentWorkspace) -> Vec<(&'static str, String)> {
        let set = [("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1"), ("PI_TELEMETRY", "0")];
        set.into_iter().map(|(name, value)| (name, value.into())).collect()
    }

    fn launch(&self, mode: &LaunchMode) -> String {
        match mode {
            LaunchMode::Plain | LaunchMode::Plan => "pi".into(),
            LaunchMode::Headless(prompt) => format!("pi -p '{prompt}'"),
        }
    }

    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern> {
        // The last rows are the borders of the input box, the directory and the context usage; the last message is
        // above them.
        let at_rest = |pattern: ScreenPattern| pattern.and_shows(" mock-1").lacks(" Working ").lacks("↑↓ navigate");
        Some(match state {
            ScreenState::Ready | ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows("0.0%/128k").in_last_rows(6)),
            ScreenState::Trust => ScreenPattern::shows("trust").and_shows("↑↓"),
            ScreenState::Approval => ScreenPattern::shows("Run this command?").and_shows("→ Yes"),
            ScreenState::Question => ScreenPattern::shows("Which colour").and_shows("→ Red"),
            ScreenState::Plan
            | ScreenState::Background
            | ScreenState::Compacted
            | ScreenState::Subagent
            | ScreenState::FailureDialog => {
                return None;
            }
            ScreenState::Done => {
                at_rest(ScreenPattern::shows("%/128k").lacks(" 0.0%").lacks("Error: ").lacks("aborted").in_last_rows(6))
            }
            ScreenState::Quoted => at_rest(ScreenPattern::shows("end-of-quote.").in_last_rows(6)),
            ScreenState::Denied => at_rest(ScreenPattern::shows("Operation aborted").in_last_rows(8)),
            ScreenState::Interrupted => at_rest(ScreenPattern::shows("Operation aborted").in_last_rows(6)),
            ScreenState::Retrying => ScreenPattern::shows("Retrying (").in_last_rows(8),
            // Pi retries after other failures.
            ScreenState::Failed => at_rest(ScreenPattern::default().in_last_rows(7)).and_shows_one_of(&[
                "Error: 400",
                "Error: 401",
                "Error: 403",
                "Error: 404",
                "Error: 413",
                "Error: Retry failed after ",
            ]),
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

    fn slash_command(&self, command: SlashCommand) -> &'static str {
        match command {
            SlashCommand::Clear => "/new",
            SlashCommand::Exit => "/quit",
        }
    }

    fn after_failure(&self, _failure: ModelFailure) -> AfterFailure {
        AfterFailure::Fails
    }
}
