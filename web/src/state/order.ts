// Orders and groups of agents, the same as in the terminal interface.
import type { PaneItem, State } from "../api/schema.ts";

export const states: readonly State[] = [
  "waiting_approval",
  "waiting_input",
  "error",
  "running",
  "completed",
  "idle",
  "unknown",
];

export const stateNames: Record<State, string> = {
  waiting_approval: "Waiting for approval",
  waiting_input: "Waiting for an answer",
  error: "Failed",
  running: "Running",
  completed: "Completed",
  idle: "Idle",
  unknown: "Unknown",
};

function attentionRank(item: PaneItem): number {
  if (item.state === "waiting_approval" || item.state === "waiting_input") return 0;
  if (item.state === "error") return 1;
  if (item.unseen) return 2;
  if (item.state === "running") return 3;
  return item.state === "unknown" ? 5 : 4;
}

const place = ({ identity: { target, server, session_name, window_id, pane_id } }: PaneItem) =>
  [target, server, session_name, window_id, pane_id].join("\n");

/** The order in which a person should look at agents. */
export function byAttention(a: PaneItem, b: PaneItem): number {
  const rank = attentionRank(a) - attentionRank(b);
  if (rank !== 0) return rank;
  const since = (a.since ?? "").localeCompare(b.since ?? "");
  return since !== 0 ? since : place(a).localeCompare(place(b), undefined, { numeric: true });
}

export type Grouping = "state" | "session" | "host" | "type";

export const groupings: readonly Grouping[] = ["state", "session", "host", "type"];

export function groupOf(item: PaneItem, grouping: Grouping): string {
  switch (grouping) {
    case "state":
      return stateNames[item.state ?? "unknown"];
    case "session":
      return item.identity.target === "host"
        ? item.identity.session_name
        : `${item.identity.target} · ${item.identity.session_name}`;
    case "host":
      return item.identity.target === "host" ? "This machine" : item.identity.target;
    case "type":
      return item.agent_type ?? "other";
  }
}

export interface AgentGroup {
  name: string;
  items: PaneItem[];
}

/** Groups agents. The groups keep the order of their first agents; other groupings than by state are sorted by name. */
export function grouped(items: PaneItem[], grouping: Grouping): AgentGroup[] {
  const groups = new Map<string, PaneItem[]>();
  for (const item of items) {
    const name = groupOf(item, grouping);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  const list = [...groups].map(([name, members]) => ({ name, items: members }));
  if (grouping !== "state")
    return list.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const rank = (group: AgentGroup) => states.indexOf(group.items[0]?.state ?? "unknown");
  return list.sort((a, b) => rank(a) - rank(b));
}

/** Whether every word of the filter occurs in a text of the agent. */
export function matches(item: PaneItem, filter: string): boolean {
  const { target, session_name, pane_id } = item.identity;
  const texts = [
    item.name,
    item.agent_type,
    item.window_name,
    item.title,
    item.cwd,
    target,
    session_name,
    pane_id,
  ];
  texts.push(stateNames[item.state ?? "unknown"], item.dialog?.question ?? null);
  const all = texts.join("\n").toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}
