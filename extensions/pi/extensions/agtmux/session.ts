// The tasks of one Pi session, from session_start to session_shutdown.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Follower } from "./follower.ts";
import { type EventLine, deliveredSeq } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { addToPath, agtmux, agtmuxJson } from "./program.ts";
import { type TaskVariables, startedTask } from "./shell.ts";
import { type TaskList, statusLine } from "./tasks.ts";

/** The key of our status in the footer. */
const STATUS = "agtmux-tasks";
/** Notices that come within this time are joined: of several in a row Pi shows only the last one. */
const NOTICE_MS = 300;
/** Changes within this time cause one look at the tasks. */
const REFRESH_MS = 100;

const INSTALL = "Install agtmux (https://github.com/agtmux/agtmux), then run /reload in Pi.";
export const MISSING = `Background tasks are off: the program agtmux is not on PATH. ${INSTALL}`;
export const TOO_OLD = `Background tasks are off: agtmux is too old for pi-agtmux. ${INSTALL}`;

export class TaskSession {
	readonly outbox: Outbox;
	/** Resolves when the variables are known; to `undefined` without agtmux. */
	readonly ready: Promise<TaskVariables | undefined>;
	name: string | undefined;
	private alive = true;
	private follower: Follower | undefined;
	private notices: string[] = [];
	private readonly watchers = new Set<(list: TaskList) => void>();
	private readonly timers = new Map<string, NodeJS.Timeout>();
	private readonly startedAt = Date.now();
	private readonly pi: ExtensionAPI;
	private readonly ctx: ExtensionContext;

	constructor(pi: ExtensionAPI, ctx: ExtensionContext) {
		this.pi = pi;
		this.ctx = ctx;
		const isIdle = () => this.alive && ctx.isIdle();
		this.outbox = new Outbox(
			{
				isIdle,
				send: (message, triggerTurn) => this.pi.sendMessage(message, { triggerTurn, deliverAs: "followUp" }),
			},
			0,
		);
		this.ready = this.start().catch(() => undefined);
	}

	/** Stops following and clears the status. Tasks go on. */
	stop(): void {
		this.safely(() => this.ctx.hasUI && this.ctx.ui.setStatus(STATUS, undefined));
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
		if (hasUI) this.follow(this.name, id);
		return variables;
	}

	private follow(sessionName: string, sessionId: string): void {
		const after = deliveredSeq(this.ctx.sessionManager.getEntries(), sessionName);
		const onLine = (line: EventLine) => this.safely(() => this.onLine(line));
		const onTooOld = () => this.safely(() => this.warn(TOO_OLD));
		this.follower = new Follower({ sessionName, sessionId, after, onLine, onTooOld });
		this.refresh();
		void this.cleanUp(sessionName);
	}

	/** Removes ended sessions of this project, and tells the user about those that still run. */
	private async cleanUp(sessionName: string): Promise<void> {
		const args = ["task", "startup", "--session", sessionName, "--project", this.ctx.cwd];
		const report = await agtmuxJson<{ notices?: string[] }>(args, { env: { AGTMUX_OWNER: String(process.pid) } });
		this.safely(() => {
			if (report?.notices?.length) this.notice(report.notices.join("\n"));
		});
	}

	private onLine({ at, notice, message }: EventLine): void {
		if (!this.alive) return;
		if (message) this.outbox.add(message);
		// What happened before this session began is no news.
		if (notice && Date.parse(at) >= this.startedAt) this.notice(notice);
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
		this.soon("warning", NOTICE_MS, () => this.ctx.hasUI && this.ctx.ui.notify(text, "warning"));
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
