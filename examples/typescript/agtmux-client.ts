// A client of agtmux's API, with nothing but Node's own library.
// Made from the OpenAPI document: `make contract` writes it anew.

import { request, type IncomingMessage } from "node:http";

export type Query = Record<string, string | number | boolean | undefined>;
export type ServerSentEvent = { id?: string; event?: string; data: unknown };
export type Where = { socketPath: string } | { host: string; port: number; token: string };

/** What the daemon refused, with its code and what to do next. */
export class AgtmuxError extends Error {
  status: number;
  code?: string;
  hint?: string;

  constructor(status: number, body: { message?: string; code?: string; error_type?: string; hint?: string }) {
    super(body.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = body.code ?? body.error_type;
    this.hint = body.hint;
  }
}

/** Over the daemon's socket, or over TCP with a token. */
export class Client {
  #where: Where;

  constructor(where: Where) {
    this.#where = where;
  }

  #open(method: string, path: string, query?: Query, body?: unknown): Promise<IncomingMessage> {
    const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
    const headers: Record<string, string> = { "content-type": "application/json", "x-agtmux": "1" };
    if ("token" in this.#where) headers.authorization = `Bearer ${this.#where.token}`;
    const options = { ...this.#where, method, path: search ? `${path}?${search}` : path, headers };
    return new Promise((resolve, reject) => {
      const asked = request(options, resolve);
      asked.on("error", reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  async #ask(method: string, path: string, query?: Query, body?: unknown): Promise<any> {
    const response = await this.#open(method, path, query, body);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    const answer = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if ((response.statusCode ?? 500) >= 400) throw new AgtmuxError(response.statusCode ?? 500, answer);
    return answer;
  }

  async *#events(method: string, path: string, query?: Query): AsyncGenerator<ServerSentEvent> {
    const response = await this.#open(method, path, query);
    if ((response.statusCode ?? 500) >= 400) throw new AgtmuxError(response.statusCode ?? 500, {});
    let rest = "";
    let event: Record<string, string> = {};
    for await (const chunk of response.setEncoding("utf8")) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const colon = line.indexOf(": ");
        if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 2);
        else if (line === "" && Object.keys(event).length > 0) {
          yield { id: event.id, event: event.event, data: event.data ? JSON.parse(event.data) : null };
          event = {};
        }
      }
    }
  }

  /** Watches another host from now on. Answers when the first attempt to reach it has come to something. */
  addTarget(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/targets", undefined, body);
  }

  /** Tells how to get to a pane. */
  attach(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/attach", undefined, body);
  }

  /** Tries to reach it at once, and tells what came of it. */
  connectTarget(name: string): Promise<any> {
    return this.#ask("POST", `/v1/targets/${encodeURIComponent(name)}/connect`, undefined);
  }

  /** The same as server-sent events, as they happen; with `after` or `Last-Event-ID` none is missed, also over restarts of the
daemon. With `run_id` the stream ends with `over` when nothing more will be told of that run. */
  followTaskEvents(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/v1/tasks/events/stream", query);
  }

  /** What came of an action. */
  getAction(id: string): Promise<any> {
    return this.#ask("GET", `/v1/actions/${encodeURIComponent(id)}`, undefined);
  }

  /** Every adapter with what it can do, how it fares and where its evidence comes from. */
  getAdapters(): Promise<any> {
    return this.#ask("GET", "/v1/adapters", undefined);
  }

  /** Every action, refused ones too, the newest last. */
  getAudit(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/audit", query);
  }

  /** Whether an agent can be answered. */
  getAvailability(agentId: string): Promise<any> {
    return this.#ask("GET", `/api/respond/${encodeURIComponent(agentId)}/availability`, undefined);
  }

  /** Looks what the host has, and tells what that means and what to run. */
  getCheckup(name: string): Promise<any> {
    return this.#ask("GET", `/v1/targets/${encodeURIComponent(name)}/doctor`, undefined);
  }

  /** Changes as they happen, as server-sent events: a snapshot first, or what came after `Last-Event-ID`. */
  getEvents(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/v1/events", query);
  }

  /** The state of one agent and every statement behind it. */
  getExplain(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/explain", query);
  }

  /** How the daemon is and what it watches. */
  getHealth(): Promise<any> {
    return this.#ask("GET", "/v1/health", undefined);
  }

  /** The changes of state of one agent, with how long each lasted. An agent that has ended is named by `runtime:ID`. */
  getHistory(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/history", query);
  }

  /** Whether a pane is there and its agent runs. */
  getPaneHealth(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/actions/health", query);
  }

  /** Panes, by default only those in which an agent lives. */
  getPanes(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/panes", query);
  }

  /** The last events about one agent, as they came and without their secrets, the newest last. */
  getPastEvents(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/history/events", query);
  }

  /** Sessions, with what their agents amount to. */
  getSessions(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/sessions", query);
  }

  /** Sessions, their states, turns and availability as they change, as server-sent events. A reader that comes back too late
gets `resync`: it has to read `/v1/panes` anew. */
  getStream(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/api/events/stream", query);
  }

  /** Every target with how it fares and what is known of it. */
  getTargets(): Promise<any> {
    return this.#ask("GET", "/v1/targets", undefined);
  }

  /** What happened to tasks: the newest, or what came after `after`. */
  getTaskEvents(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/tasks/events", query);
  }

  /** What a task has written. */
  getTaskLogs(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/tasks/logs", query);
  }

  /** The tasks of one session as they are now. A session that is not there has `exists: false`. */
  getTasks(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/tasks", query);
  }

  /** Windows, with what their agents amount to. */
  getWindows(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/windows", query);
  }

  /** Interrupts an agent, or ends it. */
  kill(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/kill", undefined, body);
  }

  /** Ends all tasks of a session, and the session. Refused to agents. */
  killAllTasks(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/kill-all", undefined, body);
  }

  /** Takes an event in. The answer comes when it is stored. */
  postEvent(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/events", undefined, body);
  }

  /** Tells that something happened to an agent. Fields beyond those named are passed on to whoever reads its events. */
  postHook(event: string, body: unknown): Promise<any> {
    return this.#ask("POST", `/hook/${encodeURIComponent(event)}`, undefined, body);
  }

  /** Makes a link that lets one browser in, once, within two minutes. Only over the unix socket. */
  postLink(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/web/link", undefined, body);
  }

  /** Answers the dialog that an agent has open. */
  postRespond(agentId: string, body: unknown): Promise<any> {
    return this.#ask("POST", `/api/respond/${encodeURIComponent(agentId)}`, undefined, body);
  }

  /** Takes windows away whose tasks have ended. */
  pruneDeadTasks(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/prune-dead", undefined, body);
  }

  /** Watches it no longer. Nothing changes on the host itself. */
  removeTarget(name: string): Promise<any> {
    return this.#ask("DELETE", `/v1/targets/${encodeURIComponent(name)}`, undefined);
  }

  /** Answers the dialog that is open. */
  respond(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/respond", undefined, body);
  }

  /** Starts a task again as it was started, by the same rules. */
  restartTask(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/restart", undefined, body);
  }

  /** Starts an agent that has ended again, in its pane, with its session. */
  resume(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/resume", undefined, body);
  }

  /** Starts a task in a window of its own, or again in the window that has its name. Agents may do this, too, but what runs in the
session of another is not replaced by them. */
  runTask(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/run", undefined, body);
  }

  /** Types a text and has it submitted, or presses keys. */
  send(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/send", undefined, body);
  }

  /** Types a text into a task and presses Enter. Refused to agents. */
  sendTaskInput(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/input", undefined, body);
  }

  /** To be told when a harness session begins: removes what earlier ones of the same project have left where nothing runs in it any more, and
names the rest. Sessions of others, and of programs that still run, are not touched. */
  startUpTasks(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/startup", undefined, body);
  }

  /** Asks a task to end, and makes it if it does not. Refused to agents. */
  stopTask(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/stop", undefined, body);
  }

  /** Switches one on or off. The agents of one that is off are still listed; nothing is said about what they do. */
  switchAdapter(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/adapters", undefined, body);
  }

  /** Looks at a pane, to act on what was seen within the next 30 seconds, or as long as `actions.snapshot_lifetime` says. */
  takeSnapshot(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/snapshot", undefined, body);
  }

  /** Shows what a pane has shown. */
  viewOutput(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/view-output", undefined, body);
  }
}
