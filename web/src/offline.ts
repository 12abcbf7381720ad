// Keeps a copy of the page for times without a connection.

import { effect } from "@preact/signals";
import { connection } from "./api/live.ts";

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): {
    createScriptURL(url: string): string;
  };
}

const script = "/service-worker.js";

/** Stores the copy, and renews it, when the daemon can be reached. */
export function keepOfflineCopy(): void {
  if (!("serviceWorker" in navigator)) return;
  // The page may load no script from a text, except this one.
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = types?.createPolicy("agtmux", { createScriptURL: () => script });
  const url = policy ? policy.createScriptURL(script) : script;
  effect(() => {
    if (connection.value.state !== "live") return;
    navigator.serviceWorker.register(url).catch(() => {
      // Without the copy, the page needs a connection to open.
    });
  });
}
