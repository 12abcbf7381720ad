// The shared terminal of one Pi session: the tool bash runs its commands there, and what the user types there reaches the
// conversation. Off unless the user turns it on.

import type { BashOperations, ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { ACTIVITY_TYPE, type ActivityItem, activityMessage, followActivity, lastNumber } from "./activity.ts";
import type { Follower } from "./follower.ts";
import { type Ended, mirrorOperations } from "./mirror-exec.ts";
import { Outbox } from "./outbox.ts";
import type { PiShell } from "./pi-settings.ts";
import { agtmux, agtmuxJson } from "./program.ts";
import type { Settings } from "./settings.ts";

/** The key of our status in the footer. */
const STATUS = "agtmux-mirror";
const READ_TOOL = "read_terminal";
const DEFAULT_LINES = 200;

export const OUTSIDE_TMUX =
	"The shared terminal is off: Pi does not run in a pane of tmux, so commands run in the bash of Pi. Start Pi in tmux: tmux new-session -A -s main";

/** Whether the user has turned the terminal on or off in this process. Outlives /new and /reload. */
const CHOICE = Symbol.for("pi-agtmux.mirror");
const choices = globalThis as { [CHOICE]?: boolean };

interface MirrorItem {
	mirror_id: string;
	pane_id: string;
	shell: string;
	status: string;
	problem: string | null;
	running: { command: string | null } | null;
	/** The number of the last command that was started. */
	last_number: number;
}

export class Mirror {
	isOn = false;
	readonly outbox: Outbox;
	private alive = true;
	private mirrorId: string | undefined;
	private pane: string | undefined;
	private shell: string | undefined;
	private follower: Follower<ActivityItem> | undefined;
	/** Commands of the user that were reported, in all terminals of this session. */
	private reported = 0;
	private readonly pi: ExtensionAPI;
	private readonly ctx: ExtensionContext;
	private readonly settings: Settings["mirror"];
	private readonly piShell: PiShell;
	private readonly operations: BashOperations;

	constructor(pi: ExtensionAPI, ctx: ExtensionContext, settings: Settings["mirror"], piShell: PiShell, variables: () => Record<string, string>) {
		[this.pi, this.ctx, this.settings, this.piShell] = [pi, ctx, settings, piShell];
		this.outbox = new Outbox(
			{
				isIdle: () => this.alive && ctx.isIdle(),
				send: (message, triggerTurn) => pi.sendMessage(message, { triggerTurn, deliverAs: "followUp" }),
			},
			{ customType: ACTIVITY_TYPE, seq: 0, quietBefore: settings.activity === "turn" ? Date.now() : Infinity },
		);
		const onEnded = ({ mirror_id, pane_id }: Ended) => this.safely(() => this.use(mirror_id, pane_id, 0));
		this.operations = mirrorOperations({ timeout: settings.timeout, shell: this.wantedShell(), variables, onEnded });
	}

	/** Whether the terminal is to be on when the session starts. */
	static isWanted(settings: Settings["mirror"]): boolean {
		return choices[CHOICE] ?? settings.enabled;
	}

	stop(): void {
		this.safely(() => this.ctx.hasUI && this.ctx.ui.setStatus(STATUS, undefined));
		this.alive = false;
		this.follower?.stop();
		this.outbox.stop();
	}

	/**
	 * Opens the terminal, or uses the one that exists. Returns what to tell the user, and whether it worked. `isReload`: the
	 * terminal was on a moment ago. Otherwise what the user did there before is private.
	 */
	async turnOn(isReload = false): Promise<{ text: string; done: boolean }> {
		if (!process.env.TMUX || !process.env.TMUX_PANE) return { text: OUTSIDE_TMUX, done: false };
		const found = await this.open();
		if (!this.alive) return { text: "", done: false };
		if (typeof found === "string") return { text: `The shared terminal is off: ${found}`, done: false };
		const item = found;
		const pi = await import("@earendil-works/pi-coding-agent");
		if (!this.alive) return { text: "", done: false };
		this.isOn = true;
		this.shell = item.shell;
		choices[CHOICE] = true;
		this.registerTools(pi);
		const told = isReload ? lastNumber(this.ctx.sessionManager.getEntries(), item.mirror_id) : undefined;
		this.use(item.mirror_id, item.pane_id, told ?? item.last_number);
		return { text: `Commands of the agent run in pane ${item.pane_id} (${item.shell}). What you run there is shown to the agent.`, done: true };
	}

	/** The terminal that the user has named, or one beside Pi. The reason if there is none. */
	private async open(): Promise<MirrorItem | string> {
		const named = process.env.TMUX_MIRROR_TARGET;
		if (named) {
			const item = (await this.terminals()).find((one) => one.pane_id === named);
			return item ?? `TMUX_MIRROR_TARGET names pane ${named}, which is not shared. In a shell of yours: agtmux mirror start --pane ${named}`;
		}
		const shell = this.wantedShell();
		const { code, stdout, stderr, missing } = await agtmux(
			["mirror", "start", "--json", "--cwd", this.ctx.cwd, ...(shell ? ["--shell", shell] : [])],
		);
		if (missing) return "the program agtmux is not on PATH";
		return (code === 0 ? parsed<MirrorItem>(stdout) : undefined) ?? (stderr.trim() || "agtmux gave no answer");
	}

	private async terminals(): Promise<MirrorItem[]> {
		return (await agtmuxJson<{ items: MirrorItem[] }>(["mirror", "status"]))?.items ?? [];
	}

	async turnOff(): Promise<string> {
		choices[CHOICE] = false;
		if (!this.isOn) return "The shared terminal is off.";
		this.isOn = false;
		this.follower?.stop();
		this.follower = undefined;
		const pane = this.pane;
		this.mirrorId = this.pane = undefined;
		this.ctx.ui.setStatus(STATUS, undefined);
		const pi = await import("@earendil-works/pi-coding-agent");
		if (this.alive) this.registerTools(pi);
		return `Commands of the agent run in the bash of Pi again. Pane ${pane} stays open; to close it: agtmux mirror stop`;
	}

	async describe(): Promise<string> {
		if (!this.isOn) return process.env.TMUX_PANE ? "The shared terminal is off. To turn it on: /mirror on" : OUTSIDE_TMUX;
		const item = (await this.terminals()).find((one) => one.mirror_id === this.mirrorId);
		if (!item || item.status === "closed") return "The shared terminal is on. Its pane is closed; the next command opens a new one.";
		const what = item.problem ?? (item.running ? `runs ${item.running.command ?? "a command"}` : item.status);
		return `The shared terminal is on: pane ${item.pane_id}, ${item.shell}, ${what}`;
	}

	private wantedShell(): string | undefined {
		return this.settings.shell || this.piShell.shellPath || undefined;
	}

	/** Makes the tool bash run commands in the terminal, or in the bash of Pi if the terminal is off. */
	private registerTools(pi: typeof import("@earendil-works/pi-coding-agent")): void {
		const { commandPrefix, shellPath } = this.piShell;
		if (!this.isOn) {
			this.pi.registerTool(pi.createBashToolDefinition(this.ctx.cwd, { commandPrefix, shellPath }));
			this.pi.setActiveTools(this.pi.getActiveTools().filter((name) => name !== READ_TOOL));
			return;
		}
		const bash = pi.createBashToolDefinition(this.ctx.cwd, { operations: this.operations, commandPrefix });
		const note = `Commands run in a ${this.shell} that the user sees and uses as well; directories and variables stay. Timeout: ${this.settings.timeout} seconds, if none is given.`;
		// The commands of one message would meet in one shell.
		this.pi.registerTool({ ...bash, description: `${bash.description} ${note}`, executionMode: "sequential" });
		this.pi.registerTool({
			name: READ_TOOL,
			label: READ_TOOL,
			description: "Reads the last lines of the terminal that you share with the user.",
			promptSnippet: "Read the last lines of the terminal shared with the user",
			parameters: {
				type: "object",
				properties: { lines: { type: "integer", minimum: 1, description: `How many lines (default ${DEFAULT_LINES})` } },
				additionalProperties: false,
			},
			execute: async (_id, params) => {
				const lines = (params as { lines?: number }).lines ?? DEFAULT_LINES;
				const target = this.pane ? ["--pane", this.pane] : [];
				const { code, stdout, stderr } = await agtmux(["mirror", "read", "--lines", String(lines), ...target]);
				if (code !== 0) throw new Error(stderr.trim() || "agtmux gave no answer");
				return { content: [{ type: "text", text: stdout }], details: undefined };
			},
		});
		const active = this.pi.getActiveTools();
		if (!active.includes(READ_TOOL)) this.pi.setActiveTools([...active, READ_TOOL]);
	}

	/** Follows what the user does in this terminal, after the command with this number. */
	private use(mirrorId: string, pane: string, after: number): void {
		if (!this.isOn || mirrorId === this.mirrorId) return;
		this.mirrorId = mirrorId;
		this.pane = pane;
		this.ctx.ui.setStatus(STATUS, `shared terminal: ${pane}`);
		this.follower?.stop();
		this.follower = undefined;
		if (this.settings.activity === "off") return;
		this.follower = followActivity(pane, after, (item) => this.safely(() => this.report(item, mirrorId)));
	}

	private report(item: ActivityItem, mirrorId: string): void {
		this.reported += 1;
		this.outbox.add(activityMessage(item, mirrorId, this.ctx.sessionManager.getSessionId(), this.reported));
	}

	/** Runs a callback. An exception in it would end Pi, and the context of an ended session throws. */
	private safely(action: () => unknown): void {
		try {
			if (this.alive) action();
		} catch {}
	}
}

function parsed<T>(text: string): T | undefined {
	try {
		return JSON.parse(text) as T;
	} catch {
		return undefined;
	}
}
