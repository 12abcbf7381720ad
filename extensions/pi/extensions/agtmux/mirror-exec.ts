// Runs a command in the shared terminal: `agtmux mirror exec`. Imports only types of Pi, so that the tests need no Pi.

import { type ChildProcess, spawn } from "node:child_process";
import type { BashOperations } from "@earendil-works/pi-coding-agent";
import { lineSplitter } from "./follower.ts";
import { program, programPath } from "./program.ts";

/** An aborted command has this time to end. */
export const ABORT_MS = 10_000;
const MAX_STDERR = 2000;

/** The variables of Pi that commands may use. */
const PI_VARIABLES = ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

/** The result of a command, as far as it is used here. */
export interface Ended {
	status: "running" | "ended" | "lost";
	mirror_id: string;
	pane_id: string;
	exit_code: number | null;
	timed_out: boolean;
	full_screen: boolean;
}

export interface ExecOptions {
	/** Seconds after which a command is interrupted, if the model names no other time. */
	timeout: number;
	/** The shell of a terminal that must be opened. */
	shell: string | undefined;
	/** The variables of this session. */
	variables(): Record<string, string>;
	/** The terminal in which a command ran. It is another one if the user has closed the pane. */
	onEnded(ended: Ended): void;
}

export function mirrorOperations(options: ExecOptions): BashOperations {
	return {
		exec: async (command, cwd, { onData, signal, timeout, env }) => {
			if (signal?.aborted) throw new Error("aborted");
			const seconds = timeout ?? options.timeout;
			const variables = { ...variablesOfPi(env), ...options.variables() };
			const args = execArgs(command, cwd, seconds, options.shell, variables);
			const { ended, error } = await follow(args, onData, signal);
			if (ended) options.onEnded(ended);
			if (signal?.aborted) throw new Error("aborted");
			if (!ended) throw new Error(error);
			if (ended.timed_out) throw new Error(`timeout:${seconds}`);
			if (ended.status === "lost") throw new Error(LOST);
			if (ended.full_screen) onData(Buffer.from(FULL_SCREEN));
			return { exitCode: ended.exit_code };
		},
	};
}

const LOST = "The result of the command is unknown: the shared terminal was closed while the command ran. It was not run again.";
const FULL_SCREEN = "\n[The command ran a full-screen program, whose screen is left out.]\n";

function variablesOfPi(env: NodeJS.ProcessEnv | undefined): Record<string, string> {
	const given = PI_VARIABLES.flatMap((name) => (env?.[name] === undefined ? [] : [[name, env[name]]]));
	// The shell of the user may not find agtmux, which the helper of the skill runs.
	const path = programPath();
	return { ...Object.fromEntries(given), ...(path ? { AGTMUX_PROGRAM: path } : {}) };
}

export function execArgs(
	command: string,
	cwd: string,
	seconds: number,
	shell: string | undefined,
	variables: Record<string, string>,
): string[] {
	const env = Object.entries(variables).map(([name, value]) => `--env=${name}=${value}`);
	const more = shell ? [`--shell=${shell}`] : [];
	const timeout = `--timeout=${Math.max(1, Math.round(seconds * 1000))}ms`;
	return ["mirror", "exec", "--follow", "--json", timeout, `--cwd=${cwd}`, ...more, ...env, "--", command];
}

interface Followed {
	ended: Ended | undefined;
	/** Why there is no result. */
	error: string;
}

/** Runs the command and passes its output on. Resolves at its end, and never throws. */
function follow(args: string[], onData: (data: Buffer) => void, signal: AbortSignal | undefined): Promise<Followed> {
	return new Promise((resolve) => {
		let ended: Ended | undefined;
		let stderr = "";
		let late: NodeJS.Timeout | undefined;
		let child: ChildProcess | undefined;
		// agtmux presses Ctrl-C in the terminal.
		const abort = () => {
			child?.kill("SIGINT");
			late = setTimeout(() => child?.kill("SIGKILL"), ABORT_MS);
		};
		const finish = (error?: string) => {
			clearTimeout(late);
			signal?.removeEventListener("abort", abort);
			resolve({ ended, error: error ?? (stderr.trim() || "agtmux ended without a result") });
		};
		const read = (line: string) => {
			// An exception here would end Pi.
			try {
				const item = JSON.parse(line) as { output?: string; ended?: Ended };
				if (item.output !== undefined) onData(bytes(item.output));
				if (item.ended) ended = item.ended;
			} catch {}
		};
		try {
			const running = spawn(program(), args, { stdio: ["ignore", "pipe", "pipe"] });
			child = running;
			running.on("error", (error) => finish(error.message));
			running.on("close", () => finish());
			running.stdout.setEncoding("utf8").on("data", lineSplitter(read)).on("error", () => {});
			running.stderr.setEncoding("utf8").on("data", (text) => (stderr = (stderr + text).slice(-MAX_STDERR))).on("error", () => {});
			signal?.addEventListener("abort", abort, { once: true });
		} catch (error) {
			finish(String(error));
		}
	});
}

/** The bytes of an output. agtmux writes a byte that is not valid UTF-8 as a code point. */
export function bytes(text: string): Buffer {
	const parts: Buffer[] = [];
	let rest = 0;
	for (const { index, 0: found } of text.matchAll(/[\u{10ff00}-\u{10ffff}]/gu)) {
		parts.push(Buffer.from(text.slice(rest, index)), Buffer.from([(found.codePointAt(0) ?? 0) & 0xff]));
		rest = index + found.length;
	}
	return Buffer.concat([...parts, Buffer.from(text.slice(rest))]);
}
