// Managed tasks, and the output of one of them.
import { get } from "../api/http.ts";
import type { TaskEvent, TaskEvents, TaskLogs } from "../api/schema.ts";
import { Age, Empty, PageHead } from "../parts/basics.tsx";
import { Icon } from "../parts/icons.tsx";
import { Problem, useLoaded } from "../parts/loaded.tsx";
import { taskRevision } from "../state/fleet.ts";
import { link } from "../state/route.ts";
import { count, oneLine, visible } from "../text.ts";

/** A task, by its last event. */
export interface TaskState {
  event: TaskEvent;
  name: string;
  tone: "running" | "completed" | "error" | "waiting_input" | "unknown";
}

/** The last event of each task, the newest first. */
export function lastOfEach(events: TaskEvent[]): TaskState[] {
  const last = new Map<string, TaskEvent>();
  for (const event of events) {
    const key = `${event.session}\n${event.task}\n${event.window_id}`;
    const before = last.get(key);
    if (!before || before.seq <= event.seq) last.set(key, event);
  }
  return [...last.values()].sort((a, b) => b.seq - a.seq).map(describe);
}

function describe(event: TaskEvent): TaskState {
  switch (event.type) {
    case "started":
    case "notify":
      return { event, name: event.type === "notify" ? "Running, rang its bell" : "Running", tone: "running" };
    case "input":
      return { event, name: "Waiting for input", tone: "waiting_input" };
    case "exited":
      if (event.signal) return { event, name: `Ended by ${event.signal}`, tone: "error" };
      if (event.exit_code === 0) return { event, name: "Completed", tone: "completed" };
      return { event, name: `Failed with ${event.exit_code ?? "an unknown code"}`, tone: "error" };
    case "disappeared":
      return { event, name: "Disappeared", tone: "unknown" };
  }
}

const newestEvents = "1000";

export function TasksPage() {
  const loaded = useLoaded(
    () => get<TaskEvents>("/v1/tasks/events", { limit: newestEvents }),
    "tasks",
    taskRevision.value,
  );
  const tasks = lastOfEach(loaded.value.data?.items ?? []);
  const sessions = [...new Set(tasks.map((task) => task.event.session))];
  return (
    <>
      <PageHead title="Tasks">
        <span class="head-count">{count(tasks.length, "task")}</span>
      </PageHead>
      <Problem text={loaded.value.problem} />
      {sessions.map((session) => (
        <section class="group" key={session}>
          <h2>
            <bdi>{oneLine(session)}</bdi>
          </h2>
          <ul class="rows">
            {tasks
              .filter((task) => task.event.session === session)
              .map((task) => (
                <TaskRow key={`${task.event.task} ${task.event.window_id}`} task={task} />
              ))}
          </ul>
        </section>
      ))}
      {tasks.length === 0 && loaded.value.data && (
        <Empty icon="tasks" title="No tasks">
          Start one with <code>agtmux task run</code>.
        </Empty>
      )}
    </>
  );
}

function TaskRow({ task: { event, name, tone } }: { task: TaskState }) {
  const detail = event.prompt ?? event.recent_output.at(-1) ?? "";
  return (
    <li>
      <a class="row" href={link("task", event.session, event.task)}>
        <span class={`state-mark state-${tone}`} aria-hidden="true" />
        <span class="row-main">
          <span class="row-title">
            <strong>
              <bdi>{oneLine(event.task)}</bdi>
            </strong>
            <span class={`state-name state-${tone}`}>{name}</span>
          </span>
          {detail && (
            <span class="row-detail mono" dir="auto">
              {oneLine(detail)}
            </span>
          )}
        </span>
        <Age since={event.at} />
      </a>
    </li>
  );
}

const logLines = "2000";

export function TaskPage({ session, task }: { session: string; task: string }) {
  const loaded = useLoaded(
    () => get<TaskLogs>("/v1/tasks/logs", { session, task, lines: logLines }),
    `${session}\n${task}`,
    taskRevision.value,
  );
  const logs = loaded.value.data;
  return (
    <>
      <header class="agent-head">
        <a class="icon-button" href={link("tasks")} aria-label="Back to the tasks">
          <Icon name="back" />
        </a>
        <div class="agent-title">
          <h1>
            <bdi>{oneLine(task)}</bdi>
          </h1>
          <span class="place">
            <bdi>{oneLine(session)}</bdi>
            {logs && ` · ${logs.dead ? "ended" : "running"}`}
          </span>
        </div>
      </header>
      <Problem text={loaded.value.problem} />
      {logs && (
        <pre class="log" tabIndex={0} role="region" aria-label="Output of the task">
          {logs.lines.map((line, at) => (
            <span key={at}>{`${visible(line)}\n`}</span>
          ))}
        </pre>
      )}
    </>
  );
}
