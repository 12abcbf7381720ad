// The time that ages are counted from. It stands still while the page is hidden.
import { signal } from "@preact/signals";

/** The time in milliseconds, once a second and once a minute. */
export const second = signal(Date.now());
export const minute = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (document.hidden) return;
    second.value = Date.now();
    if (second.value - minute.value >= 60_000) minute.value = second.value;
  }, 1000);
  addEventListener("visibilitychange", () => {
    second.value = Date.now();
    minute.value = second.value;
  });
}
