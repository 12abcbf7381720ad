// Notifications of the browser while a tab of the dashboard is open.
import { effect, signal } from "@preact/signals";
import { leads } from "./api/live.ts";
import { waiting } from "./state/fleet.ts";
import { oneLine } from "./text.ts";

const supported = "Notification" in globalThis;

export const permission = signal<NotificationPermission | "unsupported">(
  supported ? Notification.permission : "unsupported",
);

export async function allowNotifications(): Promise<void> {
  permission.value = await Notification.requestPermission();
}

const shown = new Map<string, Notification>();
const known = new Set<string>();

/** Notifies once per dialog, and withdraws the notification when the dialog is answered. */
export function startNotifications(): void {
  if (!supported) return;
  effect(() => {
    const open = new Map(
      waiting.value.map((item) => [`${item.runtime_id} ${item.dialog?.fingerprint}`, item]),
    );
    for (const [fingerprint, notification] of shown) {
      if (open.has(fingerprint)) continue;
      notification.close();
      shown.delete(fingerprint);
    }
    for (const [fingerprint, item] of open) {
      if (known.has(fingerprint)) continue;
      known.add(fingerprint);
      if (!leads.value || !document.hidden || permission.value !== "granted") continue;
      const title = `${item.name ?? item.agent_type ?? "An agent"} waits for you`;
      const notification = new Notification(title, {
        body: oneLine(item.dialog?.question ?? ""),
        tag: fingerprint,
        icon: "/icon.svg",
      });
      notification.onclick = () => {
        focus();
        location.hash = "#/inbox";
      };
      shown.set(fingerprint, notification);
    }
    for (const fingerprint of known) if (!open.has(fingerprint)) known.delete(fingerprint);
  });
}
