// Follows events: `agtmux task events --follow` and `agtmux mirror activity --follow`. agtmux itself waits for a daemon that
// is restarted. If the process ends, it is started again after the last line that was read.

import { type ChildProcess, spawn } from "node:child_process";
import { program } from "./program.ts";

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** The exit code of agtmux for a command line that it does not know. */
export const USAGE_EXIT_CODE = 2;
const MAX_STDERR = 2000;

export interface FollowerOptions<Line> {
	/** The command that prints one line of JSON per event after this position. */
	args(after: number): string[];
	/** The position of a line. */
	position(line: Line): number;
	/** Where to begin. */
	after: number;
	env: Record<string, string>;
	onLine(line: Line): void;
	/** Whether an exit is final. The follower then stops. */
	isFinal(code: number | null, stderr: string): boolean;
}

export class Follower<Line> {
	private child: ChildProcess | undefined;
	private after: number;
	private retryMs = FIRST_RETRY_MS;
	private timer: NodeJS.Timeout | undefined;
	private stopped = false;
	private readonly options: FollowerOptions<Line>;

	constructor(options: FollowerOptions<Line>) {
		this.options = options;
		this.after = options.after;
		this.start();
	}

	stop(): void {
		this.stopped = true;
		clearTimeout(this.timer);
		this.child?.kill();
	}

	private start(): void {
		const args = this.options.args(this.after);
		let stderr = "";
		let ended = false;
		const end = (code: number | null) => {
			if (ended || this.stopped) return;
			ended = true;
			if (this.options.isFinal(code, stderr)) this.stopped = true;
			else this.retry();
		};
		try {
			const env = { ...process.env, ...this.options.env };
			const child = spawn(program(), args, { stdio: ["ignore", "pipe", "pipe"], env });
			this.child = child;
			child.on("error", () => end(null));
			child.on("close", (code) => end(code));
			const lines = lineSplitter((line) => this.read(line));
			child.stdout.setEncoding("utf8").on("data", lines).on("error", () => {});
			const keep = (text: string) => (stderr = (stderr + text).slice(-MAX_STDERR));
			child.stderr.setEncoding("utf8").on("data", keep).on("error", () => {});
		} catch {
			end(null);
		}
	}

	private read(text: string): void {
		if (this.stopped) return;
		try {
			const line = JSON.parse(text) as Line;
			this.after = Math.max(this.after, this.options.position(line));
			this.retryMs = FIRST_RETRY_MS;
			this.options.onLine(line);
		} catch {
			// A line that cannot be read is left out. An exception would end Pi.
		}
	}

	private retry(): void {
		this.timer = setTimeout(() => this.start(), this.retryMs);
		this.timer.unref();
		this.retryMs = Math.min(this.retryMs * 2, LONGEST_RETRY_MS);
	}
}

/** Calls `onLine` for each complete line of the text that comes in pieces. */
export function lineSplitter(onLine: (line: string) => void): (text: string) => void {
	let rest = "";
	return (text) => {
		const lines = (rest + text).split("\n");
		rest = lines.pop() ?? "";
		for (const line of lines) if (line) onLine(line);
	};
}
