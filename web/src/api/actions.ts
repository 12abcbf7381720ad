// Actions on agents. Each carries the runtime, and an answer also the dialog that the person saw: the daemon refuses
// an action if the agent or its dialog has changed.
import { post, RequestFailure } from "./http.ts";
import type {
  ActionOutcomeKillReport,
  ActionOutcomeOutputReport,
  ActionOutcomeRespondReport,
  ActionOutcomeSendReport,
  DialogAnswer,
  KillSignal,
  PaneItem,
  Verification,
} from "./schema.ts";

const client = "web";

const randomName = () =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");

export const reference = (runtimeId: string) => `runtime:${runtimeId}`;

function guards(item: PaneItem) {
  const runtime = item.runtime_id ?? "";
  return { ref: reference(runtime), if_runtime: runtime, request_ref: randomName(), client };
}

export function respond(item: PaneItem, fingerprint: string, answer: DialogAnswer) {
  const body = { ...guards(item), if_dialog: fingerprint, answer };
  return post<ActionOutcomeRespondReport>("/v1/actions/respond", body);
}

export function sendText(item: PaneItem, text: string) {
  return post<ActionOutcomeSendReport>("/v1/actions/send", { ...guards(item), text });
}

export function pressKeys(item: PaneItem, keys: string[]) {
  return post<ActionOutcomeSendReport>("/v1/actions/send", { ...guards(item), keys });
}

export function kill(item: PaneItem, signal: KillSignal) {
  return post<ActionOutcomeKillReport>("/v1/actions/kill", { ...guards(item), signal });
}

export function output(item: PaneItem, lines: number) {
  const { request_ref: _, ...rest } = guards(item);
  return post<ActionOutcomeOutputReport>("/v1/actions/view-output", { ...rest, lines, again: true });
}

export function markSeen(item: PaneItem) {
  return post<unknown>("/v1/actions/seen", { ref: reference(item.runtime_id ?? "") });
}

const proofs: Record<Verification, string> = {
  confirmed: "confirmed",
  inconclusive: "not confirmed: look at the screen",
  failed: "not taken",
};

export const proofText = (verified: Verification) => proofs[verified];

/** What to tell a person about a failed request. */
export function failureText(error: unknown): string {
  if (!(error instanceof RequestFailure)) return String(error);
  if (error.code === "E_STATE_CHANGED" || error.code === "E_RUNTIME_STALE") {
    return `Nothing was typed: ${error.message}`;
  }
  return error.hint ? `${error.message} (${error.hint})` : error.message;
}
