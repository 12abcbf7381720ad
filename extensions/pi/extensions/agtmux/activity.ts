// What the user does in the shared terminal, as messages for the conversation.

import { Follower } from "./follower.ts";
import type { ConversationEvent, ConversationMessage } from "./messages.ts";

/** The type of the messages in the conversation. */
export const ACTIVITY_TYPE = "tmux-mirror-activity";
const MARK = "[shared terminal] The user ran a command there. The user may have run it for you to see:";

/** A command of the user, as `agtmux mirror activity --json` prints it. */
export interface ActivityItem {
	number: number;
	command: string | null;
	cwd: string | null;
	exit_code: number | null;
	ended_at: string;
	/** `~/dir $ command`, the output, `[exit code: N]`. */
	text: string;
}

/** A command of the user, in the details of a message. */
export interface ActivityEvent extends ConversationEvent {
	type: "command";
	/** The number of the command in its terminal. */
	number: number;
	command: string | null;
	cwd: string | null;
	exitCode: number | null;
}

export function activityMessage(item: ActivityItem, mirrorId: string, sessionId: string, seq: number): ConversationMessage {
	const { number, command, cwd, exit_code: exitCode, ended_at: at, text } = item;
	const event: ActivityEvent = { type: "command", seq, at, level: "info", number, command, cwd, exitCode };
	const details = { source: "extension", notUserInput: true, sessionId, mirrorId, level: "info" as const, events: [event] };
	// Bytes that are not valid UTF-8.
	const body = text.replace(/[\u{10ff00}-\u{10ffff}]/gu, "\u{fffd}");
	return { customType: ACTIVITY_TYPE, text: `${MARK}\n${body}`, body, details };
}

/** The number of the last command in this terminal that is in the conversation. */
export function lastNumber(entries: readonly { type: string; customType?: string; details?: unknown }[], mirrorId: string): number | undefined {
	const numbers = entries.flatMap((entry) => {
		if (entry.type !== "custom_message" || entry.customType !== ACTIVITY_TYPE) return [];
		const details = entry.details as { mirrorId?: unknown; events?: unknown } | undefined;
		if (details?.mirrorId !== mirrorId || !Array.isArray(details.events)) return [];
		return details.events.map((event) => event?.number).filter((number) => Number.isSafeInteger(number)) as number[];
	});
	return numbers.length > 0 ? Math.max(...numbers) : undefined;
}

/** Follows the commands of the user in the terminal of this pane, until the pane is closed. */
export function followActivity(pane: string, after: number, onItem: (item: ActivityItem) => void): Follower<ActivityItem> {
	const command = ["mirror", "activity", "--follow", "--json", "--pane", pane];
	return new Follower<ActivityItem>({
		args: (after) => [...command, "--after", String(after)],
		position: (item) => item.number,
		after,
		env: {},
		onLine: onItem,
		isFinal: (_code, stderr) => stderr.includes("is not a shared terminal"),
	});
}
