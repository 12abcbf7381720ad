// Follows the events of the daemon. Only one tab of a browser reads the stream, because a browser opens at most six
// connections to a host for all tabs together. This tab passes everything to the other tabs.
import { batch, signal } from "@preact/signals";
import { applyEvents, content, type FleetContent, replaceContent } from "../state/fleet.ts";
import { token } from "../state/login.ts";
import { Backoff } from "./backoff.ts";
import { readEvents, type ServerEvent } from "./events.ts";
import { send } from "./http.ts";
import type { WatchEvent } from "./schema.ts";

export interface Connection {
  state: "connecting" | "live" | "lost";
  /** When the content was last known to be current. */
  since: number;
}

export const connection = signal<Connection>({ state: "connecting", since: Date.now() });
/** Whether this tab reads the stream. */
export const leads = signal(false);

type TabMessage =
  | { kind: "hello" }
  | { kind: "content"; content: FleetContent; connection: Connection }
  | { kind: "events"; events: WatchEvent[] }
  | { kind: "connection"; connection: Connection };

const lock = "agtmux-events";
/** The tab that leads sends a message at least this often. */
const signOfLife = 2000;
/** Another tab takes over after this time without a message. A browser may suspend a tab in the background. */
const takeOverAfter = 7000;

let tabs: BroadcastChannel | null = null;
const backoff = new Backoff();
let lastEvent: string | null = null;
let lastMessage = Date.now();
let retryNow = () => {};

function setConnection(state: Connection["state"]): void {
  const since = state === "live" || connection.value.state === "live" ? Date.now() : connection.value.since;
  connection.value = { state, since };
  tabs?.postMessage({ kind: "connection", connection: connection.value } satisfies TabMessage);
}

function handleEvents(serverEvents: ServerEvent[]): void {
  const events: WatchEvent[] = [];
  for (const event of serverEvents) {
    if (event.id !== null) lastEvent = event.id;
    if (event.data !== "") events.push(JSON.parse(event.data));
  }
  batch(() => {
    applyEvents(events);
    if (connection.value.state !== "live") setConnection("live");
  });
  if (events.length > 0) tabs?.postMessage({ kind: "events", events } satisfies TabMessage);
}

async function followOnce(stop: AbortSignal): Promise<void> {
  const headers: Record<string, string> = lastEvent === null ? {} : { "last-event-id": lastEvent };
  const response = await send("/v1/events?scope=all", { headers, signal: stop });
  backoff.reset();
  // A new stream begins with everything. A resumed one continues with changes, or says that it begins anew.
  if (lastEvent === null) {
    replaceContent({ panes: [], targets: [], errors: [] });
    sendContent();
  }
  await readEvents(response, handleEvents);
}

function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    retryNow = resolve;
    stop.addEventListener("abort", () => resolve(), { once: true });
    setTimeout(resolve, milliseconds);
  });
}

/** A signal that aborts when the token meets the condition. */
function whenToken(meets: (value: string | null) => boolean): AbortSignal {
  const met = new AbortController();
  const forget = token.subscribe((value) => {
    if (met.signal.aborted || !meets(value)) return;
    met.abort();
    // `forget` does not exist yet if the condition is met at once.
    queueMicrotask(() => forget());
  });
  return met.signal;
}

/** Resolves when one of the signals aborts. */
function aborted(...signals: AbortSignal[]): Promise<void> {
  const any = AbortSignal.any(signals);
  return any.aborted
    ? Promise.resolve()
    : new Promise((resolve) => any.addEventListener("abort", () => resolve(), { once: true }));
}

/** Follows the stream until another tab takes over. */
async function lead(stop: AbortSignal): Promise<void> {
  leads.value = true;
  while (!stop.aborted) {
    await aborted(
      stop,
      whenToken((value) => value !== null),
    );
    const used = token.value;
    try {
      await followOnce(AbortSignal.any([stop, whenToken((value) => value !== used)]));
    } catch {
      // The next attempt follows.
    }
    if (stop.aborted) break;
    // Another login may see other items, and the daemon may have restarted.
    if (used !== token.value) lastEvent = null;
    setConnection("lost");
    if (token.value !== null) await pause(backoff.next(), stop);
  }
  leads.value = false;
}

function sendContent(): void {
  tabs?.postMessage({
    kind: "content",
    content: content(),
    connection: connection.value,
  } satisfies TabMessage);
}

function handleMessage({ data }: MessageEvent<TabMessage>): void {
  if (data.kind === "hello") {
    if (leads.value) sendContent();
    return;
  }
  if (leads.value) return;
  lastMessage = Date.now();
  batch(() => {
    if (data.kind === "events") applyEvents(data.events);
    else {
      if (data.kind === "content") replaceContent(data.content);
      connection.value = data.connection;
    }
  });
}

async function waitToLead(): Promise<void> {
  const locks = navigator.locks as LockManager | undefined;
  // Browsers offer locks only to pages of this machine and over https. Without locks, every tab reads the stream.
  if (!locks) return lead(new AbortController().signal);
  let steal = false;
  setInterval(() => {
    if (leads.value)
      tabs?.postMessage({ kind: "connection", connection: connection.value } satisfies TabMessage);
    else if (!document.hidden && Date.now() - lastMessage > takeOverAfter) takeOver();
  }, signOfLife);
  let takeOver = () => {};
  for (;;) {
    const stop = new AbortController();
    const waiting = new AbortController();
    takeOver = () => {
      steal = true;
      waiting.abort();
    };
    const options: LockOptions = steal ? { steal: true } : { signal: waiting.signal };
    steal = false;
    lastMessage = Date.now();
    try {
      await locks.request(lock, options, () => lead(stop.signal));
    } catch {
      // Another tab took the lock, or this tab is about to take it.
    }
    stop.abort();
  }
}

export function startLive(): void {
  tabs = new BroadcastChannel("agtmux-dashboard");
  tabs.addEventListener("message", handleMessage);
  tabs?.postMessage({ kind: "hello" } satisfies TabMessage);
  addEventListener("online", () => retryNow());
  addEventListener("visibilitychange", () => {
    if (!document.hidden) retryNow();
  });
  void waitToLead();
}

export const reconnectNow = () => retryNow();
