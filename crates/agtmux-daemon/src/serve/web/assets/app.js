"use strict";
// All values are inserted as text, never as HTML. Only one tab streams events and forwards them to the other tabs:
// a browser opens at most six connections per host, for all tabs together.

const agents = new Map();
const order = ["waiting_approval", "waiting_input", "error", "running", "completed", "idle", "unknown"];
const channel = new BroadcastChannel("agtmux");
let connected = false;
let refused = false;
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
  refused = message.type === "refused";
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
      ? "your login has expired; open the address that `agtmux web url` prints"
      : "the daemon does not respond; retrying";
}

function broadcast(message) {
  applyMessage(message);
  channel.postMessage(message);
}

// Resolves when the daemon rejects the stream. The browser resumes a broken connection by itself.
function listen() {
  const source = new EventSource("/v1/events");
  let fresh = true;
  listening = true;
  source.onopen = () => {
    // A new stream starts with a snapshot. A resumed one continues with changes or a reset.
    broadcast(fresh ? { type: "all", items: [] } : { type: "found" });
    fresh = false;
  };
  const pass = (type) => (event) => {
    const { item } = JSON.parse(event.data);
    if (item) broadcast({ type, item });
  };
  source.addEventListener("snapshot", pass("upsert"));
  source.addEventListener("upsert", pass("upsert"));
  source.addEventListener("remove", pass("remove"));
  source.addEventListener("reset", () => broadcast({ type: "all", items: [] }));
  return new Promise((resolve) => {
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return broadcast({ type: "lost" });
      broadcast({ type: "refused" });
      listening = false;
      resolve();
    };
  });
}

async function listenExclusively() {
  for (;;) {
    await navigator.locks.request("agtmux-listener", listen);
    await new Promise((again) => setTimeout(again, 3000));
  }
}

channel.addEventListener("message", (event) => {
  if (event.data.type !== "new") applyMessage(event.data);
  else if (listening && connected) channel.postMessage({ type: "all", items: [...agents.values()] });
});
channel.postMessage({ type: "new" });
listenExclusively();
setInterval(draw, 10000);
