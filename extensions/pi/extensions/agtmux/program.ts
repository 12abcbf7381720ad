// Runs agtmux. Nothing here throws: an exception in a callback would end Pi.

import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";

/** The program. `agtmux setup` writes its absolute path here. */
const PROGRAM = "agtmux";

/** A command that runs longer than this is killed. */
const TIMEOUT_MS = 20_000;

export const program = (): string => process.env.AGTMUX_PROGRAM || PROGRAM;

/** The path of the program, for shells with another PATH. `undefined` if it is not found. */
export function programPath(): string | undefined {
	const name = program();
	if (isAbsolute(name)) return name;
	const paths = (process.env.PATH ?? "").split(delimiter).map((dir) => join(dir, name));
	return paths.find((path) => isAbsolute(path) && isExecutable(path));
}

function isExecutable(path: string): boolean {
	try {
		accessSync(path, constants.X_OK);
		return true;
	} catch {
		return false;
	}
}

/** Lets shell commands find agtmux, also if its directory is not on PATH. */
export function addToPath(): void {
	const dir = isAbsolute(program()) ? dirname(program()) : undefined;
	const dirs = (process.env.PATH ?? "").split(delimiter);
	if (dir && !dirs.includes(dir)) process.env.PATH = [...dirs, dir].join(delimiter);
}

export interface CommandResult {
	/** The exit code. `undefined` if the program could not be started or was killed. */
	code: number | undefined;
	stdout: string;
	stderr: string;
	/** Whether the program does not exist. */
	missing: boolean;
}

export interface CommandOptions {
	env?: Record<string, string>;
	cwd?: string;
	input?: string;
	timeoutMs?: number;
}

/** Runs `agtmux` and resolves when it has ended or failed. */
export function agtmux(args: string[], options: CommandOptions = {}): Promise<CommandResult> {
	return new Promise((resolve) => {
		const result: CommandResult = { code: undefined, stdout: "", stderr: "", missing: false };
		try {
			const { env, cwd, input = "", timeoutMs = TIMEOUT_MS } = options;
			const child = spawn(program(), args, { stdio: ["pipe", "pipe", "pipe"], cwd, env: { ...process.env, ...env } });
			const late = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
			late.unref();
			const ended = () => {
				clearTimeout(late);
				resolve(result);
			};
			child.on("error", (error: NodeJS.ErrnoException) => {
				result.missing = error.code === "ENOENT";
				result.stderr ||= error.message;
				ended();
			});
			child.on("close", (code) => {
				result.code = code ?? undefined;
				ended();
			});
			child.stdin.on("error", () => {});
			child.stdout.setEncoding("utf8").on("data", (text) => (result.stdout += text)).on("error", () => {});
			child.stderr.setEncoding("utf8").on("data", (text) => (result.stderr += text)).on("error", () => {});
			child.stdin.end(input);
		} catch (error) {
			result.stderr = String(error);
			resolve(result);
		}
	});
}

/** Runs `agtmux … --json` and returns the parsed output. `undefined` after a failure. */
export async function agtmuxJson<T>(args: string[], options: CommandOptions = {}): Promise<T | undefined> {
	const { code, stdout } = await agtmux([...args, "--json"], options);
	try {
		return code === 0 ? (JSON.parse(stdout) as T) : undefined;
	} catch {
		return undefined;
	}
}
