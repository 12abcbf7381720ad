// When messages are delivered, with a clock and a Pi of the test.

import assert from "node:assert/strict";
import { after, beforeEach, describe, mock, test } from "node:test";
import type { ConversationMessage } from "../extensions/agtmux/messages.ts";
import { ACK_MS, INPUT_MS, JOIN_MS, Outbox, START_MS } from "../extensions/agtmux/outbox.ts";

interface Sent {
	text: string;
	turn: boolean;
	details: unknown;
}

function message(seq: number, level: "info" | "warning" = "info"): ConversationMessage {
	const event = { type: "exited", seq, at: new Date(seq).toISOString(), level };
	const details = { source: "extension", notUserInput: true, sessionId: "s", sessionName: "pi-p-s", level, events: [event] };
	return { customType: "tmux-task-event", text: `[mark] ${seq}`, body: String(seq), details };
}

/** A conversation that records what is sent, and an outbox whose start is over. */
function conversation(options: { idle?: () => boolean; seq?: number; quietBefore?: number } = {}) {
	const sent: Sent[] = [];
	const send = ({ content, details }: { content: string; details: unknown }, turn: boolean) => {
		sent.push({ text: content, turn, details });
	};
	const outbox = new Outbox(
		{ isIdle: options.idle ?? (() => true), send },
		{ customType: "tmux-task-event", seq: options.seq ?? 0, quietBefore: options.quietBefore },
	);
	mock.timers.tick(START_MS);
	return { sent, outbox, arrive: (one: Sent) => outbox.onMessage({ role: "custom", customType: "tmux-task-event", details: one.details }) };
}

describe("the outbox", () => {
	beforeEach(() => {
		mock.timers.reset();
		mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
	});

	test("messages of one moment are joined into one turn", () => {
		const { sent, outbox } = conversation();
		outbox.add(message(1));
		outbox.add(message(2, "warning"));
		mock.timers.tick(JOIN_MS);
		assert.deepEqual(sent.map(({ text, turn }) => [text, turn]), [["[mark] 1\n2", true]]);
		assert.equal((sent[0].details as { level: string }).level, "warning");
	});

	test("an event that was delivered before is left out", () => {
		const { sent, outbox } = conversation({ seq: 5 });
		outbox.add(message(5));
		outbox.add(message(6));
		outbox.add(message(6));
		mock.timers.tick(JOIN_MS);
		assert.deepEqual(sent.map(({ text }) => text), ["[mark] 6"]);
	});

	test("nothing is sent while a run is active", () => {
		const { sent, outbox } = conversation();
		outbox.onRunStart();
		outbox.add(message(1));
		mock.timers.tick(60_000);
		assert.equal(sent.length, 0);
		outbox.onRunEnd(false);
		mock.timers.tick(JOIN_MS);
		assert.deepEqual(sent.map(({ turn }) => turn), [true]);
	});

	test("nothing is sent between a prompt and the start of its run", () => {
		const { sent, outbox } = conversation();
		outbox.onInput();
		outbox.add(message(1));
		mock.timers.tick(INPUT_MS - 1);
		assert.equal(sent.length, 0);
		outbox.onRunStart();
		outbox.onRunEnd(false);
		mock.timers.tick(JOIN_MS);
		assert.equal(sent.length, 1);
	});

	test("a prompt that starts no run holds messages for a limited time", () => {
		const { sent, outbox } = conversation();
		outbox.onInput();
		outbox.add(message(1));
		mock.timers.tick(INPUT_MS);
		assert.equal(sent.length, 1);
	});

	test("nothing is sent during a compaction", () => {
		let isIdle = false;
		const { sent, outbox } = conversation({ idle: () => isIdle });
		outbox.add(message(1));
		mock.timers.tick(10_000);
		assert.equal(sent.length, 0);
		isIdle = true;
		mock.timers.tick(1000);
		assert.equal(sent.length, 1);
	});

	test("after an aborted run, earlier events are delivered without a turn", () => {
		const { sent, outbox } = conversation();
		outbox.onRunStart();
		outbox.add(message(1));
		outbox.onRunEnd(true);
		// Reported later, but it happened before the user stopped the run.
		outbox.add(message(2));
		mock.timers.tick(JOIN_MS);
		assert.deepEqual(sent.map(({ text, turn }) => [text, turn]), [["[mark] 1\n2", false]]);
		mock.timers.tick(ACK_MS * 2);
		assert.equal(sent.length, 1, "without a turn Pi reports no arrival");
	});

	test("a message that Pi dropped is sent again", () => {
		const { sent, outbox } = conversation();
		outbox.add(message(1));
		mock.timers.tick(JOIN_MS);
		outbox.onRunStart();
		outbox.onRunEnd(false);
		mock.timers.tick(JOIN_MS);
		assert.deepEqual(sent.map(({ text }) => text), ["[mark] 1", "[mark] 1"]);
	});

	test("a message that has arrived is not sent again", () => {
		const { sent, outbox, arrive } = conversation();
		outbox.add(message(1));
		mock.timers.tick(JOIN_MS);
		outbox.onRunStart();
		arrive(sent[0]);
		outbox.onRunEnd(false);
		mock.timers.tick(ACK_MS * 2);
		assert.equal(sent.length, 1);
	});

	test("a Pi that cannot start a run gets the message without a turn in the end", () => {
		const { sent, outbox } = conversation();
		outbox.add(message(1));
		mock.timers.tick(JOIN_MS);
		for (let n = 0; n < 10; n++) mock.timers.tick(ACK_MS);
		assert.deepEqual(sent.map(({ turn }) => turn), [true, true, true, false]);
	});

	test("an exception of an ended session does not leave the timer", () => {
		const send = () => {
			throw new Error("This extension ctx is stale");
		};
		const outbox = new Outbox({ isIdle: () => true, send }, { customType: "tmux-task-event", seq: 0 });
		outbox.add(message(1));
		assert.doesNotThrow(() => mock.timers.tick(START_MS + JOIN_MS));
	});

	test("a stopped outbox sends nothing", () => {
		const { sent, outbox } = conversation();
		outbox.add(message(1));
		outbox.stop();
		mock.timers.tick(60_000);
		assert.equal(sent.length, 0);
	});

	test("an outbox without turns delivers everything without a turn", () => {
		const { sent, outbox } = conversation({ quietBefore: Infinity });
		outbox.add(message(1));
		mock.timers.tick(JOIN_MS);
		outbox.onRunStart();
		outbox.onRunEnd(true);
		outbox.add(message(2));
		mock.timers.tick(JOIN_MS);
		assert.deepEqual(sent.map(({ turn }) => turn), [false, false]);
	});

	after(() => mock.timers.reset());
});
