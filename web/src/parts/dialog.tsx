// The question of a waiting agent, and its answers. Every answer is bound to the dialog that is on the screen.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { failureText, proofText, respond } from "../api/actions.ts";
import { connection } from "../api/live.ts";
import type { Dialog, DialogAnswer, PaneItem } from "../api/schema.ts";
import { readOnly } from "../state/login.ts";
import { visible } from "../text.ts";
import { Outcome } from "./basics.tsx";

/** A press this soon after something on the page has moved was meant for something else. */
const readingTime = 350;

/** How long an answered dialog may take to disappear. */
const answerTime = 6000;

interface Answering {
  item: PaneItem;
  dialog: Dialog;
  /** When the cards on the page last moved. */
  movedAt?: { current: number };
}

export function DialogPart({ item, dialog, movedAt }: Answering) {
  const shownAt = useRef(0);
  const outcome = useSignal<{ text: string; isError: boolean } | null>(null);
  const busy = useSignal(false);
  const answered = useSignal<string | null>(null);
  // another dialog begins anew
  useEffect(() => {
    shownAt.current = performance.now();
    outcome.value = null;
    answered.value = null;
  }, [dialog.fingerprint, item.since]);

  const answer = async (given: DialogAnswer) => {
    const since = Math.max(shownAt.current, movedAt?.current ?? 0);
    if (performance.now() - since < readingTime) {
      outcome.value = { text: "The page has just changed. Read it, then press again.", isError: false };
      return;
    }
    if (busy.value) return;
    busy.value = true;
    outcome.value = null;
    try {
      const done = await respond(item, dialog.fingerprint, given);
      answered.value = dialog.fingerprint;
      // If the agent still asks, it can be answered again.
      setTimeout(() => {
        answered.value = null;
      }, answerTime);
      outcome.value = { text: `Answered, ${proofText(done.verified)}.`, isError: done.verified === "failed" };
    } catch (error) {
      outcome.value = { text: failureText(error), isError: true };
    }
    busy.value = false;
  };

  const locked = busy.value || connection.value.state !== "live";
  return (
    <div class="dialog" data-fingerprint={dialog.fingerprint}>
      <p class="question" dir="auto">
        {visible(dialog.question)}
      </p>
      <Subject dialog={dialog} />
      {!readOnly.value && answered.value !== dialog.fingerprint && (
        <Answers dialog={dialog} locked={locked} answer={answer} />
      )}
      {readOnly.value && <Labels dialog={dialog} />}
      <Outcome text={outcome.value?.text ?? null} isError={outcome.value?.isError ?? false} />
    </div>
  );
}

/** What is to be approved, in full. */
function Subject({ dialog }: { dialog: Dialog }) {
  const subject = dialog.subject?.trimEnd();
  if (!subject?.trim()) return null;
  return (
    <>
      <pre class="subject" dir="auto" tabIndex={0} role="region" aria-label="What is to be approved">
        {visible(subject)
          .split("\n")
          .map((line) => (
            <span class={`line ${diffClass(line)}`}>{`${line}\n`}</span>
          ))}
      </pre>
      {dialog.subject_truncated && (
        <p class="warning">
          A part of this is not visible. Approve it in the terminal, where you can see all of it.
        </p>
      )}
    </>
  );
}

function diffClass(line: string): string {
  if (/^\s*\d*\s?\+(?!\+)/.test(line)) return "added";
  return /^\s*\d*\s?-(?!-)\s*\S/.test(line) ? "removed" : "";
}

function Labels({ dialog }: { dialog: Dialog }) {
  return (
    <ol class="labels">
      {dialog.options.map((option) => (
        <li value={option.n} dir="auto">
          {visible(option.label)}
        </li>
      ))}
    </ol>
  );
}

interface AnswersProps {
  dialog: Dialog;
  locked: boolean;
  answer: (given: DialogAnswer) => void;
}

function Answers({ dialog, locked, answer }: AnswersProps) {
  if (dialog.multiple) return <SeveralOptions dialog={dialog} locked={locked} answer={answer} />;
  return (
    <>
      <div class="options">
        {dialog.options.map((option, at) => (
          <button
            type="button"
            class={`option ${at === 0 ? "primary" : ""}`}
            disabled={locked}
            data-option={option.n}
            onClick={() => answer({ option: option.n })}
          >
            <kbd>{option.n}</kbd>
            <span dir="auto">{visible(option.label)}</span>
          </button>
        ))}
        {dialog.options.length === 0 && dialog.kind === "approval" && (
          <>
            <button type="button" class="option primary" disabled={locked} onClick={() => answer("approve")}>
              Approve
            </button>
            <button type="button" class="option" disabled={locked} onClick={() => answer("deny")}>
              Deny
            </button>
          </>
        )}
      </div>
      <FreeText dialog={dialog} locked={locked} answer={answer} />
    </>
  );
}

function SeveralOptions({ dialog, locked, answer }: AnswersProps) {
  const chosen = useSignal<ReadonlySet<number>>(new Set());
  const toggle = (n: number) => {
    const next = new Set(chosen.value);
    if (!next.delete(n)) next.add(n);
    chosen.value = next;
  };
  return (
    <>
      <div class="options">
        {dialog.options.map((option) => (
          <label class="option several">
            <input
              type="checkbox"
              checked={chosen.value.has(option.n)}
              disabled={locked}
              onChange={() => toggle(option.n)}
            />
            <span dir="auto">{visible(option.label)}</span>
          </label>
        ))}
        <button
          type="button"
          class="option primary"
          disabled={locked || chosen.value.size === 0}
          onClick={() => answer({ options: [...chosen.value].sort((a, b) => a - b) })}
        >
          Answer with {chosen.value.size} chosen
        </button>
      </div>
      <FreeText dialog={dialog} locked={locked} answer={answer} />
    </>
  );
}

/** Free text. The daemon refuses it if the dialog takes none. */
function FreeText({ dialog, locked, answer }: AnswersProps) {
  const text = useSignal("");
  const open = useSignal(dialog.options.length === 0 && dialog.kind === "input");
  if (!open.value) {
    return (
      <button type="button" class="quiet" onClick={() => (open.value = true)}>
        Answer in your own words
      </button>
    );
  }
  return (
    <form
      class="free-text"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.value.trim()) answer({ text: text.value });
      }}
    >
      <textarea
        aria-label="Your answer"
        rows={2}
        value={text.value}
        placeholder="Your answer"
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <button type="submit" class="button" disabled={locked || !text.value.trim()}>
        Answer
      </button>
    </form>
  );
}
