// The tasks and the shared terminal of one Pi session, from session_start to session_shutdown.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Follower, USAGE_EXIT_CODE } from "./follower.ts";
import { CUSTOM_TYPE, type EventLine, deliveredSeq } from "./messages.ts";
import { Mirror } from "./mirror.ts";
import { Outbox } from "./outbox.ts";
import { readSettings } from "./pi-settings.ts";
import { addToPath, agtmux, agtmuxJson } from "./program.ts";
import { DEFAULTS, type Settings } from "./settings.ts";
import { type TaskVariables, startedTask } from "./shell.ts";
import { type TaskList, statusLine } from "./tasks.ts";

/** The key of our status in the footer. */
const STATUS = "agtmux-tasks";
/** Notices that come within this time are joined: of several in a row Pi shows only the last one. */
const NOTICE_MS = 300;
/** How long a prompt may wait for the shared terminal. */
const MIRROR_MS = 5000;
/** Changes within this time cause one look at the tasks. */
const REFRESH_MS = 100;

const EVENTS = ["task", "events", "--follow", "--conversation", "--json"];

const INSTALL = "Install agtmux (https://github.com/agtmux/agtmux), then run /reload in Pi.";
export const MISSING = `Background tasks are off: the program agtmux is not on PATH. ${INSTALL}`;
export const TOO_OLD = `Background tasks are off: agtmux is too old for pi-agtmux. ${INSTALL}`;

export class TaskSession {
	readonly outbox: Outbox;
	/** Resolves when the variables are known; to `undefined` without agtmux. */
	readonly ready: Promise<TaskVariables | undefined>;
	name: string | undefined;
	mirror: Mirror | undefined;
	/** Resolves when the shared terminal is on, if it is to be on from the start. */
	readonly mirrorReady: Promise<unknown>;
	private readonly loaded: ReturnType<typeof readSettings>;
	private settings: Settings = DEFAULTS;
	private alive = true;
	private follower: Follower<EventLine> | undefined;
	private notices: string[] = [];
	private warnings: string[] = [];
	private readonly watchers = new Set<(list: TaskList) => void>();
	private readonly timers = new Map<string, NodeJS.Timeout>();
	private readonly startedAt = Date.now();
	private readonly pi: ExtensionAPI;
	private readonly ctx: ExtensionContext;
	/** Why the session began. */
	private readonly reason: string;

	constructor(pi: ExtensionAPI, ctx: ExtensionContext, reason: string) {
		this.pi = pi;
		this.ctx = ctx;
		this.reason = reason;
		const isIdle = () => this.alive && ctx.isIdle();
		this.outbox = new Outbox(
			{
				isIdle,
				send: (message, triggerTurn) => this.pi.sendMessage(message, { triggerTurn, deliverAs: "followUp" }),
			},
			{ customType: CUSTOM_TYPE, seq: 0 },
		);
		this.loaded = readSettings(ctx);
		this.ready = this.start().catch(() => undefined);
		this.mirrorReady = this.ready.then(() => this.startMirror()).catch(() => undefined);
	}

	/** Waits for the shared terminal if it is to be on from the start, but not for an agtmux that does not answer. */
	async waitForMirror(): Promise<void> {
		const { settings } = await this.loaded;
		if (!Mirror.isWanted(settings.mirror)) return;
		const late = new Promise((resolve) => setTimeout(resolve, MIRROR_MS).unref());
		await Promise.race([this.mirrorReady, late]);
	}

	/** Calls this function with the outbox of each kind of messages. */
	eachOutbox(action: (outbox: Outbox) => void): void {
		for (const outbox of [this.outbox, this.mirror?.outbox]) if (outbox) action(outbox);
	}

	/** Stops following and clears the status. Tasks go on. */
	stop(): void {
		this.safely(() => this.ctx.hasUI && this.ctx.ui.setStatus(STATUS, undefined));
		this.mirror?.stop();
		this.alive = false;
		this.outbox.stop();
		this.follower?.stop();
		for (const timer of this.timers.values()) clearTimeout(timer);
	}

	/** Looks at the tasks again soon. */
	refresh(): void {
		if (this.name && this.ctx.hasUI) this.soon("refresh", REFRESH_MS, () => void this.showCount());
	}

	/** Shows this text to the user, together with others of the same moment. */
	notice(text: string): void {
		if (!this.alive || !this.ctx.hasUI) return;
		this.notices.push(text);
		this.soon("notice", NOTICE_MS, () => {
			const text = this.notices.join("\n");
			this.notices = [];
			this.ctx.ui.notify(text, "info");
		});
	}

	onToolOutput(output: string): void {
		if (this.name && startedTask(output, this.name)) this.refresh();
	}

	/** Calls this function with the tasks each time they are looked at. Returns how to end that. */
	watch(watcher: (list: TaskList) => void): () => void {
		this.watchers.add(watcher);
		return () => this.watchers.delete(watcher);
	}

	list(): Promise<TaskList | undefined> {
		return agtmuxJson<TaskList>(["task", "list", "--session", this.name ?? ""]);
	}

	/** The variables for a child process that acts for this session. */
	variables(): TaskVariables {
		return { PI_TMUX_SESSION: this.name ?? "", AGTMUX_OWNER: String(process.pid), AGTMUX_PROJECT: this.ctx.cwd };
	}

	private async start(): Promise<TaskVariables | undefined> {
		const { cwd, sessionManager, hasUI } = this.ctx;
		const id = sessionManager.getSessionId();
		const { settings, problems, piShell } = await this.loaded;
		if (!this.alive) return undefined;
		this.settings = settings;
		if (problems.length > 0) this.warn(problems.join("\n"));
		const { code, stdout, missing } = await agtmux(["task", "session-name", cwd, id]);
		if (!this.alive) return undefined;
		if (code !== 0) {
			this.warn(missing ? MISSING : TOO_OLD);
			return undefined;
		}
		this.name = stdout.trim();
		const variables = this.variables();
		Object.assign(process.env, variables);
		addToPath();
		// In print and JSON mode no message can be delivered.
		if (!hasUI) return variables;
		this.follow(this.name, id);
		this.mirror = new Mirror(this.pi, this.ctx, settings.mirror, piShell, () => ({ ...this.variables() }));
		return variables;
	}

	private async startMirror(): Promise<void> {
		if (!this.mirror || !Mirror.isWanted(this.settings.mirror)) return;
		const isReload = this.reason === "reload";
		const { text, done } = await this.mirror.turnOn(isReload);
		// After /reload the user knows it, and Pi shows only the last notice.
		const isKnown = done && isReload;
		this.safely(() => !isKnown && (done ? this.notice(text) : this.warn(text)));
	}

	private follow(sessionName: string, sessionId: string): void {
		const after = deliveredSeq(this.ctx.sessionManager.getEntries(), sessionName);
		this.follower = new Follower<EventLine>({
			args: (after) => [...EVENTS, "--session", sessionName, "--after", String(after)],
			position: (line) => line.seq,
			after,
			env: { PI_SESSION_ID: sessionId },
			onLine: (line) => this.safely(() => this.onLine(line)),
			isFinal: (code, stderr) => {
				const isTooOld = code === USAGE_EXIT_CODE && stderr.includes("--conversation");
				if (isTooOld) this.safely(() => this.warn(TOO_OLD));
				return isTooOld;
			},
		});
		this.refresh();
		void this.cleanUp(sessionName);
	}

	/** Removes ended sessions of this project, and tells the user about those that still run. */
	private async cleanUp(sessionName: string): Promise<void> {
		const args = ["task", "startup", "--session", sessionName, "--project", this.ctx.cwd];
		const report = await agtmuxJson<{ notices?: string[] }>(args, { env: { AGTMUX_OWNER: String(process.pid) } });
		this.safely(() => {
			if (report?.notices?.length && this.settings.tasks.notices) this.notice(report.notices.join("\n"));
		});
	}

	private onLine({ at, notice, message }: EventLine): void {
		if (!this.alive) return;
		if (message) this.outbox.add(message);
		// What happened before this session began is no news.
		if (notice && this.settings.tasks.notices && Date.parse(at) >= this.startedAt) this.notice(notice);
		this.refresh();
	}

	private async showCount(): Promise<void> {
		const list = await this.list();
		this.safely(() => {
			if (!list) return;
			this.ctx.ui.setStatus(STATUS, statusLine(list));
			for (const watcher of this.watchers) watcher(list);
		});
	}

	private warn(text: string): void {
		this.warnings.push(text);
		this.soon("warning", NOTICE_MS, () => {
			const text = this.warnings.join("\n");
			this.warnings = [];
			if (this.ctx.hasUI) this.ctx.ui.notify(text, "warning");
		});
	}

	private soon(name: string, ms: number, action: () => unknown): void {
		clearTimeout(this.timers.get(name));
		const timer = setTimeout(() => this.safely(action), ms);
		timer.unref();
		this.timers.set(name, timer);
	}

	/** Runs a callback. An exception in it would end Pi, and the context of an ended session throws. */
	private safely(action: () => unknown): void {
		try {
			if (this.alive) action();
		} catch {}
	}
}
