// What was done to agents, by which client, and with which result.
import { get } from "../api/http.ts";
import type { ActionRecord, ActionStatus, AuditLog } from "../api/schema.ts";
import { Age, Empty, PageHead } from "../parts/basics.tsx";
import { Problem, useLoaded } from "../parts/loaded.tsx";
import { minute } from "../state/clock.ts";
import { agents } from "../state/fleet.ts";
import { oneLine } from "../text.ts";

const tones: Record<ActionStatus, string> = {
  done: "completed",
  begun: "waiting_input",
  refused: "waiting_input",
  failed: "error",
};

export function AuditPage() {
  // A new state of an agent is often the effect of an action.
  const version = `${minute.value} ${agents.value.map((item) => item.state_version).join()}`;
  const loaded = useLoaded(() => get<AuditLog>("/v1/audit", { limit: "100" }), "audit", version);
  const records = (loaded.value.data?.items ?? []).toSorted((a, b) => b.at.localeCompare(a.at));
  return (
    <>
      <PageHead title="Audit" />
      <Problem text={loaded.value.problem} />
      <ul class="rows">
        {records.map((record) => (
          <AuditRow key={record.action_id} record={record} />
        ))}
      </ul>
      {loaded.value.data && records.length === 0 && <Empty icon="audit" title="Nothing was done yet" />}
    </>
  );
}

function AuditRow({ record }: { record: ActionRecord }) {
  const detail = [record.what, !record.text ? null : `“${record.text}”`].filter(Boolean).join(" ");
  return (
    <li class="row">
      <span class={`state-mark state-${tones[record.status]}`} aria-hidden="true" />
      <span class="row-main">
        <span class="row-title">
          <strong>{record.kind.replaceAll("-", " ")}</strong>
          <span class={`state-name state-${tones[record.status]}`}>
            {record.status}
            {record.code && ` · ${record.code}`}
          </span>
        </span>
        <span class="place">
          by {callerOf(record)}
          {record.pane_id && ` · ${record.pane_id} on ${oneLine(record.server ?? "")}`}
        </span>
        {detail && (
          <span class="row-detail" dir="auto">
            {oneLine(detail)}
          </span>
        )}
        {record.message && <span class="row-note">{oneLine(record.message)}</span>}
      </span>
      <Age since={record.at} />
    </li>
  );
}

function callerOf({ caller }: ActionRecord): string {
  if (caller.client) return oneLine(caller.client);
  return oneLine(caller.program ?? caller.via);
}
