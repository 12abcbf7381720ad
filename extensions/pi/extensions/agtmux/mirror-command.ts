// The command `/mirror`.

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { Mirror } from "./mirror.ts";

const NAME = "mirror";
const WORDS = ["on", "off", "status"];

/** What is offered to complete this text. Nothing if it is complete, so that Enter runs the command. */
export function mirrorCompletions(prefix: string): { value: string; label: string }[] | null {
	const found = WORDS.filter((word) => word.startsWith(prefix));
	return found.length > 0 && !WORDS.includes(prefix) ? found.map((value) => ({ value, label: value })) : null;
}

/** `current` resolves to `undefined` if agtmux is missing or too old. */
export function registerMirrorCommand(pi: ExtensionAPI, current: () => Promise<Mirror | undefined>): void {
	pi.registerCommand(NAME, {
		description: "Run the commands of the agent in a terminal that you see: on, off or status",
		getArgumentCompletions: mirrorCompletions,
		handler: async (args, ctx) => {
			const mirror = await current();
			if (!mirror) return ctx.ui.notify("The shared terminal is off: agtmux is missing or too old.", "warning");
			const word = args.trim() || "status";
			if (word === "on") {
				const { text, done } = await mirror.turnOn();
				return ctx.ui.notify(text, done ? "info" : "warning");
			}
			if (word === "off") return ctx.ui.notify(await mirror.turnOff(), "info");
			if (word === "status") return ctx.ui.notify(await mirror.describe(), "info");
			ctx.ui.notify(`Usage: /${NAME} on | off | status`, "warning");
		},
	});
}
