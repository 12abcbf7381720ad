// Prints every agent that waits for input or approval, with its question. Runs with Node 22.18 or newer:
//
//     node waiting.ts                      over the daemon's socket (AGTMUX_SOCKET)
//     node waiting.ts HOST PORT TOKEN      over TCP

import { Client } from "./agtmux-client.ts";

const [host, port, token] = process.argv.slice(2);
const client = token
  ? new Client({ host, port: Number(port), token })
  : new Client({ socketPath: process.env.AGTMUX_SOCKET ?? "" });
const panes = (await client.getPanes()).items;
for (const pane of panes) {
  if (pane.needs_action) {
    console.log(`${pane.agent_type} in ${pane.identity.pane_id} asks: ${pane.dialog?.question ?? "(unknown question)"}`);
  }
}
console.log(`${panes.length} agents`);
