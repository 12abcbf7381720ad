// The live screen of one pane.
import { signal } from "@preact/signals";
import { Backoff } from "../api/backoff.ts";
import { readEvents } from "../api/events.ts";
import { RequestFailure, send } from "../api/http.ts";
import type { ScreenCursor, ScreenUpdate, StyledSpan } from "../api/schema.ts";

export interface Screen {
  rows: readonly (readonly StyledSpan[])[];
  width: number | null;
  cursor: ScreenCursor | null;
}

/** The screen after an update. Rows that did not change stay the same objects, so that they are not drawn again. */
export function applyUpdate(before: Screen | null, update: ScreenUpdate): Screen {
  const rows = update.full || before === null ? [] : before.rows.slice(0, update.height);
  while (rows.length < update.height) rows.push([]);
  for (const { row, spans } of update.rows) {
    if (row < update.height) rows[row] = spans;
  }
  return { rows, width: update.width ?? null, cursor: update.cursor ?? null };
}

/** Follows the screen of a pane while the page is visible. */
export class LiveScreen {
  readonly screen = signal<Screen | null>(null);
  /** Why no screen is shown, or why the shown one is not current. */
  readonly problem = signal<string | null>(null);
  /** Whether the reader has paused the screen, and whether it has changed since. */
  readonly paused = signal(false);
  readonly hasNews = signal(false);

  private latest: Screen | null = null;
  private stop: AbortController | null = null;
  private readonly onVisibility = () => (document.hidden ? this.disconnect() : this.connect());

  constructor(private readonly reference: string) {}

  start(): void {
    document.addEventListener("visibilitychange", this.onVisibility);
    this.onVisibility();
  }

  end(): void {
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.disconnect();
  }

  pause(): void {
    this.paused.value = true;
  }

  resume(): void {
    this.paused.value = false;
    this.hasNews.value = false;
    this.screen.value = this.latest;
  }

  private connect(): void {
    if (this.stop !== null) return;
    this.stop = new AbortController();
    void this.follow(this.stop.signal);
  }

  private disconnect(): void {
    this.stop?.abort();
    this.stop = null;
  }

  private async follow(stop: AbortSignal): Promise<void> {
    const backoff = new Backoff();
    while (!stop.aborted) {
      try {
        const query = new URLSearchParams({ ref: this.reference, client: "web" });
        const response = await send(`/v1/screen?${query}`, { signal: stop });
        backoff.reset();
        let ended = false;
        await readEvents(response, (events) => {
          for (const event of events) {
            if (event.type === "screen") this.show(JSON.parse(event.data));
            if (event.type === "end") {
              ended = true;
              this.problem.value = JSON.parse(event.data).message;
            }
          }
        });
        if (ended) return;
        this.problem.value = "The connection was lost.";
      } catch (error) {
        if (stop.aborted) return;
        this.problem.value = error instanceof Error ? error.message : String(error);
        // The pane does not exist, or may not be read.
        if (error instanceof RequestFailure && error.status >= 400 && error.status < 500) return;
      }
      await new Promise((resolve) => setTimeout(resolve, backoff.next()));
    }
  }

  private show(update: ScreenUpdate): void {
    this.latest = applyUpdate(this.latest, update);
    this.problem.value = null;
    if (this.paused.value) this.hasNews.value = true;
    else this.screen.value = this.latest;
  }
}
