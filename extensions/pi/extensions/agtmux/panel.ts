// The panel of `/tmux-tasks`: the tasks of the session, with a preview of their output in wide terminals.

import type { ExtensionCommandContext, Theme } from "@earendil-works/pi-coding-agent";
import { type TUI, truncateToWidth, visibleWidth } from "@earendil-works/pi-tui";
import { agtmux } from "./program.ts";
import type { TaskSession } from "./session.ts";
import { type Task, type TaskList, clean, indexOfTask, isSame, status } from "./tasks.ts";

/** From this width on, the output of the selected task is shown beside the list. */
const WIDE = 100;
/** Rows of the screen that the panel leaves to Pi. */
const OTHER_ROWS = 10;

type View = "list" | "details" | "kill";

/** What the panel needs of Pi's keys. The versions of Pi declare them in different packages. */
interface PanelKeys {
	matches(data: string, key: `tui.select.${"up" | "down" | "confirm" | "cancel"}`): boolean;
}

export function showPanel(session: TaskSession, ctx: ExtensionCommandContext): Promise<void> {
	return ctx.ui.custom<void>(
		(tui, theme, keys: unknown, done) => new TaskPanel(session, tui, theme, keys as PanelKeys, () => done()),
	);
}

class TaskPanel {
	private tasks: Task[] | undefined;
	private selected = 0;
	private view: View = "list";
	/** The task that the user is asked about. The list may change before the user answers. */
	private asked: Task | undefined;
	private message = "";
	private readonly session: TaskSession;
	private readonly tui: TUI;
	private readonly theme: Theme;
	private readonly keys: PanelKeys;
	private readonly close: () => void;
	private readonly unwatch: () => void;

	constructor(session: TaskSession, tui: TUI, theme: Theme, keys: PanelKeys, close: () => void) {
		[this.session, this.tui, this.theme, this.keys, this.close] = [session, tui, theme, keys, close];
		this.unwatch = session.watch((list) => this.show(list));
		session.refresh();
	}

	// An exception in `render` or `handleInput` would end Pi.

	render(width: number): string[] {
		try {
			const rows = Math.max(3, this.tui.terminal.rows - OTHER_ROWS);
			const lines = [this.heading(), ...this.body(width, rows - 2), this.theme.fg("dim", this.hint())];
			return lines.map((line) => truncateToWidth(line, width));
		} catch {
			return [];
		}
	}

	handleInput(data: string): void {
		try {
			this.onKey(data);
			this.tui.requestRender();
		} catch {}
	}

	invalidate(): void {}

	dispose(): void {
		this.unwatch();
	}

	private show(list: TaskList): void {
		this.selected = indexOfTask(list.tasks, this.task(), this.selected);
		this.tasks = list.tasks;
		if (this.view === "kill" && !list.tasks.some((task) => isSame(task, this.asked))) {
			this.setView("list");
			this.message = `${clean(this.asked?.window_name ?? "The task")} is no longer in the list.`;
		}
		this.tui.requestRender();
	}

	private onKey(data: string): void {
		const is = (key: "up" | "down" | "confirm" | "cancel") => this.keys.matches(data, `tui.select.${key}`);
		this.message = "";
		if (this.view === "kill") {
			const asked = this.asked;
			this.setView("list");
			if (asked && (data === "y" || data === "Y")) void this.kill(asked);
			return;
		}
		if (is("cancel")) return this.view === "list" ? this.close() : this.setView("list");
		if (data === "r") return this.session.refresh();
		if (data === "k" && this.task()) {
			this.asked = this.task();
			return this.setView("kill");
		}
		if (is("confirm") && this.task()) return this.setView(this.view === "list" ? "details" : "list");
		const step = is("down") || data === "j" ? 1 : is("up") ? -1 : 0;
		this.selected = Math.max(0, Math.min(this.selected + step, (this.tasks?.length ?? 0) - 1));
	}

	private setView(view: View): void {
		this.view = view;
	}

	private task(): Task | undefined {
		return this.tasks?.[this.selected];
	}

	/** Closes the window of the task. agtmux reports that the user did it. */
	private async kill(task: Task): Promise<void> {
		const args = ["task", "stop", task.window_id, "--window", "--by-user", "--session", this.session.name ?? ""];
		const { code, stderr } = await agtmux(args);
		this.message = clean(code === 0 ? `Killed ${task.window_name}.` : stderr.trim().split("\n")[0]);
		this.session.refresh();
		this.tui.requestRender();
	}

	private heading(): string {
		return this.theme.bold(`Tasks of ${this.session.name ?? "this session"}`);
	}

	private hint(): string {
		if (this.view === "kill") return `Kill ${clean(this.asked?.window_name ?? "")}? y kills it, any other key does not`;
		if (this.message) return this.message;
		return this.view === "list" ? "↑↓ select · Enter details · r refresh · k kill · Esc close" : "k kill · Esc back";
	}

	private body(width: number, rows: number): string[] {
		if (!this.tasks) return ["Loading…"];
		const task = this.task();
		if (!task) return ["This session has no tasks."];
		if (this.view === "details") return this.details(task, rows);
		const table = page(this.tasks.map((one, index) => this.row(one, index)), this.selected, rows);
		if (width < WIDE) return table;
		const left = Math.floor(width / 2);
		const preview = previewLines(task).slice(-Math.max(rows, 1));
		const height = Math.max(table.length, preview.length);
		return Array.from({ length: height }, (_, index) => {
			const cell = truncateToWidth(table[index] ?? "", left - 2);
			const gap = " ".repeat(Math.max(0, left - 2 - visibleWidth(cell)));
			return `${cell}${gap}│ ${preview[index] ?? ""}`;
		});
	}

	private row(task: Task, index: number): string {
		const isSelected = index === this.selected;
		const name = clean(task.window_name).padEnd(16);
		const text = `${isSelected ? "→" : " "} ${task.window_id.padEnd(5)} ${name} ${status(task).padEnd(9)} ${clean(task.current_command ?? "")}`;
		return isSelected ? this.theme.fg("accent", text) : text;
	}

	private details(task: Task, rows: number): string[] {
		const fields = [
			`${task.window_id} ${clean(task.window_name)}: ${status(task)}`,
			`command: ${clean(task.current_command ?? "")}`,
			`directory: ${clean(task.task_cwd ?? "")}`,
		];
		return [...fields, ...previewLines(task).slice(-Math.max(rows - fields.length, 1))];
	}
}

/** The part of the lines that contains the selected one. */
function page(lines: string[], selected: number, rows: number): string[] {
	const size = Math.max(rows, 1);
	const start = Math.max(0, Math.min(selected - Math.floor(size / 2), lines.length - size));
	return lines.slice(start, start + size);
}

const previewLines = (task: Task): string[] => task.output_preview.trimEnd().split("\n").map(clean);
