// What is put before shell commands, and what the helper prints.

/** The variables that say which session tasks belong to. */
export interface TaskVariables {
	PI_TMUX_SESSION: string;
	/** The process that the tasks belong to: this Pi. */
	AGTMUX_OWNER: string;
	AGTMUX_PROJECT: string;
}

export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The command, with a line before it that sets the variables. Its own line, so that no comment or heredoc swallows it. */
export function withVariables(command: string, variables: TaskVariables): string {
	const words = Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)}`);
	return `export ${words.join(" ")}\n${command}`;
}

/** Whether this output of a command says that a task of this session was started. */
export function startedTask(output: string, sessionName: string): boolean {
	const lines = new Set(output.split("\n").map((line) => line.trimEnd()));
	return lines.has(`session=${sessionName}`) && [...lines].some((line) => /^window_id=@\d+$/.test(line));
}
