// Commands in the shared terminal, and what the user does there, with a program in place of agtmux.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ACTIVITY_TYPE, activityMessage, lastNumber } from "../extensions/agtmux/activity.ts";
import { type Ended, bytes, execArgs, mirrorOperations } from "../extensions/agtmux/mirror-exec.ts";
import { mirrorCompletions } from "../extensions/agtmux/mirror-command.ts";

let dir = "";
before(() => {
	dir = mkdtempSync(join(tmpdir(), "pi-agtmux-"));
});
after(() => rmSync(dir, { recursive: true }));

const ENDED: Ended = { status: "ended", mirror_id: "m", pane_id: "%5", exit_code: 0, timed_out: false, full_screen: false };

/** Runs a command while this script acts as agtmux. */
async function run(script: string, options: { timeout?: number; signal?: AbortSignal } = {}) {
	const program = join(dir, "agtmux");
	writeFileSync(program, `#!/bin/sh\n${script}\n`);
	chmodSync(program, 0o755);
	process.env.AGTMUX_PROGRAM = program;
	let output = "";
	const seen: Ended[] = [];
	const operations = mirrorOperations({ timeout: 120, shell: undefined, variables: () => ({}), onEnded: (ended) => seen.push(ended) });
	try {
		const result = await operations.exec("true", "/", { ...options, onData: (data) => (output += data.toString("latin1")) });
		return { code: result.exitCode, output, error: undefined, seen };
	} catch (error) {
		return { code: undefined, output, error: (error as Error).message, seen };
	}
}

const print = (item: object) => `printf '%s\\n' '${JSON.stringify(item)}'`;

test("output and exit code are passed on", async () => {
	const done = await run([print({ output: "a\u{10ffff}\n" }), print({ output: "b" }), print({ ended: { ...ENDED, exit_code: 3 } }), "exit 3"].join("\n"));
	assert.deepEqual([done.code, done.output, done.seen[0].pane_id], [3, "a\xff\nb", "%5"]);
});

test("a timeout is reported as Pi expects it", async () => {
	const ended = print({ ended: { ...ENDED, exit_code: 124, timed_out: true } });
	assert.equal((await run(ended)).error, "timeout:120");
	assert.equal((await run(ended, { timeout: 7 })).error, "timeout:7");
});

test("a refusal and a missing program are errors with the reason", async () => {
	assert.equal((await run("echo 'error: the terminal is busy' >&2; exit 5")).error, "error: the terminal is busy");
	assert.equal((await run("exit 5")).error, "agtmux ended without a result");
	const missing = mirrorOperations({ timeout: 1, shell: undefined, variables: () => ({}), onEnded: () => {} });
	process.env.AGTMUX_PROGRAM = join(dir, "missing");
	await assert.rejects(missing.exec("true", "/", { onData: () => {} }), /ENOENT/);
});

test("a lost command is an error and a full-screen program is named", async () => {
	assert.match((await run(print({ ended: { ...ENDED, status: "lost", exit_code: null } }))).error ?? "", /result of the command is unknown/);
	assert.match((await run(print({ ended: { ...ENDED, full_screen: true } }))).output, /full-screen program/);
});

test("an abort interrupts agtmux", async () => {
	const abort = new AbortController();
	const running = run(`trap 'exit 130' INT\n${print({ output: "started" })}\nwhile :; do sleep 0.05; done`, { signal: abort.signal });
	setTimeout(() => abort.abort(), 300);
	const done = await running;
	assert.deepEqual([done.error, done.output], ["aborted", "started"]);
	assert.equal((await run(print({ ended: ENDED }), { signal: abort.signal })).error, "aborted", "before it starts");
});

test("lines that cannot be read do not end Pi", async () => {
	const done = await run(["echo '{'", "echo null", print({ ended: ENDED })].join("\n"));
	assert.equal(done.code, 0);
});

test("a command that looks like an option stays a command", () => {
	const args = execArgs("--help", "/a b", 1.5, "zsh", { A: "x y" });
	assert.deepEqual(args.slice(-2), ["--", "--help"]);
	assert.deepEqual(args.slice(4, 8), ["--timeout=1500ms", "--cwd=/a b", "--shell=zsh", "--env=A=x y"]);
});

test("bytes that are not valid UTF-8 are restored", () => {
	assert.deepEqual([...bytes("é\u{10ff80}\u{10ffff}x")], [0xc3, 0xa9, 0x80, 0xff, 0x78]);
	assert.equal(bytes("日本").toString(), "日本");
});

test("a command of the user becomes a message with its text and its data", () => {
	const item = { number: 4, command: "ls", cwd: "/a", exit_code: 2, ended_at: "2026-01-01T00:00:00Z", text: "/a $ ls\n\u{10ffff}\n[exit code: 2]" };
	const message = activityMessage(item, "m1", "s1", 9);
	assert.ok(message.text.endsWith("\n/a $ ls\n\u{fffd}\n[exit code: 2]"), message.text);
	assert.deepEqual(message.details.events, [{ type: "command", seq: 9, at: item.ended_at, level: "info", number: 4, command: "ls", cwd: "/a", exitCode: 2 }]);
});

test("the position is read from the messages about this terminal", () => {
	const entry = (number: unknown, mirrorId: string, customType = ACTIVITY_TYPE) => {
		return { type: "custom_message", customType, details: { mirrorId, events: [{ number }] } };
	};
	assert.equal(lastNumber([entry(3, "m"), entry(2, "m"), entry(9, "n"), entry(8, "m", "x"), entry("7", "m"), { type: "message" }], "m"), 3);
	assert.equal(lastNumber([entry(3, "m")], "n"), undefined);
});

test("complete words are offered no completion", () => {
	assert.deepEqual(mirrorCompletions("o")?.map((one) => one.value), ["on", "off"]);
	for (const text of ["on", "off", "status", "x"]) assert.equal(mirrorCompletions(text), null);
});
