import type { Dialog, PaneItem, State } from "../src/api/schema.ts";

/** An agent with these fields, for tests. */
export function agent(pane: string, state: State, fields: Partial<PaneItem> = {}): PaneItem {
  return {
    identity: { target: "host", server: "default", session_name: "work", window_id: "@1", pane_id: pane },
    window_index: 0,
    window_name: "main",
    pane_index: 0,
    runtime_id: `r${pane}`,
    agent_type: "claude",
    name: null,
    state,
    reason_code: null,
    since: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
    needs_action: state.startsWith("waiting"),
    unseen: false,
    dialog: null,
    title: null,
    cwd: null,
    command: null,
    dead: null,
    ...fields,
  };
}

export function dialog(question: string, options: string[] = ["Yes", "No"]): Dialog {
  return {
    kind: "approval",
    question,
    options: options.map((label, at) => ({ n: at + 1, label })),
    fingerprint: `f-${question}`,
  };
}
