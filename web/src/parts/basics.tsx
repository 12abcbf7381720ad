// Small parts that all pages use.
import type { ComponentChildren } from "preact";
import type { PaneItem, State } from "../api/schema.ts";
import { minute, second } from "../state/clock.ts";
import { stateNames } from "../state/order.ts";
import { duration, oneLine, shortPath } from "../text.ts";
import { Icon } from "./icons.tsx";

/** A time that has passed since. */
export function Age({ since }: { since: string | null | undefined }) {
  if (!since) return null;
  const at = Date.parse(since);
  // Only young ages change every second.
  const now = Date.now() - at < 90_000 ? second.value : minute.value;
  return (
    <time class="age" dateTime={since} title={new Date(at).toLocaleString()}>
      {duration(now - at)}
    </time>
  );
}

export const stateClass = (state: State | null | undefined) => `state-${state ?? "unknown"}`;

export function StateMark({ state }: { state: State | null | undefined }) {
  return <span class={`state-mark ${stateClass(state)}`} aria-hidden="true" />;
}

export function StateName({ item }: { item: PaneItem }) {
  const name = stateNames[item.state ?? "unknown"];
  return (
    <span class={`state-name ${stateClass(item.state)}`}>
      <StateMark state={item.state} />
      {item.unseen && item.state !== "running" ? "Finished, not seen" : name}
      {item.reason_code && <span class="reason"> · {item.reason_code.replaceAll("_", " ")}</span>}
    </span>
  );
}

export const agentName = (item: PaneItem) => item.name ?? item.agent_type ?? "agent";

/** Where an agent runs, for people: the host if it is another one, the session and the window. */
export function placeOf({ identity, window_index, window_name }: PaneItem): string {
  const host = identity.target === "host" ? "" : `${identity.target} · `;
  return oneLine(`${host}${identity.session_name}:${window_index} ${window_name}`);
}

export function Place({ item }: { item: PaneItem }) {
  return (
    <span class="place">
      <bdi>{placeOf(item)}</bdi>
      {item.cwd && (
        <>
          {" · "}
          <bdi title={item.cwd}>{oneLine(shortPath(item.cwd))}</bdi>
        </>
      )}
    </span>
  );
}

export function Empty({
  icon,
  title,
  children,
}: {
  icon: string;
  title: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}

export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="page-head">
      <h1>{title}</h1>
      {children}
    </div>
  );
}

/** The result of an action, read aloud when it appears. */
export function Outcome({ text, isError }: { text: string | null; isError: boolean }) {
  return (
    <p class={`outcome ${isError ? "is-error" : ""}`} role="status" hidden={text === null}>
      {text}
    </p>
  );
}
