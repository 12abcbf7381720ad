// The page that the address names.
import { computed, signal } from "@preact/signals";

export type PageName = "inbox" | "agents" | "agent" | "tasks" | "task" | "hosts" | "audit";

const names: readonly PageName[] = ["inbox", "agents", "agent", "tasks", "task", "hosts", "audit"];

export interface Route {
  page: PageName;
  /** The decoded parts after the name of the page. */
  rest: string[];
}

export function parseRoute(hash: string): Route {
  const parts = hash.replace(/^#\/?/, "").split("/");
  const page = names.find((name) => name === parts[0]) ?? "inbox";
  return { page, rest: parts.slice(1).map(decode) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function link(page: PageName, ...rest: string[]): string {
  return `#/${[page, ...rest.map(encodeURIComponent)].join("/")}`;
}

const hash = signal(globalThis.location?.hash ?? "");

export const route = computed(() => parseRoute(hash.value));

export function followAddress(): void {
  hash.value = location.hash;
  addEventListener("hashchange", () => {
    hash.value = location.hash;
    scrollTo(0, 0);
  });
}
