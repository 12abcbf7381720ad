// What the files of Pi and of this package set for a session.

import { join } from "node:path";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { DEFAULTS, type LoadedSettings, loadSettings, settingsFiles } from "./settings.ts";

/** What Pi itself would use to run commands. */
export interface PiShell {
	commandPrefix: string | undefined;
	shellPath: string | undefined;
}

export async function readSettings(ctx: ExtensionContext): Promise<LoadedSettings & { piShell: PiShell }> {
	try {
		// Loaded only now, so that a Pi without these functions still starts.
		const pi = await import("@earendil-works/pi-coding-agent");
		const projectTrusted = ctx.isProjectTrusted();
		const projectDir = projectTrusted ? join(ctx.cwd, pi.CONFIG_DIR_NAME) : undefined;
		const settings = pi.SettingsManager.create(ctx.cwd, pi.getAgentDir(), { projectTrusted });
		const piShell = { commandPrefix: settings.getShellCommandPrefix(), shellPath: settings.getShellPath() };
		return { ...loadSettings(settingsFiles(pi.getAgentDir(), projectDir)), piShell };
	} catch (error) {
		return { settings: DEFAULTS, problems: [String(error)], piShell: { commandPrefix: undefined, shellPath: undefined } };
	}
}
