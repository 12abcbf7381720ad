// The extension: background tasks and the shared terminal of this session, and the state of Pi for agtmux.

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { registerCommand } from "./command.ts";
import { registerMirrorCommand } from "./mirror-command.ts";
import { TaskSession } from "./session.ts";
import { withVariables } from "./shell.ts";
import { reportState } from "./state.ts";

/** The copy of this extension that is in use. A package may be loaded twice, from npm and from a directory. */
const COPY = Symbol.for("pi-agtmux.copy");
const copies = globalThis as { [COPY]?: object };

export default function (pi: ExtensionAPI) {
	const self = {};
	const isActive = () => copies[COPY] === self;
	let session: TaskSession | undefined;
	let outcome: string | undefined;

	// The first copy loaded gets each event first. It is active until its session ends.
	pi.on("session_start", () => {
		copies[COPY] ??= self;
	});
	reportState(pi, isActive);
	pi.on("session_start", (event, ctx) => {
		if (!isActive()) return;
		// Earlier versions do not report the end of a run, so no message could be delivered safely.
		if (ctx.mode === undefined) return ctx.ui.notify("Background tasks are off: pi-agtmux needs Pi 0.87.1 or newer.", "warning");
		session?.stop();
		session = new TaskSession(pi, ctx, event.reason);
		registerCommand(pi, () => session);
		registerMirrorCommand(pi, async () => {
			await session?.mirrorReady;
			return session?.mirror;
		});
	});
	pi.on("session_shutdown", () => {
		session?.stop();
		session = undefined;
		if (isActive()) delete copies[COPY];
	});

	// A handler that throws would block the tool.
	pi.on("tool_call", async (event) => {
		try {
			const variables = event.toolName === "bash" ? await session?.ready : undefined;
			const input = event.input as { command?: unknown };
			// The shared terminal sets the variables without showing them.
			if (variables && !session?.mirror?.isOn && typeof input.command === "string") input.command = withVariables(input.command, variables);
		} catch {}
	});
	pi.on("tool_result", (event) => {
		if (event.toolName !== "bash") return;
		for (const part of event.content) if (part.type === "text") session?.onToolOutput(part.text);
	});

	pi.on("input", () => session?.eachOutbox((outbox) => outbox.onInput()));
	// The first prompt may come before the shared terminal is open.
	pi.on("before_agent_start", async () => void (await session?.waitForMirror()));
	pi.on("agent_start", () => {
		outcome = undefined;
		session?.eachOutbox((outbox) => outbox.onRunStart());
	});
	pi.on("message_end", (event) => session?.eachOutbox((outbox) => outbox.onMessage(event.message)));
	pi.on("agent_before_settle", (event) => {
		outcome = event.outcome;
	});
	// An aborted run has no outcome. Not agent_end, which also comes before each retry.
	pi.on("agent_settled", () => session?.eachOutbox((outbox) => outbox.onRunEnd(outcome === undefined)));
}
