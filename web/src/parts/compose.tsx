// The send box and the key bar of an agent.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { failureText, pressKeys, proofText, sendText } from "../api/actions.ts";
import { connection } from "../api/live.ts";
import type { PaneItem } from "../api/schema.ts";
import { count } from "../text.ts";
import { Outcome } from "./basics.tsx";
import { Icon } from "./icons.tsx";

interface Result {
  text: string;
  isError: boolean;
}

/** Keys with their names in tmux. */
const keys: readonly [label: string, name: string, spoken: string][] = [
  ["Esc", "Escape", "Esc"],
  ["Tab", "Tab", "Tab"],
  ["⇧Tab", "BTab", "⇧Tab, Shift and Tab"],
  ["↑", "Up", "Up"],
  ["↓", "Down", "Down"],
  ["←", "Left", "Left"],
  ["→", "Right", "Right"],
  ["⏎", "Enter", "Enter"],
  ["^C", "C-c", "^C, Control and C"],
  ...["1", "2", "3", "4", "5", "6", "7", "8", "9"].map((n): [string, string, string] => [n, n, n]),
];

export function Compose({ item }: { item: PaneItem }) {
  const result = useSignal<Result | null>(null);
  const busy = useSignal(false);
  const run = async (action: () => Promise<string | null>): Promise<boolean> => {
    if (busy.value) return false;
    busy.value = true;
    result.value = null;
    let isDone = true;
    try {
      const text = await action();
      result.value = text === null ? null : { text, isError: false };
    } catch (error) {
      result.value = { text: failureText(error), isError: true };
      isDone = false;
    }
    busy.value = false;
    return isDone;
  };
  const locked = connection.value.state !== "live";
  return (
    <div class="compose">
      <Outcome text={result.value?.text ?? null} isError={result.value?.isError ?? false} />
      <KeyBar item={item} locked={locked || busy.value} run={run} />
      <SendBox item={item} locked={locked} busy={busy.value} run={run} />
    </div>
  );
}

interface PartProps {
  item: PaneItem;
  locked: boolean;
  run: (action: () => Promise<string | null>) => Promise<boolean>;
}

function KeyBar({ item, locked, run }: PartProps) {
  return (
    <div class="keys" role="toolbar" aria-label="Keys">
      {keys.map(([label, name, spoken]) => (
        <button
          type="button"
          key={name}
          aria-label={spoken}
          data-key={name}
          disabled={locked}
          onClick={() => void run(() => pressKeys(item, [name]).then(() => null))}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

function SendBox({ item, locked, busy, run }: PartProps & { busy: boolean }) {
  const text = useSignal("");
  const field = useRef<HTMLTextAreaElement>(null);
  const asks = Boolean(item.dialog);
  const submit = async () => {
    if (!text.value.trim() || locked || asks) return;
    const isDone = await run(async () => {
      const done = await sendText(item, text.value);
      const tries = done.attempts > 1 ? ` after ${count(done.attempts, "try", "tries")}` : "";
      return `Submitted, ${proofText(done.verified)}${tries}.`;
    });
    // A text that was not taken stays, so that it is not lost.
    if (isDone) text.value = "";
    resize(field.current);
  };
  return (
    <form
      class="send-box"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <textarea
        ref={field}
        rows={1}
        aria-label="Text for the agent"
        placeholder={asks ? "Answer the question first" : "Write to the agent"}
        disabled={asks}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          resize(event.currentTarget);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
          event.preventDefault();
          void submit();
        }}
      />
      <button
        type="submit"
        class="button send"
        aria-label={busy ? "Sending" : "Send"}
        disabled={locked || busy || asks || !text.value.trim()}
      >
        {busy ? <span class="spinner" /> : <Icon name="send" />}
      </button>
    </form>
  );
}

/** Makes the field as high as its text. */
function resize(field: HTMLTextAreaElement | null): void {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}
