// What a browser without a login sees.
import { loginProblem } from "../state/login.ts";

export function LoginPage() {
  return (
    <main class="login">
      <img src="/icon.svg" alt="" width="64" height="64" />
      <h1>agtmux</h1>
      {loginProblem.value !== null && (
        <p class="login-problem" role="status">
          {loginProblem.value}
        </p>
      )}
      <p>
        To log this browser in, run this command on the machine with your agents and open the link that it
        prints:
      </p>
      <pre class="command">agtmux web</pre>
      <p class="muted">
        The link works once, within two minutes. With <code>--read-only</code> this browser can look, but not
        act.
      </p>
    </main>
  );
}
