// Ends an agent, after a question.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { failureText, kill } from "../api/actions.ts";
import type { KillSignal, PaneItem } from "../api/schema.ts";
import { agentName, Outcome, placeOf } from "./basics.tsx";
import { Icon } from "./icons.tsx";

const signals: readonly [KillSignal, string, string][] = [
  ["INT", "Interrupt", "like Ctrl-C in its terminal"],
  ["TERM", "End", "asks the agent to end"],
  ["KILL", "Kill", "ends it at once; it cannot save anything"],
];

export function KillButton({ item }: { item: PaneItem }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const result = useSignal<{ text: string; isError: boolean } | null>(null);
  const act = async (signal: KillSignal) => {
    try {
      const done = await kill(item, signal);
      result.value = { text: done.ended ? "The agent has ended." : "The agent still runs.", isError: false };
      if (done.ended) dialog.current?.close();
    } catch (error) {
      result.value = { text: failureText(error), isError: true };
    }
  };
  const open = () => {
    result.value = null;
    dialog.current?.showModal();
  };
  return (
    <>
      <button type="button" class="icon-button" aria-label="End this agent…" onClick={open}>
        <Icon name="stop" />
      </button>
      <dialog ref={dialog} class="modal" aria-labelledby="kill-title">
        <h2 id="kill-title">
          End <bdi>{agentName(item)}</bdi>?
        </h2>
        <p class="place">
          <bdi>{placeOf(item)}</bdi>
        </p>
        <div class="options">
          {signals.map(([signal, name, meaning]) => (
            <button type="button" key={signal} class="option danger" onClick={() => void act(signal)}>
              <span>
                <strong>{name}</strong> <span class="muted">{meaning}</span>
              </span>
            </button>
          ))}
          <button type="button" class="option" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </div>
        <Outcome text={result.value?.text ?? null} isError={result.value?.isError ?? false} />
      </dialog>
    </>
  );
}
