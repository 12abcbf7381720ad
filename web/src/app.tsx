// The frame around the pages: navigation, the state of the connection, and the page that the address names.
import { connection, reconnectNow } from "./api/live.ts";
import { AgentPage } from "./pages/agent.tsx";
import { AgentsPage } from "./pages/agents.tsx";
import { AuditPage } from "./pages/audit.tsx";
import { HostsPage } from "./pages/hosts.tsx";
import { InboxPage } from "./pages/inbox.tsx";
import { LoginPage } from "./pages/login.tsx";
import { TaskPage, TasksPage } from "./pages/tasks.tsx";
import { Icon } from "./parts/icons.tsx";
import { second } from "./state/clock.ts";
import { targets, waiting } from "./state/fleet.ts";
import { daemonVersion, readOnly, token } from "./state/login.ts";
import { link, type PageName, route } from "./state/route.ts";
import { duration, timeOfDay } from "./text.ts";

const entries: readonly [PageName, string][] = [
  ["inbox", "Inbox"],
  ["agents", "Agents"],
  ["tasks", "Tasks"],
  ["hosts", "Hosts"],
  ["audit", "Audit"],
];

/** The entry of the navigation under which a page belongs. */
const parents: Partial<Record<PageName, PageName>> = { agent: "agents", task: "tasks" };

let firstVersion: string | null = null;

export function App() {
  if (token.value === null) return <LoginPage />;
  const isLive = connection.value.state === "live";
  return (
    <div class={`frame page-${route.value.page} ${connection.value.state === "lost" ? "is-stale" : ""}`}>
      <nav class="nav" aria-label="Pages">
        <a class="brand" href={link("inbox")}>
          <img src="/icon.svg" alt="" width="26" height="26" />
          agtmux
        </a>
        <ul>
          {entries.map(([page, name]) => (
            <NavEntry key={page} page={page} name={name} />
          ))}
        </ul>
        <p class="nav-foot">
          <span class={`live-mark ${isLive ? "is-live" : ""}`} />
          {isLive ? "Live" : connection.value.state === "lost" ? "Not connected" : "Connecting"}
          {readOnly.value && (
            <span class="read-only">
              <Icon name="lock" /> read-only
            </span>
          )}
        </p>
      </nav>
      <main class="main" id="main">
        <Banner />
        <Page />
      </main>
    </div>
  );
}

function NavEntry({ page, name }: { page: PageName; name: string }) {
  const current = (parents[route.value.page] ?? route.value.page) === page;
  const badge = badgeOf(page);
  return (
    <li>
      <a href={link(page)} aria-current={current ? "page" : undefined}>
        <Icon name={page} />
        <span>{name}</span>
        {badge > 0 && <span class={`badge badge-${page}`}>{badge}</span>}
      </a>
    </li>
  );
}

function badgeOf(page: PageName): number {
  if (page === "inbox") return waiting.value.length;
  if (page === "hosts") return targets.value.filter((target) => target.health === "down").length;
  return 0;
}

function Banner() {
  const { state, since } = connection.value;
  const version = daemonVersion.value;
  firstVersion ??= version;
  if (state === "lost") {
    return (
      <div class="banner" role="status">
        <span>
          Not connected. This is from {timeOfDay(new Date(since).toISOString())},{" "}
          {duration(second.value - since)} ago.
        </span>
        <button type="button" class="quiet" onClick={reconnectNow}>
          Try now
        </button>
      </div>
    );
  }
  if (version !== firstVersion) {
    return (
      <div class="banner" role="status">
        <span>agtmux {version} runs now. This page is from an older version.</span>
        <button type="button" class="quiet" onClick={() => location.reload()}>
          Reload
        </button>
      </div>
    );
  }
  return null;
}

function Page() {
  const { page, rest } = route.value;
  switch (page) {
    case "agents":
      return <AgentsPage />;
    case "agent":
      return <AgentPage key={rest[0]} runtimeId={rest[0] ?? ""} />;
    case "tasks":
      return <TasksPage />;
    case "task":
      return <TaskPage session={rest[0] ?? ""} task={rest[1] ?? ""} />;
    case "hosts":
      return <HostsPage />;
    case "audit":
      return <AuditPage />;
    default:
      return <InboxPage />;
  }
}
