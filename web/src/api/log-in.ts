// Exchanges the code in the address for a token.
import { endLogin, loginProblem, startLogin, token } from "../state/login.ts";
import { post, RequestFailure } from "./http.ts";
import type { WebSession } from "./schema.ts";

export async function logInWithCode(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) return;
  // The code works once, so it is removed from the address first.
  history.replaceState(null, "", location.pathname);
  const before = token.value;
  token.value = null;
  try {
    const session = await post<WebSession>("/v1/web/login", { code });
    startLogin(session.token, session.read_only);
  } catch (error) {
    token.value = before;
    const why = error instanceof RequestFailure ? error.message : String(error);
    if (before === null) endLogin(why);
    else loginProblem.value = why;
  }
}
