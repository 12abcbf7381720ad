// Reports Pi's events to agtmux: runs `agtmux hook pi <event>` and writes the event to its stdin. Sends ids, types,
// names and questions of the agent. Never sends prompts, answers or files.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { agtmux } from "./program.ts";

/** A hook that runs longer than this is killed. */
const TIMEOUT_MS = 5000;

/** Marks the first Pi in a pane. A Pi started by it inherits the mark and reports nothing. */
const MARK = "AGTMUX_PI";

function isInsideAnother(): boolean {
	const here = `${process.env.TMUX ?? ""} ${process.env.TMUX_PANE ?? ""}`;
	const mark = `${process.pid} ${here}`;
	const inherited = process.env[MARK];
	if (inherited && inherited !== mark && inherited.endsWith(` ${here}`)) return true;
	process.env[MARK] = mark;
	return false;
}

function isIdle(ctx: ExtensionContext): boolean {
	try {
		return ctx.isIdle();
	} catch {
		return false;
	}
}

/** Reports events while `isActive` returns true. */
export function reportState(pi: ExtensionAPI, isActive: () => boolean): void {
	if (isInsideAnother()) return;
	let queue: Promise<unknown> = Promise.resolve();
	/** The outcome of the current run; undefined if the user stopped it. */
	let outcome: string | undefined;
	let isPanel = false;

	function report(name: string, ctx: ExtensionContext, payload: object = {}): void {
		// An error here must not affect the agent.
		try {
			if (!isActive()) return;
			const input = JSON.stringify({ session_id: ctx.sessionManager.getSessionId(), ...payload });
			// One at a time, in order.
			queue = queue.then(() => agtmux(["hook", "pi", name], { input, timeoutMs: TIMEOUT_MS }));
		} catch {}
	}

	pi.on("session_start", (event, ctx) => report("session_start", ctx, { reason: event.reason }));
	pi.on("agent_start", (_event, ctx) => {
		outcome = undefined;
		report("agent_start", ctx);
	});
	pi.on("agent_before_settle", (event) => {
		outcome = event.outcome;
	});
	// Not agent_end, which also comes before each retry.
	pi.on("agent_settled", (_event, ctx) => report("agent_settled", ctx, { outcome: outcome ?? "aborted" }));
	// A panel that opens while no run is active was opened by the user, so it asks nothing.
	pi.on("ui_prompt_start", (event, ctx) => {
		isPanel = event.kind === "custom" && isIdle(ctx);
		if (!isPanel) report("ui_prompt_start", ctx, { kind: event.kind, title: event.title });
	});
	pi.on("ui_prompt_end", (event, ctx) => {
		if (!(isPanel && event.kind === "custom")) report("ui_prompt_end", ctx, { kind: event.kind, title: event.title });
		isPanel = false;
	});
	pi.on("session_shutdown", (event, ctx) => report("session_shutdown", ctx, { reason: event.reason }));
}
