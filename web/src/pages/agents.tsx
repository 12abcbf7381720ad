// All agents, grouped and filtered.
import { signal } from "@preact/signals";
import { memo } from "preact/compat";
import type { PaneItem } from "../api/schema.ts";
import { Age, agentName, Empty, PageHead, Place, StateMark, StateName } from "../parts/basics.tsx";
import { Icon } from "../parts/icons.tsx";
import { agents, paneKey } from "../state/fleet.ts";
import { type Grouping, grouped, groupings, matches } from "../state/order.ts";
import { link } from "../state/route.ts";
import { count, oneLine } from "../text.ts";

const filter = signal("");
const grouping = signal<Grouping>("state");

const groupingNames: Record<Grouping, string> = {
  state: "State",
  session: "Session",
  host: "Host",
  type: "Type",
};

export function AgentsPage() {
  // Tasks have a page of their own.
  const all = agents.value.filter((item) => item.agent_type !== "task");
  const shown = all.filter((item) => matches(item, filter.value));
  return (
    <>
      <PageHead title="Agents">
        <span class="head-count">{count(shown.length, "agent")}</span>
      </PageHead>
      <div class="toolbar">
        <label class="search">
          <Icon name="search" />
          <input
            type="search"
            placeholder="Filter"
            aria-label="Filter agents"
            value={filter.value}
            onInput={(event) => (filter.value = event.currentTarget.value)}
          />
        </label>
        <GroupingChoice />
      </div>
      {grouped(shown, grouping.value).map((group) => (
        <section key={group.name} class="group">
          <h2>
            <bdi>{oneLine(group.name)}</bdi> <span class="group-count">{group.items.length}</span>
          </h2>
          <ul class="rows">
            {group.items.map((item) => (
              <AgentRow key={paneKey(item.identity)} item={item} isNamed={grouping.value === "state"} />
            ))}
          </ul>
        </section>
      ))}
      {shown.length === 0 && (
        <Empty icon="agents" title={all.length === 0 ? "No agent runs in tmux" : "No agent matches"} />
      )}
    </>
  );
}

function GroupingChoice() {
  return (
    <fieldset class="choice">
      <legend class="visually-hidden">Group by</legend>
      {groupings.map((one) => (
        <label>
          <input
            type="radio"
            name="grouping"
            checked={grouping.value === one}
            onChange={() => (grouping.value = one)}
          />
          <span>{groupingNames[one]}</span>
        </label>
      ))}
    </fieldset>
  );
}

const AgentRow = memo(function AgentRow({ item, isNamed }: { item: PaneItem; isNamed: boolean }) {
  const detail = item.dialog?.question ?? item.title;
  return (
    <li>
      <a class="row" href={link("agent", item.runtime_id ?? "")} data-runtime={item.runtime_id}>
        <StateMark state={item.state} />
        <span class="row-main">
          <span class="row-title">
            <strong>
              <bdi>{agentName(item)}</bdi>
            </strong>
            {(!isNamed || item.unseen || item.reason_code) && <StateName item={item} />}
          </span>
          <Place item={item} />
          {detail && (
            <span class="row-detail" dir="auto">
              {oneLine(detail)}
            </span>
          )}
        </span>
        <Age since={item.since} />
      </a>
    </li>
  );
});
