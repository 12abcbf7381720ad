use super::operations::Operation;

const HEAD: &str = r#"// A client of the agtmux API. It needs only the Node standard library.
// Generated from the OpenAPI document by `make contract`.

import { request, type IncomingMessage } from "node:http";

export type Query = Record<string, string | number | boolean | undefined>;
export type ServerSentEvent = { id?: string; event?: string; data: unknown };
export type Where = { socketPath: string } | { host: string; port: number; token: string };

/** An error response of the daemon, with its code and a hint. */
export class AgtmuxError extends Error {
  status: number;
  code?: string;
  hint?: string;

  constructor(status: number, body: { message?: string; code?: string; error_type?: string; hint?: string }) {
    super(body.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = body.code ?? body.error_type;
    this.hint = body.hint;
  }
}

/** Connects to the daemon's unix socket, or to TCP with a token. */
export class Client {
  #where: Where;

  constructor(where: Where) {
    this.#where = where;
  }

  #open(method: string, path: string, query?: Query, body?: unknown): Promise<IncomingMessage> {
    const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
    const headers: Record<string, string> = { "content-type": "application/json", "x-agtmux": "1" };
    if ("token" in this.#where) headers.authorization = `Bearer ${this.#where.token}`;
    const options = { ...this.#where, method, path: search ? `${path}?${search}` : path, headers };
    return new Promise((resolve, reject) => {
      const asked = request(options, resolve);
      asked.on("error", reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  async #ask(method: string, path: string, query?: Query, body?: unknown): Promise<any> {
    const response = await this.#open(method, path, query, body);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    const answer = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if ((response.statusCode ?? 500) >= 400) throw new AgtmuxError(response.statusCode ?? 500, answer);
    return answer;
  }

  async #text(method: string, path: string, query?: Query): Promise<string> {
    const response = await this.#open(method, path, query);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    if ((response.statusCode ?? 500) >= 400) throw new AgtmuxError(response.statusCode ?? 500, {});
    return Buffer.concat(chunks).toString("utf8");
  }

  async *#events(method: string, path: string, query?: Query): AsyncGenerator<ServerSentEvent> {
    const response = await this.#open(method, path, query);
    if ((response.statusCode ?? 500) >= 400) throw new AgtmuxError(response.statusCode ?? 500, {});
    let rest = "";
    let event: Record<string, string> = {};
    for await (const chunk of response.setEncoding("utf8")) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const colon = line.indexOf(": ");
        if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 2);
        else if (line === "" && Object.keys(event).length > 0) {
          yield { id: event.id, event: event.event, data: event.data ? JSON.parse(event.data) : null };
          event = {};
        }
      }
    }
  }
"#;

pub(crate) fn client(operations: &[Operation]) -> String {
    let methods: Vec<String> = operations.iter().map(method).collect();
    format!("{HEAD}\n{}}}\n", methods.join("\n"))
}

/// `get_past_events` becomes `getPastEvents`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        name + &first.into_iter().chain(letters).collect::<String>()
    })
}

fn method(operation: &Operation) -> String {
    let Operation { name, method, path, summary, in_path, has_query, has_body, streams, is_text } = operation;
    let mut parameters: Vec<String> = in_path.iter().map(|name| format!("{}: string", camel(name))).collect();
    parameters.extend(has_body.then(|| "body: unknown".to_owned()));
    parameters.extend(has_query.then(|| "query: Query = {}".to_owned()));
    let path = in_path.iter().fold(path.clone(), |path, name| {
        path.replace(&format!("{{{name}}}"), &format!("${{encodeURIComponent({})}}", camel(name)))
    });
    let path = if in_path.is_empty() { format!("\"{path}\"") } else { format!("`{path}`") };
    let query = if *has_query { "query" } else { "undefined" };
    let body = if *has_body { ", body" } else { "" };
    let (call, answer) = match (streams, is_text) {
        (true, _) => ("#events", "AsyncGenerator<ServerSentEvent>"),
        (_, true) => ("#text", "Promise<string>"),
        _ => ("#ask", "Promise<any>"),
    };
    format!(
        "  /** {summary}. */\n  {}({}): {answer} {{\n    return this.{call}(\"{method}\", {path}, {query}{body});\n  }}\n",
        camel(name),
        parameters.join(", ")
    )
}
