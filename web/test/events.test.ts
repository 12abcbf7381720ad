import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "../src/api/backoff.ts";
import { EventParser, readEvents } from "../src/api/events.ts";

test("events are read from any division of the stream", () => {
  const stream = 'event: upsert\nid: 7\ndata: {"a":\ndata: 1}\n\n:\nid: 9\n\n';
  for (let cut = 0; cut <= stream.length; cut++) {
    const parser = new EventParser();
    const events = [...parser.push(stream.slice(0, cut)), ...parser.push(stream.slice(cut))];
    assert.deepEqual(events, [
      { type: "upsert", id: "7", data: '{"a":\n1}' },
      { type: "", id: "9", data: "" },
    ]);
  }
});

test("a character that is divided between two parts of the stream stays whole", async () => {
  const bytes = new TextEncoder().encode("data: é日\n\n");
  const parts = [...bytes].map((byte) => Uint8Array.of(byte));
  const response = new Response(
    new ReadableStream({
      pull: (controller) => {
        const part = parts.shift();
        if (part) controller.enqueue(part);
        else controller.close();
      },
    }),
  );
  const seen: string[] = [];
  await readEvents(response, (events) => seen.push(...events.map((event) => event.data)));
  assert.deepEqual(seen, ["é日"]);
});

test("delays grow to a limit and begin again after a success", () => {
  const backoff = new Backoff();
  const delays = Array.from({ length: 10 }, () => backoff.next(1));
  assert.deepEqual(delays.slice(0, 4), [500, 1000, 2000, 4000]);
  assert.equal(delays.at(-1), 15_000);
  backoff.reset();
  assert.equal(backoff.next(0), 375);
});
