// The history of an agent, and why it has its state.
import { reference } from "../api/actions.ts";
import { get } from "../api/http.ts";
import type { Explanation, PaneItem, StateHistory } from "../api/schema.ts";
import { stateNames } from "../state/order.ts";
import { duration, oneLine, timeOfDay } from "../text.ts";
import { Age, stateClass } from "./basics.tsx";
import { Problem, useLoaded } from "./loaded.tsx";

/** The most entries that are shown. */
const longest = 60;

export function History({ item }: { item: PaneItem }) {
  const ref = reference(item.runtime_id ?? "");
  const loaded = useLoaded(() => get<StateHistory>("/v1/history", { ref }), ref, item.state_version);
  const entries = (loaded.value.data?.items ?? []).toReversed().slice(0, longest);
  return (
    <>
      <ol class="timeline">
        {entries.map((entry) => (
          <li key={entry.seq} class={stateClass(entry.state)}>
            <span class="timeline-state">{stateNames[entry.state]}</span>
            {entry.reason_code && <span class="muted"> {entry.reason_code.replaceAll("_", " ")}</span>}
            <span class="timeline-time">
              {timeOfDay(entry.at)} ·{" "}
              {typeof entry.duration_ms === "number" ? duration(entry.duration_ms) : <Age since={entry.at} />}
            </span>
          </li>
        ))}
      </ol>
      <Problem text={loaded.value.problem} />
    </>
  );
}

export function Why({ item }: { item: PaneItem }) {
  const ref = reference(item.runtime_id ?? "");
  const loaded = useLoaded(() => get<Explanation>("/v1/explain", { ref }), ref, item.state_version);
  const why = loaded.value.data;
  return (
    <>
      {why && (
        <>
          <p class="why-lead">
            {stateNames[why.state]} with {why.confidence} confidence, for <Age since={why.since} />.
          </p>
          <ul class="evidence">
            {why.candidates.map((candidate) => (
              <li key={`${candidate.source} ${candidate.claim}`} class={candidate.fresh ? "" : "is-old"}>
                <span class="evidence-head">
                  <strong>{candidate.source}</strong> · {said(candidate.says)}
                  <Age since={candidate.as_of} />
                </span>
                {candidate.evidence && <code>{oneLine(candidate.evidence)}</code>}
                {candidate.why_not && <span class="muted">Does not count: {oneLine(candidate.why_not)}</span>}
              </li>
            ))}
          </ul>
          {why.would_change.length > 0 && (
            <>
              <h3>What would change it</h3>
              <ul class="plain-list">
                {why.would_change.map((text) => (
                  <li key={text}>{oneLine(text)}</li>
                ))}
              </ul>
            </>
          )}
        </>
      )}
      <Problem text={loaded.value.problem} />
    </>
  );
}

/** The assertion of an observation: a word, or an object with a word and a value. */
export function said(assertion: unknown): string {
  if (typeof assertion === "string") return assertion.replaceAll("_", " ");
  if (typeof assertion === "object" && assertion !== null) {
    return oneLine(
      Object.entries(assertion)
        .map(([name, value]) => `${name} ${typeof value === "string" ? value : ""}`.trim())
        .join(", ")
        .replaceAll("_", " "),
    );
  }
  return oneLine(String(assertion));
}
