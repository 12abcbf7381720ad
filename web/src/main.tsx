import { effect } from "@preact/signals";
import { options, render } from "preact";
import { startLive } from "./api/live.ts";
import { logInWithCode } from "./api/log-in.ts";
import { App } from "./app.tsx";
import { startNotifications } from "./notifications.ts";
import { keepOfflineCopy } from "./offline.ts";
import { startClock } from "./state/clock.ts";
import { waiting } from "./state/fleet.ts";
import { followOtherTabs } from "./state/login.ts";
import { followAddress } from "./state/route.ts";

// Many events may arrive between two frames. They are drawn together.
options.debounceRendering = (draw) => void requestAnimationFrame(draw);

followOtherTabs();
followAddress();
startClock();
startNotifications();
addEventListener("hashchange", () => void logInWithCode());
effect(() => {
  document.title = waiting.value.length > 0 ? `(${waiting.value.length}) agtmux` : "agtmux";
});
const root = document.getElementById("app");
if (root) render(<App />, root);
void logInWithCode().then(startLive);
keepOfflineCopy();
