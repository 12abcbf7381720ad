// The command `/tmux-tasks`.

import type { ExtensionAPI, ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import { agtmux } from "./program.ts";
import type { TaskSession } from "./session.ts";
import { status } from "./tasks.ts";

const NAME = "tmux-tasks";
const WORDS = ["prune-dead", "kill-all", "kill-all --yes"];

/** What is offered to complete this text. Nothing if it is complete, so that Enter runs the command. */
export function completions(prefix: string): { value: string; label: string }[] | null {
	const found = WORDS.filter((word) => word.startsWith(prefix) && word !== prefix);
	return found.length > 0 && !WORDS.includes(prefix) ? found.map((value) => ({ value, label: value })) : null;
}

export function registerCommand(pi: ExtensionAPI, current: () => TaskSession | undefined): void {
	pi.registerCommand(NAME, {
		description: "Show and manage the background tasks of this session",
		getArgumentCompletions: completions,
		handler: async (args, ctx) => {
			const session = current();
			await session?.ready;
			if (!session?.name) {
				ctx.ui.notify("Background tasks are off: agtmux is missing or too old.", "warning");
				return;
			}
			const words = args.split(/\s+/).filter(Boolean);
			await run(session, words, ctx);
			session.refresh();
		},
	});
}

async function run(session: TaskSession, words: string[], ctx: ExtensionCommandContext): Promise<void> {
	const [word, ...options] = words;
	const isYes = options.length === 1 && options[0] === "--yes";
	if (!word) return showTasks(session, ctx);
	if (word === "prune-dead" && options.length === 0) return change(session, ["prune-dead"], ctx);
	if (word === "kill-all" && (isYes || options.length === 0)) {
		const question = "Kill all tasks of this session?";
		if (!isYes && !(await ctx.ui.confirm(question, "Their windows and the tmux session are closed."))) return;
		return change(session, ["kill-all", "--yes"], ctx);
	}
	ctx.ui.notify(`Usage: /${NAME} [prune-dead | kill-all [--yes]]`, "warning");
}

/** Runs `agtmux task …` and shows what it prints. */
async function change(session: TaskSession, args: string[], ctx: ExtensionCommandContext): Promise<void> {
	const { code, stdout, stderr } = await agtmux(["task", ...args, "--session", session.name ?? ""]);
	const text = [stdout.trim(), stderr.trim()].filter(Boolean).join("\n");
	ctx.ui.notify(text || "No task was changed.", code === 0 ? "info" : "warning");
}

/** The panel in a terminal; elsewhere a list. */
async function showTasks(session: TaskSession, ctx: ExtensionCommandContext): Promise<void> {
	if (ctx.mode === "tui") {
		// Loaded only now, so that a Pi without what the panel needs still starts.
		const { showPanel } = await import("./panel.ts");
		return showPanel(session, ctx);
	}
	const list = await session.list();
	const lines = (list?.tasks ?? []).map((task) => `${task.window_id} ${task.window_name} ${status(task)}`);
	ctx.ui.notify(lines.join("\n") || "This session has no tasks.", "info");
}
