// The login of this browser.
import { signal } from "@preact/signals";

const storage = globalThis.localStorage as Storage | undefined;

export const token = signal<string | null>(storage?.getItem("token") ?? null);
export const readOnly = signal(storage?.getItem("read-only") === "true");
/** Why this browser is not logged in. */
export const loginProblem = signal<string | null>(null);

/** The version of the daemon that answered last, and of the daemon that this page came from. */
export const daemonVersion = signal<string | null>(null);

export function startLogin(newToken: string, isReadOnly: boolean): void {
  storage?.setItem("token", newToken);
  storage?.setItem("read-only", String(isReadOnly));
  token.value = newToken;
  readOnly.value = isReadOnly;
  loginProblem.value = null;
}

export function endLogin(why: string): void {
  if (storage?.getItem("token") === token.value) storage?.removeItem("token");
  token.value = null;
  loginProblem.value = why;
}

/** Another tab has logged in or out. */
export function followOtherTabs(): void {
  addEventListener("storage", (event) => {
    if (event.key !== "token" && event.key !== "read-only") return;
    token.value = storage?.getItem("token") ?? null;
    readOnly.value = storage?.getItem("read-only") === "true";
    if (token.value !== null) loginProblem.value = null;
  });
}
