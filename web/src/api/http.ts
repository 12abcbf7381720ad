// Requests to the daemon. The token is in localStorage and not in a cookie: a browser sends cookies to all ports of a
// host, also to servers of other users.
import { daemonVersion, endLogin, token } from "../state/login.ts";
import type { ApiError } from "./schema.ts";

/** An error that the daemon has returned, or that kept a request from reaching it. */
export class RequestFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;

  constructor(status: number, error: Pick<ApiError, "message"> & Partial<ApiError>) {
    super(error.message);
    this.status = status;
    this.code = error.code ?? "";
    this.hint = error.hint ?? null;
  }
}

export const unreachable = () => new RequestFailure(0, { message: "the daemon does not respond" });

/** Sends a request with the token. Returns the response if it is a success. */
export async function send(path: string, options: RequestInit = {}): Promise<Response> {
  const used = token.value;
  const headers = new Headers(options.headers);
  if (used !== null) headers.set("authorization", `Bearer ${used}`);
  let response: Response;
  try {
    response = await fetch(path, { ...options, headers, redirect: "error", cache: "no-store" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachable();
  }
  const version = response.headers.get("agtmux-version");
  if (version !== null) daemonVersion.value = version;
  if (response.ok) return response;
  if (response.status === 401 && used !== null && used === token.value) {
    endLogin("your login has expired");
  }
  throw new RequestFailure(response.status, await errorOf(response));
}

async function errorOf(response: Response): Promise<ApiError> {
  try {
    const error: unknown = await response.json();
    if (typeof error === "object" && error !== null && "message" in error) return error as ApiError;
  } catch {
    // A proxy may answer with a page of its own.
  }
  return { code: "UNKNOWN", message: `the server answered with status ${response.status}` } as ApiError;
}

export async function get<T>(path: string, query: Record<string, string> = {}): Promise<T> {
  const text = new URLSearchParams(query).toString();
  return (await send(text ? `${path}?${text}` : path)).json();
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json", "x-agtmux": "1" };
  return (await send(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}
