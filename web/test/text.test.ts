import assert from "node:assert/strict";
import { test } from "node:test";
import { lastOfEach } from "../src/pages/tasks.tsx";
import { said } from "../src/parts/insight.tsx";
import { link, parseRoute } from "../src/state/route.ts";
import { duration, oneLine, shortPath, visible } from "../src/text.ts";

test("hidden characters of foreign text are visible", () => {
  assert.equal(visible("a\u202eb\u0007\n\tc"), "a\\u{202e}b\\u{7}\n\tc");
  assert.equal(visible("Ünïcode 日本 ✳"), "Ünïcode 日本 ✳");
  assert.equal(oneLine(" two\n lines "), "two lines");
});

test("a very long text is cut", () => {
  const shown = visible("x".repeat(1_000_000));
  assert.ok(shown.length < 21_000 && shown.endsWith("(980000 more)"));
  assert.equal(oneLine("x".repeat(1_000_000)).length, 500);
});

test("durations have one unit", () => {
  assert.deepEqual([-5, 59_000, 60_000, 7_200_000, 200_000_000].map(duration), [
    "0 s",
    "59 s",
    "1 min",
    "2 h",
    "2 d",
  ]);
});

test("a long path is shortened to its end", () => {
  assert.equal(shortPath("/home/me/src/shop"), "…/src/shop");
  assert.equal(shortPath("/srv/shop"), "/srv/shop");
});

test("names of sessions and tasks survive the way through the address", () => {
  const names = ["a/b", "50% & <b>", "日本"];
  assert.deepEqual(parseRoute(link("task", ...names)), { page: "task", rest: names });
  assert.deepEqual(parseRoute("#/nothing"), { page: "inbox", rest: [] });
  assert.deepEqual(parseRoute("#/task/%zz").rest, ["%zz"]);
});

test("an assertion is described in words", () => {
  assert.equal(said("asks_nothing"), "asks nothing");
  assert.equal(said({ asks: "approval" }), "asks approval");
});

test("a task has the state of its last event", () => {
  const event = (seq: number, task: string, type: string, more = {}) =>
    ({ seq, task, type, session: "s", window_id: "@1", recent_output: [], ...more }) as never;
  const tasks = lastOfEach([
    event(1, "build", "started"),
    event(3, "build", "exited", { exit_code: 2 }),
    event(2, "test", "started"),
  ]);
  assert.deepEqual(
    tasks.map((task) => [task.event.task, task.name, task.tone]),
    [
      ["build", "Failed with 2", "error"],
      ["test", "Running", "running"],
    ],
  );
});
