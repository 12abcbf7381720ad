// Data that a page requests when it opens, and again when `version` changes.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { failureText } from "../api/actions.ts";

export interface Loaded<T> {
  data: T | null;
  problem: string | null;
}

export function useLoaded<T>(load: () => Promise<T>, key: string, version: unknown): Signal<Loaded<T>> {
  const loaded = useSignal<Loaded<T>>({ data: null, problem: null });
  // the key and the version name what `load` requests
  useEffect(() => {
    let isCurrent = true;
    load()
      .then((data) => {
        if (isCurrent) loaded.value = { data, problem: null };
      })
      .catch((error: unknown) => {
        if (isCurrent) loaded.value = { ...loaded.value, problem: failureText(error) };
      });
    return () => {
      isCurrent = false;
    };
  }, [key, version]);
  return loaded;
}

export function Problem({ text }: { text: string | null }) {
  return text === null ? null : (
    <p class="outcome is-error" role="status">
      {text}
    </p>
  );
}
