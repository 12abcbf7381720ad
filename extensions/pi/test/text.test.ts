// What is read and written: command lines, output of the helper, session files.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { completions } from "../extensions/agtmux/command.ts";
import { lineSplitter } from "../extensions/agtmux/follower.ts";
import { deliveredSeq } from "../extensions/agtmux/messages.ts";
import { startedTask, withVariables } from "../extensions/agtmux/shell.ts";
import { clean, indexOfTask, statusLine, type Task } from "../extensions/agtmux/tasks.ts";

const variables = { PI_TMUX_SESSION: "pi-p-1", AGTMUX_OWNER: "7", AGTMUX_PROJECT: `/a b/$(touch x)'"\`\n` };

test("variables are quoted and every command runs unchanged", () => {
	for (const command of ["# only a comment", "cat <<E\nx\nE", `echo 'a "b"'`]) {
		const print = `${command}\nprintf '%s|' "$PI_TMUX_SESSION" "$AGTMUX_OWNER" "$AGTMUX_PROJECT"`;
		const { stdout, status } = spawnSync("sh", ["-c", withVariables(print, variables)], { encoding: "utf8" });
		assert.equal(status, 0);
		assert.ok(stdout.endsWith(`pi-p-1|7|${variables.AGTMUX_PROJECT}|`), stdout);
	}
});

test("only the start of a task in this session counts", () => {
	const output = (session: string) => `note\nsession=${session}\nwindow_id=@12\r\ntask=t\ncwd=/x\n`;
	assert.equal(startedTask(output("pi-p-1"), "pi-p-1"), true);
	assert.equal(startedTask(output("pi-p-12"), "pi-p-1"), false);
	assert.equal(startedTask("session=pi-p-1", "pi-p-1"), false);
});

test("the position is read from the messages of this session", () => {
	const entry = (seq: unknown, sessionName: string, customType = "tmux-task-event") => {
		return { type: "custom_message", customType, details: { sessionName, events: [{ seq }] } };
	};
	const entries = [entry(3, "pi-p-1"), entry(9, "pi-p-0"), entry(8, "pi-p-1", "other"), entry("x", "pi-p-1"), { type: "message" }];
	assert.equal(deliveredSeq(entries, "pi-p-1"), 3);
	assert.equal(deliveredSeq([], "pi-p-1"), 0);
});

test("lines are complete however the text is cut", () => {
	const lines: string[] = [];
	const add = lineSplitter((line) => lines.push(line));
	for (const part of ['{"a"', ":1}\n\n{", "}", "\n{"]) add(part);
	assert.deepEqual(lines, ['{"a":1}', "{}"]);
});

test("complete text is offered no completion, so that Enter runs the command", () => {
	assert.deepEqual(completions("pr")?.map((one) => one.value), ["prune-dead"]);
	for (const text of ["prune-dead", "kill-all", "kill-all --yes", "x"]) assert.equal(completions(text), null);
});

test("the status line counts tasks while the session exists", () => {
	const task = { window_id: "@1", window_name: "t", current_command: null, task_cwd: null, dead: false, exit_code: null };
	const tasks = [{ ...task, signal: null, output_preview: "" }];
	assert.equal(statusLine({ exists: true, tasks }), "tmux: 1 task");
	assert.equal(statusLine({ exists: true, tasks: [] }), "tmux: 0 tasks");
	assert.equal(statusLine({ exists: false, tasks: [] }), undefined);
});

test("text of a task cannot change the screen", () => {
	assert.equal(clean("a\tb\u{1b}[31mc"), "a    b\u{fffd}[31mc");
	for (const hostile of ["\u{202e}", "\u{2066}", "\u{200b}", "\u{ad}", "\u{feff}", "\u{2028}", "\u{2029}", "\u{85}"]) {
		assert.equal(clean(`a${hostile}b`), "a\u{fffd}b", hostile.codePointAt(0)?.toString(16));
	}
	assert.equal(clean("日本 é\u{301} 🙂"), "日本 é\u{301} 🙂");
});

test("the selected task stays selected when the list changes", () => {
	const task = (window_id: string, window_name: string) => ({ window_id, window_name }) as Task;
	const [a, b, c] = [task("@1", "a"), task("@2", "b"), task("@3", "c")];
	assert.equal(indexOfTask([a, b, c], b, 0), 1);
	assert.equal(indexOfTask([b, c], c, 2), 1);
	assert.equal(indexOfTask([b, c], a, 0), 0, "gone");
	assert.equal(indexOfTask([a, b], c, 2), 1, "the last one has gone");
	assert.equal(indexOfTask([], a, 0), 0);
	assert.equal(indexOfTask([task("@1", "other"), b], a, 1), 1, "the window has another task");
});
