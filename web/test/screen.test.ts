import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScreenUpdate, StyledSpan } from "../src/api/schema.ts";
import { spanClass, spanStyle } from "../src/parts/terminal.tsx";
import { applyUpdate } from "../src/state/screen.ts";

const update = (height: number, rows: [number, string][], full = false): ScreenUpdate => ({
  schema_version: 2,
  full,
  width: 80,
  height,
  cursor: null,
  full_screen: false,
  title: null,
  rows: rows.map(([row, text]) => ({ row, spans: [{ text }] })),
});

const texts = (rows: readonly (readonly StyledSpan[])[]) =>
  rows.map((row) => row.map((span) => span.text).join(""));

test("an update replaces only its rows, and the other rows stay the same objects", () => {
  const first = applyUpdate(
    null,
    update(
      3,
      [
        [0, "a"],
        [1, "b"],
        [2, "c"],
      ],
      true,
    ),
  );
  const second = applyUpdate(first, update(3, [[1, "x"]]));
  assert.deepEqual(texts(second.rows), ["a", "x", "c"]);
  assert.equal(second.rows[0], first.rows[0]);
  assert.deepEqual(texts(first.rows), ["a", "b", "c"]);
});

test("a screen follows its size, and rows beyond it are dropped", () => {
  const first = applyUpdate(
    null,
    update(
      2,
      [
        [0, "a"],
        [1, "b"],
      ],
      true,
    ),
  );
  assert.deepEqual(texts(applyUpdate(first, update(1, [])).rows), ["a"]);
  assert.deepEqual(
    texts(
      applyUpdate(
        first,
        update(3, [
          [2, "c"],
          [9, "z"],
        ]),
      ).rows,
    ),
    ["a", "b", "c"],
  );
});

test("the first colours are classes and the others exact colours", () => {
  assert.equal(spanClass({ text: "x", bold: true, fg: 1, bg: 15 }), "bold fg-1 bg-15");
  assert.deepEqual(spanStyle({ text: "x", fg: 208, bg: 232 }), {
    color: "rgb(255 135 0)",
    backgroundColor: "rgb(8 8 8)",
  });
  assert.deepEqual(spanStyle({ text: "x", fg: "#0a0b0c" }), { color: "#0a0b0c" });
  assert.deepEqual(spanStyle({ text: "x", reverse: true, fg: 208 }), { backgroundColor: "rgb(255 135 0)" });
});

test("a colour that is not a colour is not used", () => {
  assert.deepEqual(spanStyle({ text: "x", fg: "url(http://evil)", bg: "red;x" }), {});
});
