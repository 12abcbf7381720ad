// Delivers messages to the conversation: each exactly once, and never at a moment at which Pi would lose a prompt.

import { type ConversationMessage, type MessageDetails, joined, lastSeq } from "./messages.ts";

/** Messages that come within this time are joined into one, because each message is a turn. */
export const JOIN_MS = 150;
/** How long after its start a session gets no message: prompts of the command line come first. */
export const START_MS = 500;
/** How long after `input` a prompt may take to start a run. Pi loses the prompt if a message starts one before. */
export const INPUT_MS = 30_000;
/** The same for a prompt that was typed during a run and is normally queued. */
export const QUEUED_INPUT_MS = 1000;
/** How often a busy Pi without a run (a compaction) is looked at, while messages wait. */
const RECHECK_MS = 250;
/** If a sent message has not been seen after this time, it is sent again. */
export const ACK_MS = 5000;
/** After this many attempts a message is added without a turn: Pi may have no model. */
const ATTEMPTS = 3;

/** What the outbox needs from Pi. */
export interface Conversation {
	/** Whether neither a run nor a compaction is in progress. */
	isIdle(): boolean;
	send(message: { customType: string; content: string; display: boolean; details: MessageDetails }, turn: boolean): void;
}

export interface OutboxOptions {
	/** The type of the messages. Messages of another type have an outbox of their own. */
	customType: string;
	/** The sequence number of the last delivered event. */
	seq: number;
	/** Events before this time are delivered without a turn. `Infinity`: all events. */
	quietBefore?: number;
}

export class Outbox {
	private waiting: ConversationMessage[] = [];
	/** Messages about what happened before the user stopped a run. They are delivered without a turn. */
	private quiet: ConversationMessage[] = [];
	/** Sent, but not yet seen in the conversation. */
	private sent: ConversationMessage[] = [];
	private attempts = 0;
	private seq: number;
	private running = false;
	/** When the user last stopped a run, at least. What happened before is delivered without a turn, also if it is reported later. */
	private quietBefore: number;
	private heldUntil: number;
	private timer: NodeJS.Timeout | undefined;
	private stopped = false;
	private readonly conversation: Conversation;
	private readonly customType: string;

	constructor(conversation: Conversation, { customType, seq, quietBefore = 0 }: OutboxOptions) {
		this.conversation = conversation;
		this.customType = customType;
		this.seq = seq;
		this.quietBefore = quietBefore;
		this.heldUntil = Date.now() + START_MS;
	}

	add(message: ConversationMessage): void {
		const seq = lastSeq(message.details);
		if (this.stopped || seq <= this.seq) return;
		this.seq = seq;
		const isOld = message.details.events.every((event) => Date.parse(event.at) <= this.quietBefore);
		(isOld ? this.quiet : this.waiting).push(message);
		this.flushIn(JOIN_MS);
	}

	/** The user sent a prompt. */
	onInput(): void {
		this.heldUntil = Date.now() + (this.running ? QUEUED_INPUT_MS : INPUT_MS);
	}

	onRunStart(): void {
		this.running = true;
		this.heldUntil = 0;
	}

	onRunEnd(aborted: boolean): void {
		this.running = false;
		const dropped = this.sent;
		this.sent = [];
		this.waiting = [...dropped, ...this.waiting];
		if (aborted) {
			this.quietBefore = Math.max(this.quietBefore, Date.now());
			this.quiet.push(...this.waiting);
			this.waiting = [];
		}
		// Pi itself may have more to do: the next prompt of the command line, or a prompt that was queued.
		if (this.waiting.length + this.quiet.length > 0) this.flushIn(JOIN_MS);
	}

	/** A message has arrived in the conversation. */
	onMessage(message: { role?: string; customType?: string; details?: unknown }): void {
		if (message.role !== "custom" || message.customType !== this.customType) return;
		const events = (message.details as Partial<MessageDetails> | undefined)?.events;
		const seqs = new Set(Array.isArray(events) ? events.map((event) => event.seq) : []);
		const isIn = (one: ConversationMessage) => seqs.has(lastSeq(one.details));
		this.sent = this.sent.filter((one) => !isIn(one));
		if (this.sent.length === 0) this.attempts = 0;
		this.waiting = this.waiting.filter((one) => !isIn(one));
	}

	stop(): void {
		this.stopped = true;
		clearTimeout(this.timer);
	}

	private flushIn(ms: number): void {
		if (this.stopped) return;
		clearTimeout(this.timer);
		this.timer = setTimeout(() => {
			// An exception here would end Pi.
			try {
				this.flush();
			} catch {}
		}, Math.max(0, ms));
		this.timer.unref();
	}

	private flush(): void {
		// `onRunEnd` continues.
		if (this.stopped || this.running) return;
		const held = this.heldUntil - Date.now();
		if (held > 0) return this.flushIn(held);
		if (!this.conversation.isIdle()) return this.flushIn(RECHECK_MS);
		if (this.sent.length > 0) {
			this.waiting = [...this.sent, ...this.waiting];
			this.sent = [];
		}
		const quiet = this.quiet;
		this.quiet = [];
		// Without a turn Pi stores the message at once and reports nothing.
		if (quiet.length > 0) this.send(quiet, false);
		const due = this.waiting;
		this.waiting = [];
		if (due.length === 0) return;
		this.attempts += 1;
		if (this.attempts > ATTEMPTS) {
			this.attempts = 0;
			return this.send(due, false);
		}
		this.sent = due;
		this.send(due, true);
		this.flushIn(ACK_MS);
	}

	private send(messages: ConversationMessage[], turn: boolean): void {
		const { text, details } = joined(messages);
		this.conversation.send({ customType: this.customType, content: text, display: true, details }, turn);
	}
}
