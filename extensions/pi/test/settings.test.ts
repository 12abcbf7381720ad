// The settings of the package.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DEFAULTS, apply, loadSettings, settingsFiles } from "../extensions/agtmux/settings.ts";

const applied = (given: unknown) => {
	const settings = structuredClone(DEFAULTS);
	const problems = apply(settings, typeof given === "string" ? given : JSON.stringify(given));
	return { settings, problems };
};

test("valid values are used and the others keep their defaults", () => {
	const { settings, problems } = applied({ mirror: { enabled: true, timeout: 0.5, shell: "zsh" }, tasks: { notices: false } });
	assert.deepEqual(problems, []);
	assert.deepEqual(settings, { tasks: { notices: false }, mirror: { ...DEFAULTS.mirror, enabled: true, timeout: 0.5, shell: "zsh" } });
	assert.equal(DEFAULTS.mirror.enabled, false, "the shared terminal is off unless asked for");
});

test("wrong values are named and left out, and the rest of the file counts", () => {
	const wrong = { enabled: 1, timeout: 0, shell: null, activity: "no", other: 1 };
	const { settings, problems } = applied({ mirror: wrong, other: {}, constructor: {}, tasks: { notices: false, toString: 1 } });
	assert.deepEqual(settings, { ...DEFAULTS, tasks: { notices: false } });
	assert.equal(problems.length, 8, problems.join("\n"));
	for (const key of ["mirror.enabled", "mirror.timeout", "mirror.shell", "mirror.activity", "mirror.other", "other", "constructor", "tasks.toString"])
		assert.ok(problems.some((problem) => problem.includes(`"${key}"`)), key);
});

test("a file that is no object is reported", () => {
	for (const text of ["", "{", "[]", "null", "1"]) assert.equal(applied(text).problems.length, 1, text);
	assert.deepEqual(applied({ mirror: [] }).problems, ['"mirror" must be an object']);
});

test("the file of the project wins, if the project is trusted", () => {
	const dir = mkdtempSync(join(tmpdir(), "pi-agtmux-"));
	try {
		const write = (name: string, value: unknown) => writeFileSync(join(dir, name, "agtmux.json"), JSON.stringify(value));
		for (const name of ["user", "project"]) mkdirSync(join(dir, name));
		write("user", { mirror: { shell: "fish", timeout: 5 } });
		write("project", { mirror: { shell: "bash" } });
		const load = (project: string | undefined) => loadSettings(settingsFiles(join(dir, "user"), project)).settings.mirror;
		assert.deepEqual([load(undefined).shell, load(undefined).timeout], ["fish", 5]);
		assert.deepEqual([load(join(dir, "project")).shell, load(join(dir, "project")).timeout], ["bash", 5]);
		assert.deepEqual(load(join(dir, "missing")).shell, "fish");
	} finally {
		rmSync(dir, { recursive: true });
	}
});
