import assert from "node:assert/strict";
import { test } from "node:test";
import type { PaneItem, WatchEvent } from "../src/api/schema.ts";
import { nextCards } from "../src/pages/inbox.tsx";
import { agents, applyEvents, content, replaceContent, waiting } from "../src/state/fleet.ts";
import { byAttention, grouped, matches } from "../src/state/order.ts";
import { agent, dialog } from "./items.ts";

const event = (type: WatchEvent["type"], item: PaneItem): WatchEvent => ({
  schema_version: 2,
  seq: 1,
  at: "2026-01-01T00:00:00Z",
  type,
  scope: "panes",
  item,
});

const panes = () => agents.value.map((item) => item.identity.pane_id);

test("a pane that several sessions show is one agent until the last of them is gone", () => {
  replaceContent({ panes: [], targets: [], errors: [] });
  const one = agent("%1", "running");
  const other = { ...one, identity: { ...one.identity, session_name: "beside" } };
  applyEvents([event("snapshot", one), event("upsert", other)]);
  assert.deepEqual(panes(), ["%1"]);
  assert.equal(content().panes.length, 2);
  applyEvents([event("remove", other)]);
  assert.deepEqual(panes(), ["%1"]);
  applyEvents([event("remove", one)]);
  assert.deepEqual(panes(), []);
});

test("a pane whose agent has ended is no agent", () => {
  replaceContent({ panes: [agent("%1", "idle"), agent("%2", "waiting_input")], targets: [], errors: [] });
  applyEvents([event("upsert", { ...agent("%1", "idle"), state: null, runtime_id: null })]);
  assert.deepEqual(panes(), ["%2"]);
  assert.equal(waiting.value.length, 1);
  applyEvents([{ ...event("reset", agent("%1", "idle")), item: null }]);
  assert.deepEqual(panes(), []);
});

test("agents that wait longest come first, then failed, unseen, running, idle and unknown ones", () => {
  const items = [
    agent("%1", "unknown"),
    agent("%2", "idle"),
    agent("%3", "running"),
    agent("%4", "idle", { unseen: true }),
    agent("%5", "error"),
    agent("%6", "waiting_input", { since: "2026-01-01T00:00:09Z" }),
    agent("%7", "waiting_approval", { since: "2026-01-01T00:00:01Z" }),
    agent("%10", "running"),
  ];
  const order = items.sort(byAttention).map((item) => item.identity.pane_id);
  assert.deepEqual(order, ["%7", "%6", "%5", "%4", "%3", "%10", "%2", "%1"]);
});

test("groups by state are in the order of attention, other groups by name", () => {
  const items = [
    agent("%1", "waiting_input"),
    agent("%2", "idle", { agent_type: "codex" }),
    agent("%3", "idle"),
  ];
  assert.deepEqual(
    grouped(items, "state").map((group) => [group.name, group.items.length]),
    [
      ["Waiting for an answer", 1],
      ["Idle", 2],
    ],
  );
  assert.deepEqual(
    grouped(items, "type").map((group) => group.name),
    ["claude", "codex"],
  );
});

test("every word of a filter must match", () => {
  const item = agent("%12", "idle", { name: "api-fix", cwd: "/home/me/shop" });
  assert.ok(matches(item, "") && matches(item, "API shop") && matches(item, "%12 idle"));
  assert.ok(!matches(item, "api blog"));
});

test("an answered card keeps its place, so that the next card does not move under a finger", () => {
  const [one, two] = ["%1", "%2"].map((pane) => agent(pane, "waiting_approval", { dialog: dialog(pane) }));
  assert.ok(one && two);
  const both = nextCards([], [one, two]);
  const after = nextCards(both, [two]);
  assert.deepEqual(
    after.map((card) => [card.item.identity.pane_id, card.answered]),
    [
      ["%1", true],
      ["%2", false],
    ],
  );
  const again = nextCards(after, [two, one]);
  assert.deepEqual(
    again.map((card) => [card.item.identity.pane_id, card.answered]),
    [
      ["%1", false],
      ["%2", false],
    ],
  );
});
