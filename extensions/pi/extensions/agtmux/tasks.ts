// The tasks of a session, as `agtmux task list --json` prints them.

export interface Task {
	window_id: string;
	window_name: string;
	current_command: string | null;
	task_cwd: string | null;
	dead: boolean;
	exit_code: number | null;
	signal: string | null;
	output_preview: string;
}

export interface TaskList {
	exists: boolean;
	tasks: Task[];
}

/** The state of a task, in a word. */
export function status(task: Task): string {
	if (!task.dead) return "running";
	if (task.exit_code !== null) return `exit ${task.exit_code}`;
	return task.signal ?? "ended";
}

/** The text of the status line; `undefined` if there is no session. */
export function statusLine(list: TaskList): string | undefined {
	const count = list.tasks.length;
	return list.exists ? `tmux: ${count} ${count === 1 ? "task" : "tasks"}` : undefined;
}

/** Whether both are the same task: the name can be used again for another window. */
export function isSame(task: Task, other: Task | undefined): boolean {
	return task.window_id === other?.window_id && task.window_name === other.window_name;
}

/** Where a task is in a new list; if it has gone, the nearest position to where it was. */
export function indexOfTask(tasks: Task[], task: Task | undefined, before: number): number {
	const index = tasks.findIndex((one) => isSame(one, task));
	return index >= 0 ? index : Math.max(0, Math.min(before, tasks.length - 1));
}

/**
 * The text on one line, without the characters that change what the screen shows: control characters, line separators,
 * and characters without a width, such as those that reverse the direction of the text.
 */
export function clean(text: string): string {
	return text.replaceAll("\t", "    ").replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "\u{fffd}");
}
