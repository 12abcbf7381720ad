// The live screen of a pane as text of the page: rows scroll, and can be selected and copied.
import { useSignal } from "@preact/signals";
import { memo } from "preact/compat";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { reference } from "../api/actions.ts";
import type { SpanColour, StyledSpan } from "../api/schema.ts";
import { LiveScreen, type Screen } from "../state/screen.ts";

/** The width of a character in a monospaced font, relative to the font size. */
const characterWidth = 0.602;
const smallest = 8;
const largest = 13;

export function Terminal({ runtimeId }: { runtimeId: string }) {
  const live = useMemo(() => new LiveScreen(reference(runtimeId)), [runtimeId]);
  useEffect(() => {
    live.start();
    return () => live.end();
  }, [live]);
  const box = useRef<HTMLDivElement>(null);
  const screen = live.screen.value;
  const fontSize = useFontSize(box, screen?.width ?? null);
  usePauseWhileReading(live, box);
  return (
    <section class="terminal" aria-label="Screen of the agent">
      <div class="terminal-box" ref={box} tabIndex={0} role="group" aria-label="Live screen">
        <div class="terminal-rows" style={{ fontSize: `${fontSize}px` }} data-rows={screen?.rows.length ?? 0}>
          {screen && <Rows screen={screen} />}
        </div>
      </div>
      {live.problem.value !== null && (
        <p class="terminal-note" role="status">
          {screen === null ? live.problem.value : `Not live: ${live.problem.value}`}
        </p>
      )}
      {live.paused.value && (
        <button type="button" class="terminal-resume" onClick={() => resume(live)}>
          {live.hasNews.value ? "Paused · new output below" : "Paused"} · Resume
        </button>
      )}
    </section>
  );
}

function resume(live: LiveScreen): void {
  document.getSelection()?.removeAllRanges();
  live.resume();
}

/** The font size at which a whole row fits, within limits. A wider row scrolls. */
function useFontSize(box: { current: HTMLDivElement | null }, columns: number | null): number {
  const width = useSignal(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      width.value = element.clientWidth - 24;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [box, width]);
  if (columns === null || width.value <= 0) return largest;
  const fitting = width.value / (columns * characterWidth);
  return Math.round(Math.min(largest, Math.max(smallest, fitting)) * 4) / 4;
}

/** Text that a person has selected must not change. */
function usePauseWhileReading(live: LiveScreen, box: { current: HTMLDivElement | null }): void {
  useEffect(() => {
    const onSelection = () => {
      const selection = document.getSelection();
      const isInside = selection?.anchorNode && box.current?.contains(selection.anchorNode);
      if (isInside && !selection.isCollapsed) live.pause();
      else if (live.paused.value && (!selection || selection.isCollapsed)) live.resume();
    };
    document.addEventListener("selectionchange", onSelection);
    return () => document.removeEventListener("selectionchange", onSelection);
  }, [live, box]);
}

function Rows({ screen }: { screen: Screen }) {
  const last = screen.rows.findLastIndex((row) => row.length > 0);
  const used = screen.rows.slice(0, Math.max(last, screen.cursor?.row ?? 0) + 1);
  return (
    <>
      {used.map((spans, at) => (
        <Row key={at} spans={spans} cursor={screen.cursor?.row === at ? screen.cursor.column : null} />
      ))}
    </>
  );
}

const Row = memo(function Row({ spans, cursor }: { spans: readonly StyledSpan[]; cursor: number | null }) {
  return (
    <div class="terminal-row">
      {spans.map((span, at) => (
        <span key={at} class={spanClass(span)} style={spanStyle(span)}>
          {span.text}
        </span>
      ))}
      {spans.length === 0 && "\n"}
      {cursor !== null && <span class="cursor" style={{ left: `${cursor}ch` }} aria-hidden="true" />}
    </div>
  );
});

const flags = ["bold", "dim", "italic", "underline", "strike"] as const;

export function spanClass(span: StyledSpan): string {
  const names: string[] = flags.filter((flag) => span[flag]);
  const [fg, bg] = span.reverse ? [span.bg, span.fg] : [span.fg, span.bg];
  if (span.reverse) names.push("reverse");
  if (typeof fg === "number" && fg < 16) names.push(`fg-${fg}`);
  if (typeof bg === "number" && bg < 16) names.push(`bg-${bg}`);
  return names.join(" ");
}

export function spanStyle(span: StyledSpan): Record<string, string> {
  const [fg, bg] = span.reverse ? [span.bg, span.fg] : [span.fg, span.bg];
  const style: Record<string, string> = {};
  const [color, backgroundColor] = [exactColour(fg), exactColour(bg)];
  if (color) style["color"] = color;
  if (backgroundColor) style["backgroundColor"] = backgroundColor;
  return style;
}

/** The colours that the style sheet does not name. */
function exactColour(colour: SpanColour | null | undefined): string | null {
  if (colour === null || colour === undefined) return null;
  if (typeof colour === "string") return /^#[0-9a-f]{6}$/.test(colour) ? colour : null;
  if (colour < 16) return null;
  if (colour >= 232) return grey(8 + (colour - 232) * 10);
  const part = (n: number) => (n === 0 ? 0 : 55 + n * 40);
  const index = colour - 16;
  return `rgb(${part(Math.floor(index / 36))} ${part(Math.floor(index / 6) % 6)} ${part(index % 6)})`;
}

const grey = (level: number) => `rgb(${level} ${level} ${level})`;
