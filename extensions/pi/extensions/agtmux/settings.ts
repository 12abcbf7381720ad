// The settings of this package: `agtmux.json` in the directory of Pi, and in the project if it is trusted.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** How commands of the user in the shared terminal reach the conversation. */
export type Activity = "turn" | "message" | "off";

export interface Settings {
	tasks: {
		/** Whether notices tell the user about started tasks and about sessions in which tasks still run. */
		notices: boolean;
	};
	mirror: {
		/** Whether the shared terminal is on from the start. */
		enabled: boolean;
		/** Seconds after which a command is interrupted, if the model names no other time. */
		timeout: number;
		/** The shell: bash, zsh, fish or a path. Empty: `shellPath` of Pi, else the shell that tmux starts. */
		shell: string;
		activity: Activity;
	};
}

export const DEFAULTS: Settings = {
	tasks: { notices: true },
	mirror: { enabled: false, timeout: 120, shell: "", activity: "turn" },
};

const FILE = "agtmux.json";
/** The longest time that agtmux accepts. */
const MAX_TIMEOUT = 24 * 3600;

type Check = (value: unknown) => boolean;

const isBoolean: Check = (value) => typeof value === "boolean";
const CHECKS: Record<string, Record<string, [Check, string]>> = {
	tasks: { notices: [isBoolean, "true or false"] },
	mirror: {
		enabled: [isBoolean, "true or false"],
		timeout: [(value) => typeof value === "number" && value > 0 && value <= MAX_TIMEOUT, `a number of seconds up to ${MAX_TIMEOUT}`],
		shell: [(value) => typeof value === "string", "the name or the path of a shell"],
		activity: [(value) => ["turn", "message", "off"].includes(value as string), `"turn", "message" or "off"`],
	},
};

export interface LoadedSettings {
	settings: Settings;
	/** What is wrong in the files. Wrong values are left out. */
	problems: string[];
}

/** Reads the files in this order; later files win. */
export function loadSettings(files: string[]): LoadedSettings {
	const settings = structuredClone(DEFAULTS);
	const problems = files.flatMap((file) => {
		const text = read(file);
		return text === undefined ? [] : apply(settings, text).map((problem) => `${file}: ${problem}`);
	});
	return { settings, problems };
}

/** The file of the user, and the one of the project if it may be read. */
export function settingsFiles(agentDir: string, projectDir: string | undefined): string[] {
	return [join(agentDir, FILE), ...(projectDir ? [join(projectDir, FILE)] : [])];
}

function read(file: string): string | undefined {
	try {
		return readFileSync(file, "utf8");
	} catch {
		return undefined;
	}
}

/** Adds the values of a file. Returns what is wrong with it. */
export function apply(settings: Settings, text: string): string[] {
	let given: unknown;
	try {
		given = JSON.parse(text);
	} catch (error) {
		return [`no valid JSON (${error instanceof Error ? error.message : error})`];
	}
	if (!isObject(given)) return ["no JSON object"];
	return Object.entries(given).flatMap(([section, values]) => {
		const checks = Object.hasOwn(CHECKS, section) ? CHECKS[section] : undefined;
		if (!checks) return [`unknown key "${section}"`];
		if (!isObject(values)) return [`"${section}" must be an object`];
		return Object.entries(values).flatMap(([key, value]) => {
			const [isValid, wanted] = (Object.hasOwn(checks, key) && checks[key]) || [];
			if (!isValid) return [`unknown key "${section}.${key}"`];
			if (!isValid(value)) return [`"${section}.${key}" must be ${wanted}`];
			(settings as unknown as Record<string, Record<string, unknown>>)[section][key] = value;
			return [];
		});
	});
}

const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === "object" && value !== null && !Array.isArray(value);
