"use strict";
// All values are inserted as text, never as HTML. Only one tab streams events and forwards them to the other tabs:
// a browser opens at most six connections per host, for all tabs together.
//
// The token is in localStorage and not in a cookie: a browser sends cookies to all ports of a host, also to servers of
// other users.

const agents = new Map();
const order = ["waiting_approval", "waiting_input", "error", "running", "completed", "idle", "unknown"];
const channel = new BroadcastChannel("agtmux");
let connected = false;
let refused = "";
let listening = false;

// A pane is listed once per session that shows it, but gets one row.
const itemKey = (identity) =>
  JSON.stringify([identity.target, identity.server, identity.session_name, identity.window_id, identity.pane_id]);
const pane = (identity) => JSON.stringify([identity.target, identity.server, identity.pane_id]);

function applyMessage(message) {
  if (message.type === "all") {
    agents.clear();
    for (const item of message.items) agents.set(itemKey(item.identity), item);
  } else if (message.type === "remove") {
    agents.delete(itemKey(message.item.identity));
  } else if (message.type === "upsert") {
    if (message.item.agent_type === null) agents.delete(itemKey(message.item.identity));
    else agents.set(itemKey(message.item.identity), message.item);
  }
  refused = message.type === "refused" ? message.why : "";
  connected = !refused && message.type !== "lost";
  draw();
}

function since(at) {
  if (!at) return "";
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h`;
}

function cell(row, text, name) {
  const td = row.insertCell();
  td.textContent = text ?? "";
  if (name) td.className = name;
}

function draw() {
  const body = document.getElementById("agents");
  const panes = new Map([...agents.values()].map((item) => [pane(item.identity), item]));
  const items = [...panes.values()].sort((a, b) =>
    order.indexOf(a.state) - order.indexOf(b.state) || pane(a.identity).localeCompare(pane(b.identity)));
  body.replaceChildren();
  for (const item of items) {
    const row = body.insertRow();
    const state = order.includes(item.state) ? item.state : "unknown";
    cell(row, item.reason_code ? `${state} (${item.reason_code})` : state, `state ${state}`);
    cell(row, item.agent_type);
    const { target, server, session_name, window_id, pane_id } = item.identity;
    cell(row, `${target}@${server} ${session_name}:${window_id} ${pane_id}`);
    cell(row, since(item.since));
    cell(row, item.dialog ? item.dialog.question : "");
  }
  document.getElementById("empty").hidden = items.length > 0 || !connected;
  body.classList.toggle("stale", !connected);
  const waiting = items.filter((item) => item.needs_action).length;
  document.getElementById("summary").textContent = connected
    ? `${items.length} agents, ${waiting} waiting for you`
    : refused
      ? `${refused}; open the address that \`agtmux web\` prints`
      : "the daemon does not respond; retrying";
}

function broadcast(message) {
  applyMessage(message);
  channel.postMessage(message);
}

// Exchanges the code in the address for a token. The code works once, so it is removed from the address first.
async function logIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) return;
  history.replaceState(null, "", location.pathname);
  try {
    const response = await fetch("/v1/web/login", {
      method: "POST",
      headers: { "content-type": "application/json", "x-agtmux": "1" },
      body: JSON.stringify({ code }),
      redirect: "error",
    });
    const answer = await response.json();
    if (!response.ok) return broadcast({ type: "refused", why: answer.message });
    localStorage.setItem("token", answer.token);
    loggedIn();
  } catch {
    broadcast({ type: "lost" });
  }
}

// Resolves after the given time, or when this tab has logged in.
let loggedIn = () => {};
const pause = (milliseconds) => new Promise((resolve) => {
  loggedIn = resolve;
  setTimeout(resolve, milliseconds);
});

// The number of the last event, from which a broken stream continues.
let lastEvent = null;

// Reads the stream until it ends. An event stream of the browser itself (EventSource) cannot send a token.
async function listen() {
  const token = localStorage.getItem("token");
  if (token === null) return broadcast({ type: "refused", why: "you are not logged in" });
  const headers = { authorization: `Bearer ${token}` };
  if (lastEvent !== null) headers["last-event-id"] = lastEvent;
  const response = await fetch("/v1/events", { headers, redirect: "error" });
  if (response.status === 401) {
    lastEvent = null;
    return broadcast({ type: "refused", why: "your login has expired" });
  }
  if (!response.ok) return broadcast({ type: "lost" });
  // A new stream starts with a snapshot. A resumed one continues with changes or a reset.
  broadcast(lastEvent === null ? { type: "all", items: [] } : { type: "found" });
  listening = true;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    events.forEach(handleEvent);
  }
}

function handleEvent(event) {
  const fields = new Map();
  for (const line of event.split("\n")) {
    const [, name, value] = /^([a-z]*): ?(.*)$/s.exec(line) ?? [];
    if (name) fields.set(name, fields.has(name) ? `${fields.get(name)}\n${value}` : value);
  }
  if (fields.has("id")) lastEvent = fields.get("id");
  const type = fields.get("event");
  if (type === "reset") return broadcast({ type: "all", items: [] });
  const { item } = JSON.parse(fields.get("data") ?? "{}");
  const kinds = { snapshot: "upsert", upsert: "upsert", remove: "remove" };
  if (item && kinds[type]) broadcast({ type: kinds[type], item });
}

async function listenUntilLost() {
  try {
    await listen();
    if (connected) broadcast({ type: "lost" });
  } catch {
    broadcast({ type: "lost" });
  }
  listening = false;
}

async function listenExclusively() {
  for (;;) {
    await navigator.locks.request("agtmux-listener", listenUntilLost);
    await pause(3000);
  }
}

channel.addEventListener("message", (event) => {
  if (event.data.type !== "new") applyMessage(event.data);
  else if (listening && connected) channel.postMessage({ type: "all", items: [...agents.values()] });
});
channel.postMessage({ type: "new" });
addEventListener("hashchange", logIn);
logIn().then(listenExclusively);
setInterval(draw, 10000);
