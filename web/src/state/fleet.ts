// A copy of the daemon's items, kept up to date by the event stream.
import { computed, signal } from "@preact/signals";
import type { PaneIdentity, PaneItem, TargetError, TargetStatus, WatchEvent } from "../api/schema.ts";
import { byAttention } from "./order.ts";

const placements = new Map<string, PaneItem>();
const targetsByName = new Map<string, TargetStatus>();
const revision = signal(0);

export const targetErrors = signal<TargetError[]>([]);
/** Changes with every task event. */
export const taskRevision = signal(0);

/** Everything that a tab needs in order to show the fleet. */
export interface FleetContent {
  panes: PaneItem[];
  targets: TargetStatus[];
  errors: TargetError[];
}

export const paneKey = (identity: PaneIdentity) =>
  `${identity.target}\n${identity.server}\n${identity.pane_id}`;

const placementKey = (identity: PaneIdentity) =>
  `${paneKey(identity)}\n${identity.session_name}\n${identity.window_id}`;

/** The agents, the most urgent first. A pane in several sessions counts once. */
export const agents = computed<PaneItem[]>(() => {
  revision.value;
  const panes = new Map<string, PaneItem>();
  for (const item of placements.values()) {
    if (item.state) panes.set(paneKey(item.identity), item);
  }
  return [...panes.values()].sort(byAttention);
});

/** The agents that wait for a person, the longest wait first. */
export const waiting = computed(() => agents.value.filter((item) => item.needs_action));

export const targets = computed<TargetStatus[]>(() => {
  revision.value;
  return [...targetsByName.values()];
});

/** The agent with this runtime id. */
export function agentOf(runtimeId: string): PaneItem | undefined {
  return agents.value.find((item) => item.runtime_id === runtimeId);
}

export function content(): FleetContent {
  return {
    panes: [...placements.values()],
    targets: [...targetsByName.values()],
    errors: targetErrors.value,
  };
}

export function replaceContent(all: FleetContent): void {
  placements.clear();
  targetsByName.clear();
  for (const item of all.panes) placements.set(placementKey(item.identity), item);
  for (const target of all.targets) targetsByName.set(target.name, target);
  targetErrors.value = all.errors;
  revision.value += 1;
}

export function applyEvents(events: WatchEvent[]): void {
  let changed = false;
  for (const event of events) changed = applyEvent(event) || changed;
  if (changed) revision.value += 1;
}

function applyEvent(event: WatchEvent): boolean {
  switch (event.type) {
    case "reset":
      placements.clear();
      targetsByName.clear();
      targetErrors.value = [];
      return true;
    case "target_errors":
      targetErrors.value = event.target_errors ?? [];
      return false;
    case "task":
      taskRevision.value += 1;
      return false;
    default:
      return applyItem(event);
  }
}

function applyItem({ type, scope, item }: WatchEvent): boolean {
  if (scope === "panes") {
    const pane = item as PaneItem;
    if (type === "remove") return placements.delete(placementKey(pane.identity));
    placements.set(placementKey(pane.identity), pane);
    return true;
  }
  if (scope === "targets") {
    const target = item as TargetStatus;
    if (type === "remove") return targetsByName.delete(target.name);
    targetsByName.set(target.name, target);
    return true;
  }
  return false;
}
