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
