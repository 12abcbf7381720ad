// The lines of `agtmux task events --conversation --json`, and the messages that they become.

/** The type of the messages in the conversation. */
export const CUSTOM_TYPE = "tmux-task-event";

export interface ConversationEvent {
	type: string;
	/** Unique among the messages of this type in a session. */
	seq: number;
	at: string;
	level: "info" | "warning";
}

export interface MessageDetails {
	source: string;
	notUserInput: boolean;
	sessionId: string | null;
	/** The tmux session of the tasks. */
	sessionName?: string;
	/** The shared terminal. */
	mirrorId?: string;
	level: "info" | "warning";
	events: ConversationEvent[];
}

export interface ConversationMessage {
	customType: string;
	text: string;
	/** The text without its mark, to append to another message. */
	body: string;
	details: MessageDetails;
}

/** One line of output: one event. */
export interface EventLine {
	seq: number;
	/** The time of the event, in ISO 8601. */
	at: string;
	notice: string | null;
	message: ConversationMessage | null;
}

/** The last sequence number of a message. */
export const lastSeq = (details: MessageDetails): number => Math.max(0, ...details.events.map((event) => event.seq));

/** One message with the content of all these messages. */
export function joined(messages: ConversationMessage[]): { text: string; details: MessageDetails } {
	const [first, ...more] = messages;
	return {
		text: [first.text, ...more.map((message) => message.body)].join("\n"),
		details: {
			...first.details,
			level: messages.some((message) => message.details.level === "warning") ? "warning" : "info",
			events: messages.flatMap((message) => message.details.events),
		},
	};
}

/** An entry of a session file, as far as it is used here. */
interface SessionEntry {
	type: string;
	customType?: string;
	details?: unknown;
}

/** The sequence number of the last event of this session that is in the conversation; 0 if there is none. */
export function deliveredSeq(entries: readonly SessionEntry[], sessionName: string): number {
	let seq = 0;
	for (const entry of entries) {
		if (entry.type !== "custom_message" || entry.customType !== CUSTOM_TYPE) continue;
		const details = entry.details as Partial<MessageDetails> | undefined;
		// A forked session contains messages about the tasks of the session that it was made from.
		if (details?.sessionName !== sessionName || !Array.isArray(details.events)) continue;
		const seqs = details.events.map((event) => event.seq).filter((number) => Number.isSafeInteger(number));
		seq = Math.max(seq, ...seqs);
	}
	return seq;
}
