// A client of the agtmux API. It needs only the Node standard library.
// Generated from the OpenAPI document by `make contract`.

import { request, type IncomingMessage } from "node:http";

export type Query = Record<string, string | number | boolean | undefined>;
export type ServerSentEvent = { id?: string; event?: string; data: unknown };
export type Where = { socketPath: string } | { host: string; port: number; token: string };

/** An error response of the daemon, with its code and a hint. */
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

/** Connects to the daemon's unix socket, or to TCP with a token. */
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

  async #text(method: string, path: string, query?: Query): Promise<string> {
    const response = await this.#open(method, path, query);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    if ((response.statusCode ?? 500) >= 400) throw new AgtmuxError(response.statusCode ?? 500, {});
    return Buffer.concat(chunks).toString("utf8");
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

  /** Add a target and watch it from now on. */
  addTarget(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/targets", undefined, body);
  }

  /** Make a worktree for a branch. */
  addWorktree(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/worktrees/add", undefined, body);
  }

  /** Return everything needed to attach to a pane: its server, session, window and host. */
  attach(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/attach", undefined, body);
  }

  /** Interrupt a command with Ctrl-C. Its exit code is then 130. */
  cancelMirrorCommand(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/mirrors/cancel", undefined, body);
  }

  /** Connect to a target now and return the result. */
  connectTarget(name: string): Promise<any> {
    return this.#ask("POST", `/v1/targets/${encodeURIComponent(name)}/connect`, undefined);
  }

  /** Run a command in a shared terminal. Returns as soon as the shell has received the command. With `wait_ms`, waits up
to that much longer for the command to end. */
  execInMirror(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/mirrors/exec", undefined, body);
  }

  /** Stream the commands of the person as server-sent events, from now on or after `after`. */
  followMirrorActivity(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/v1/mirrors/activity/stream", query);
  }

  /** Stream the output of a command as server-sent events, and then its end. */
  followMirrorCommand(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/v1/mirrors/command/stream", query);
  }

  /** Stream the screen of a pane as rows of styled text. */
  followScreen(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/v1/screen", query);
  }

  /** Stream task events as server-sent events. */
  followTaskEvents(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/v1/tasks/events/stream", query);
  }

  /** Return the record of one action. */
  getAction(id: string): Promise<any> {
    return this.#ask("GET", `/v1/actions/${encodeURIComponent(id)}`, undefined);
  }

  /** List the adapters with their capabilities, health and evidence sources. */
  getAdapters(): Promise<any> {
    return this.#ask("GET", "/v1/adapters", undefined);
  }

  /** List the recorded actions, oldest first. */
  getAudit(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/audit", query);
  }

  /** Check whether an agent can be answered. */
  getAvailability(agentId: string): Promise<any> {
    return this.#ask("GET", `/api/respond/${encodeURIComponent(agentId)}/availability`, undefined);
  }

  /** Return the agent and the pane behind this request. */
  getCaller(): Promise<any> {
    return this.#ask("GET", "/v1/caller", undefined);
  }

  /** Check what is installed on the host of a target, and suggest commands to run. */
  getCheckup(name: string): Promise<any> {
    return this.#ask("GET", `/v1/targets/${encodeURIComponent(name)}/doctor`, undefined);
  }

  /** List the agents of this machine that have ended, the newest end first. */
  getEndedAgents(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/agents/ended", query);
  }

  /** Stream changes as server-sent events. */
  getEvents(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/v1/events", query);
  }

  /** Explain the state of an agent, with every observation behind it. */
  getExplain(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/explain", query);
  }

  /** Return the health of the daemon and of the tmux servers that it watches. */
  getHealth(): Promise<any> {
    return this.#ask("GET", "/v1/health", undefined);
  }

  /** List the state changes of an agent, with the duration of each state. */
  getHistory(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/history", query);
  }

  /** List the browsers that are logged in. */
  getLogins(): Promise<any> {
    return this.#ask("GET", "/v1/web/logins", undefined);
  }

  /** Return figures about agents, queues, the database and the targets, for Prometheus. */
  getMetrics(): Promise<string> {
    return this.#text("GET", "/metrics", undefined);
  }

  /** List the commands that the person ran in a shared terminal, newest last. */
  getMirrorActivity(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/mirrors/activity", query);
  }

  /** Return a command and the end of its output. With `wait_ms`, waits for its end. */
  getMirrorCommand(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/mirrors/command", query);
  }

  /** Return the last lines of a shared terminal. */
  getMirrorScreen(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/mirrors/screen", query);
  }

  /** List shared terminals. */
  getMirrors(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/mirrors", query);
  }

  /** Return the notification log: what was sent, and what was held back and why. Newest line last. */
  getNotifyLog(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/notify/log", query);
  }

  /** Check whether a pane exists and its agent runs. */
  getPaneHealth(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/actions/health", query);
  }

  /** List panes. */
  getPanes(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/panes", query);
  }

  /** List the last events about an agent, redacted, oldest first. */
  getPastEvents(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/history/events", query);
  }

  /** List sessions, with the number of agents in each state. */
  getSessions(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/sessions", query);
  }

  /** Stream sessions, states, turns and availability as server-sent events. */
  getStream(query: Query = {}): AsyncGenerator<ServerSentEvent> {
    return this.#events("GET", "/api/events/stream", query);
  }

  /** List the targets with their health. */
  getTargets(): Promise<any> {
    return this.#ask("GET", "/v1/targets", undefined);
  }

  /** List task events: the newest, or those after `after`. */
  getTaskEvents(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/tasks/events", query);
  }

  /** Return the output of a task. */
  getTaskLogs(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/tasks/logs", query);
  }

  /** List the tasks of a session. */
  getTasks(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/tasks", query);
  }

  /** List windows, with the number of agents in each state. */
  getWindows(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/windows", query);
  }

  /** List the worktrees of a repository, with their agents. */
  getWorktrees(query: Query = {}): Promise<any> {
    return this.#ask("GET", "/v1/worktrees", query);
  }

  /** Interrupt or end an agent. */
  kill(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/kill", undefined, body);
  }

  /** End all tasks of a session, and the session. */
  killAllTasks(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/kill-all", undefined, body);
  }

  /** Return an agent's last answers. */
  last(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/last", undefined, body);
  }

  /** Mark a completed agent as seen. */
  markSeen(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/seen", undefined, body);
  }

  /** Start an agent in a new window or pane, and send its first prompt when the agent is ready. */
  newAgent(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/new", undefined, body);
  }

  /** Post an event about an agent. */
  postEvent(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/events", undefined, body);
  }

  /** Report a hook event of an agent. */
  postHook(event: string, body: unknown): Promise<any> {
    return this.#ask("POST", `/hook/${encodeURIComponent(event)}`, undefined, body);
  }

  /** Create a link that logs in one browser, once, within two minutes. */
  postLink(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/web/link", undefined, body);
  }

  /** Exchange the code of a login link for a bearer token. */
  postLogin(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/web/login", undefined, body);
  }

  /** Open the web port, and create a link that logs in one browser, once, within two minutes. */
  postOpen(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/web/open", undefined, body);
  }

  /** Answer an agent's open dialog. */
  postRespond(agentId: string, body: unknown): Promise<any> {
    return this.#ask("POST", `/api/respond/${encodeURIComponent(agentId)}`, undefined, body);
  }

  /** End the login of one browser, and its streams. */
  postRevoke(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/web/revoke", undefined, body);
  }

  /** Close the web port and end all logins. */
  postStop(): Promise<any> {
    return this.#ask("POST", "/v1/web/stop", undefined);
  }

  /** Close the windows of tasks that have ended. */
  pruneDeadTasks(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/prune-dead", undefined, body);
  }

  /** Remove a target. */
  removeTarget(name: string): Promise<any> {
    return this.#ask("DELETE", `/v1/targets/${encodeURIComponent(name)}`, undefined);
  }

  /** Remove a worktree, if that loses no work. */
  removeWorktree(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/worktrees/remove", undefined, body);
  }

  /** Give an agent a name. */
  rename(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/rename", undefined, body);
  }

  /** Answer an agent's open dialog. */
  respond(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/respond", undefined, body);
  }

  /** Run a task again with the same command and directory. */
  restartTask(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/restart", undefined, body);
  }

  /** Start an ended agent again in its pane, with its session. */
  resume(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/resume", undefined, body);
  }

  /** Run a task in its own window. A task with the same name is stopped and replaced in its window. */
  runTask(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/run", undefined, body);
  }

  /** Type a text into an agent and submit it, or press keys. */
  send(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/send", undefined, body);
  }

  /** Type a text into a task and press Enter. */
  sendTaskInput(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/input", undefined, body);
  }

  /** Start a shared terminal beside a pane, or return the one that exists for the pane or its session. */
  startMirror(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/mirrors/start", undefined, body);
  }

  /** Clean up after earlier harness sessions of a project. */
  startUpTasks(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/startup", undefined, body);
  }

  /** Close a shared terminal and its pane. */
  stopMirror(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/mirrors/stop", undefined, body);
  }

  /** Send SIGTERM to a task, and SIGKILL if it does not end. */
  stopTask(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/tasks/stop", undefined, body);
  }

  /** Switch an adapter on or off. */
  switchAdapter(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/adapters", undefined, body);
  }

  /** Take a snapshot of a pane to guard a later action. */
  takeSnapshot(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/snapshot", undefined, body);
  }

  /** Send a test notice, and wait until the channels have taken it or failed. */
  testNotify(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/notify/test", undefined, body);
  }

  /** Return the recent output of a pane. */
  viewOutput(body: unknown): Promise<any> {
    return this.#ask("POST", "/v1/actions/view-output", undefined, body);
  }
}
