// Tells agtmux what Pi does: it starts `agtmux hook pi <event>` for the few events that matter and writes what is known
// of them to its stdin. Ids, kinds, names and what is asked; no prompts, no answers, no files.

import { spawn } from "node:child_process";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

const PROGRAM = "agtmux";

/** A hook ends within a fraction of a second; one that does not is ended. */
const PATIENCE = 5000;

/** A Pi that another one in this pane has started is a tool of that one: it does not speak for the pane. */
const MARK = "AGTMUX_PI";

function isInsideAnother(): boolean {
	const here = `${process.env.TMUX ?? ""} ${process.env.TMUX_PANE ?? ""}`;
	const mark = `${process.pid} ${here}`;
	const inherited = process.env[MARK];
	if (inherited && inherited !== mark && inherited.endsWith(` ${here}`)) return true;
	process.env[MARK] = mark;
	return false;
}

/** Resolves when the hook has ended, however it ended. */
function hook(name: string, payload: object): Promise<void> {
	return new Promise((resolve) => {
		const child = spawn(PROGRAM, ["hook", "pi", name], { stdio: ["pipe", "ignore", "ignore"] });
		const late = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
		late.unref();
		const ended = () => {
			clearTimeout(late);
			resolve();
		};
		child.on("error", ended);
		child.on("exit", ended);
		child.stdin.on("error", () => {});
		child.stdin.end(JSON.stringify(payload));
	});
}

export default function (pi: ExtensionAPI) {
	if (isInsideAnother()) return;
	let queue: Promise<void> = Promise.resolve();
	/** How a run is about to end; nothing when it was stopped. */
	let outcome: string | undefined;

	function tell(name: string, ctx: ExtensionContext, payload: object = {}): void {
		// Whatever goes wrong here is no fault of the agent's.
		try {
			const told = { session_id: ctx.sessionManager.getSessionId(), ...payload };
			// One after the other, in the order in which they came.
			queue = queue.then(() => hook(name, told)).catch(() => {});
		} catch {}
	}

	pi.on("session_start", (event, ctx) => tell("session_start", ctx, { reason: event.reason }));
	pi.on("agent_start", (_event, ctx) => {
		outcome = undefined;
		tell("agent_start", ctx);
	});
	pi.on("agent_before_settle", (event) => {
		outcome = event.outcome;
	});
	// Not agent_end: that comes before each retry, too.
	pi.on("agent_settled", (_event, ctx) => tell("agent_settled", ctx, { outcome: outcome ?? "aborted" }));
	pi.on("ui_prompt_start", (event, ctx) => tell("ui_prompt_start", ctx, { kind: event.kind, title: event.title }));
	pi.on("ui_prompt_end", (event, ctx) => tell("ui_prompt_end", ctx, { kind: event.kind, title: event.title }));
	pi.on("session_shutdown", (event, ctx) => tell("session_shutdown", ctx, { reason: event.reason }));
}
