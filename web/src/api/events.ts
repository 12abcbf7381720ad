// Reads server-sent events from a response. The browser's own EventSource cannot send a token.

export interface ServerEvent {
  type: string;
  /** The number from which a broken stream continues. */
  id: string | null;
  data: string;
}

/** Splits a stream of text into events. */
export class EventParser {
  private text = "";

  /** The complete events after this part of the stream. */
  push(part: string): ServerEvent[] {
    const blocks = (this.text + part.replaceAll("\r\n", "\n")).split("\n\n");
    this.text = blocks.pop() ?? "";
    return blocks.map(parse);
  }
}

function parse(block: string): ServerEvent {
  const event: ServerEvent = { type: "", id: null, data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const field = line.slice(0, colon);
    if (field === "data") data.push(value);
    else if (field === "event") event.type = value;
    else if (field === "id") event.id = value;
  }
  event.data = data.join("\n");
  return event;
}

/** The daemon sends at least a comment every 15 seconds. After this silence, the connection is taken for broken. */
const longestSilence = 35_000;

/** Calls `handle` with the events of each part of the response, until the response ends or is silent for too long. */
export async function readEvents(response: Response, handle: (events: ServerEvent[]) => void): Promise<void> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  const parser = new EventParser();
  for (;;) {
    const silence = setTimeout(() => void reader.cancel(), longestSilence);
    try {
      const { done, value } = await reader.read();
      if (done) return;
      handle(parser.push(decoder.decode(value, { stream: true })));
    } finally {
      clearTimeout(silence);
    }
  }
}
