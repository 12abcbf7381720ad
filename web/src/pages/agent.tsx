// One agent: its screen, its dialog, a way to write to it, its history and why it has its state.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { failureText, markSeen, output } from "../api/actions.ts";
import { connection } from "../api/live.ts";
import type { PaneItem } from "../api/schema.ts";
import { Age, agentName, Empty, Place, StateName } from "../parts/basics.tsx";
import { Compose } from "../parts/compose.tsx";
import { DialogPart } from "../parts/dialog.tsx";
import { Icon } from "../parts/icons.tsx";
import { History, Why } from "../parts/insight.tsx";
import { KillButton } from "../parts/kill.tsx";
import { Terminal } from "../parts/terminal.tsx";
import { agentOf } from "../state/fleet.ts";
import { readOnly } from "../state/login.ts";
import { link } from "../state/route.ts";

type Panel = "history" | "why" | "output";

const panel = signal<Panel | null>(null);

const panels: readonly [Panel, string, string][] = [
  ["history", "History", "history"],
  ["why", "Why", "why"],
  ["output", "Output", "terminal"],
];

/** The number of lines of earlier output. */
const outputLines = 1000;

export function AgentPage({ runtimeId }: { runtimeId: string }) {
  const item = agentOf(runtimeId);
  useMarkSeen(item);
  if (!item) {
    if (connection.value.state === "connecting") return <Empty icon="agents" title="Connecting…" />;
    return (
      <Empty icon="agents" title="This agent is gone">
        <a href={link("agents")}>See all agents</a>
      </Empty>
    );
  }
  return (
    <div class="agent-page">
      <header class="agent-head">
        <a class="icon-button" href={link("agents")} aria-label="Back to the agents">
          <Icon name="back" />
        </a>
        <div class="agent-title">
          <h1>
            <bdi>{agentName(item)}</bdi>
          </h1>
          <Place item={item} />
        </div>
        <div class="agent-state">
          <StateName item={item} />
          <Age since={item.since} />
        </div>
        {!readOnly.value && <KillButton key={runtimeId} item={item} />}
      </header>
      <div class="agent-body">
        <Terminal key={runtimeId} runtimeId={runtimeId} />
        {item.dialog && (
          <section class="card agent-dialog" aria-label="Question of the agent">
            <DialogPart item={item} dialog={item.dialog} />
          </section>
        )}
        {!readOnly.value && <Compose key={runtimeId} item={item} />}
        <aside class="agent-side">
          <PanelChoice />
          <ShownPanel item={item} />
        </aside>
      </div>
    </div>
  );
}

/** A person who looks at the page has seen what the agent completed. */
function useMarkSeen(item: PaneItem | undefined): void {
  const isUnseen = item?.unseen === true && !readOnly.value;
  useEffect(() => {
    if (!isUnseen || !item || document.hidden) return;
    const timer = setTimeout(() => void markSeen(item).catch(() => {}), 1500);
    return () => clearTimeout(timer);
  }, [isUnseen, item]);
}

function PanelChoice() {
  const shown = panel.value ?? "history";
  return (
    <div class="tabs" role="tablist" aria-label="More about this agent">
      {panels.map(([name, title, icon]) =>
        name === "output" && readOnly.value ? null : (
          <button
            type="button"
            key={name}
            role="tab"
            id={`tab-${name}`}
            aria-selected={shown === name}
            aria-controls="panel"
            onClick={() => (panel.value = name)}
          >
            <Icon name={icon} />
            {title}
          </button>
        ),
      )}
    </div>
  );
}

function ShownPanel({ item }: { item: PaneItem }) {
  const shown = panel.value ?? "history";
  return (
    <div id="panel" class="panel" role="tabpanel" aria-labelledby={`tab-${shown}`}>
      {shown === "history" && <History item={item} />}
      {shown === "why" && <Why item={item} />}
      {shown === "output" && <EarlierOutput key={item.runtime_id} item={item} />}
    </div>
  );
}

function EarlierOutput({ item }: { item: PaneItem }) {
  const text = useSignal<string | null>(null);
  const problem = useSignal<string | null>(null);
  const load = async () => {
    try {
      text.value = (await output(item, outputLines)).lines.join("\n");
      problem.value = null;
    } catch (error) {
      problem.value = failureText(error);
    }
  };
  useEffect(() => void load(), []);
  return (
    <>
      <button type="button" class="quiet" onClick={() => void load()}>
        Read again
      </button>
      {text.value !== null && (
        <pre class="log" tabIndex={0} role="region" aria-label="Earlier output">
          {text.value}
        </pre>
      )}
      {problem.value !== null && <p class="outcome is-error">{problem.value}</p>}
    </>
  );
}
