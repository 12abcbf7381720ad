"""A client of the agtmux API. It needs only the Python standard library.

Generated from the OpenAPI document by `make contract`.
"""

import http.client
import json
import os
import socket
import urllib.parse


class AgtmuxError(Exception):
    """An error response of the daemon, with its code and a hint."""

    def __init__(self, status, body):
        super().__init__(body.get("message", f"HTTP {status}"))
        self.status = status
        self.code = body.get("code") or body.get("error_type")
        self.hint = body.get("hint")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("agtmux")
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


class Client:
    """Connects to the daemon's unix socket, or to TCP with a token."""

    def __init__(self, socket_path=None, address=None, token=None):
        self._socket_path = socket_path or os.environ.get("AGTMUX_SOCKET")
        self._address = address
        self._token = token

    def _open(self, method, path, query=None, body=None):
        if query:
            path += "?" + urllib.parse.urlencode({k: v for k, v in query.items() if v is not None})
        headers = {"content-type": "application/json", "x-agtmux": "1"}
        if self._address:
            connection = http.client.HTTPConnection(self._address)
            headers["authorization"] = f"Bearer {self._token}"
        else:
            connection = _UnixConnection(self._socket_path)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        if response.status >= 400:
            text = response.read()
            connection.close()
            try:
                raise AgtmuxError(response.status, json.loads(text))
            except ValueError:
                raise AgtmuxError(response.status, {}) from None
        return connection, response

    def _ask(self, method, path, query=None, body=None):
        connection, response = self._open(method, path, query, body)
        with connection.sock or response:
            return json.loads(response.read())

    def _text(self, method, path, query=None):
        connection, response = self._open(method, path, query)
        with connection.sock or response:
            return response.read().decode()

    def _events(self, method, path, query=None):
        """Yields (id, type, data) until the daemon stops."""
        _, response = self._open(method, path, query)
        event = {}
        for line in response:
            line = line.decode().rstrip("\n")
            if not line and event:
                data = event.get("data")
                yield event.get("id"), event.get("event"), json.loads(data) if data else None
                event = {}
            elif ": " in line:
                key, value = line.split(": ", 1)
                event[key] = value

    def add_target(self, body):
        """Add a target and watch it from now on."""
        return self._ask("POST", "/v1/targets", body=body)

    def add_worktree(self, body):
        """Make a worktree for a branch."""
        return self._ask("POST", "/v1/worktrees/add", body=body)

    def attach(self, body):
        """Return everything needed to attach to a pane: its server, session, window and host."""
        return self._ask("POST", "/v1/actions/attach", body=body)

    def cancel_mirror_command(self, body):
        """Interrupt a command with Ctrl-C. Its exit code is then 130."""
        return self._ask("POST", "/v1/mirrors/cancel", body=body)

    def connect_target(self, name):
        """Connect to a target now and return the result."""
        return self._ask("POST", f"/v1/targets/{urllib.parse.quote(name, safe='')}/connect")

    def exec_in_mirror(self, body):
        """Run a command in a shared terminal. Returns as soon as the shell has received the command. With `wait_ms`, waits up
to that much longer for the command to end."""
        return self._ask("POST", "/v1/mirrors/exec", body=body)

    def follow_mirror_activity(self, **query):
        """Stream the commands of the person as server-sent events, from now on or after `after`."""
        return self._events("GET", "/v1/mirrors/activity/stream", query=query)

    def follow_mirror_command(self, **query):
        """Stream the output of a command as server-sent events, and then its end."""
        return self._events("GET", "/v1/mirrors/command/stream", query=query)

    def follow_screen(self, **query):
        """Stream the screen of a pane as rows of styled text."""
        return self._events("GET", "/v1/screen", query=query)

    def follow_task_events(self, **query):
        """Stream task events as server-sent events."""
        return self._events("GET", "/v1/tasks/events/stream", query=query)

    def get_action(self, id):
        """Return the record of one action."""
        return self._ask("GET", f"/v1/actions/{urllib.parse.quote(id, safe='')}")

    def get_adapters(self):
        """List the adapters with their capabilities, health and evidence sources."""
        return self._ask("GET", "/v1/adapters")

    def get_audit(self, **query):
        """List the recorded actions, oldest first."""
        return self._ask("GET", "/v1/audit", query=query)

    def get_availability(self, agent_id):
        """Check whether an agent can be answered."""
        return self._ask("GET", f"/api/respond/{urllib.parse.quote(agent_id, safe='')}/availability")

    def get_caller(self):
        """Return the agent and the pane behind this request."""
        return self._ask("GET", "/v1/caller")

    def get_checkup(self, name):
        """Check what is installed on the host of a target, and suggest commands to run."""
        return self._ask("GET", f"/v1/targets/{urllib.parse.quote(name, safe='')}/doctor")

    def get_ended_agents(self, **query):
        """List the agents of this machine that have ended, the newest end first."""
        return self._ask("GET", "/v1/agents/ended", query=query)

    def get_events(self, **query):
        """Stream changes as server-sent events."""
        return self._events("GET", "/v1/events", query=query)

    def get_explain(self, **query):
        """Explain the state of an agent, with every observation behind it."""
        return self._ask("GET", "/v1/explain", query=query)

    def get_health(self):
        """Return the health of the daemon and of the tmux servers that it watches."""
        return self._ask("GET", "/v1/health")

    def get_history(self, **query):
        """List the state changes of an agent, with the duration of each state."""
        return self._ask("GET", "/v1/history", query=query)

    def get_logins(self):
        """List the browsers that are logged in."""
        return self._ask("GET", "/v1/web/logins")

    def get_metrics(self):
        """Return figures about agents, queues, the database and the targets, for Prometheus."""
        return self._text("GET", "/metrics")

    def get_mirror_activity(self, **query):
        """List the commands that the person ran in a shared terminal, newest last."""
        return self._ask("GET", "/v1/mirrors/activity", query=query)

    def get_mirror_command(self, **query):
        """Return a command and the end of its output. With `wait_ms`, waits for its end."""
        return self._ask("GET", "/v1/mirrors/command", query=query)

    def get_mirror_screen(self, **query):
        """Return the last lines of a shared terminal."""
        return self._ask("GET", "/v1/mirrors/screen", query=query)

    def get_mirrors(self, **query):
        """List shared terminals."""
        return self._ask("GET", "/v1/mirrors", query=query)

    def get_notify_log(self, **query):
        """Return the notification log: what was sent, and what was held back and why. Newest line last."""
        return self._ask("GET", "/v1/notify/log", query=query)

    def get_pane_health(self, **query):
        """Check whether a pane exists and its agent runs."""
        return self._ask("GET", "/v1/actions/health", query=query)

    def get_panes(self, **query):
        """List panes."""
        return self._ask("GET", "/v1/panes", query=query)

    def get_past_events(self, **query):
        """List the last events about an agent, redacted, oldest first."""
        return self._ask("GET", "/v1/history/events", query=query)

    def get_sessions(self, **query):
        """List sessions, with the number of agents in each state."""
        return self._ask("GET", "/v1/sessions", query=query)

    def get_stream(self, **query):
        """Stream sessions, states, turns and availability as server-sent events."""
        return self._events("GET", "/api/events/stream", query=query)

    def get_targets(self):
        """List the targets with their health."""
        return self._ask("GET", "/v1/targets")

    def get_task_events(self, **query):
        """List task events: the newest, or those after `after`."""
        return self._ask("GET", "/v1/tasks/events", query=query)

    def get_task_logs(self, **query):
        """Return the output of a task."""
        return self._ask("GET", "/v1/tasks/logs", query=query)

    def get_tasks(self, **query):
        """List the tasks of a session."""
        return self._ask("GET", "/v1/tasks", query=query)

    def get_windows(self, **query):
        """List windows, with the number of agents in each state."""
        return self._ask("GET", "/v1/windows", query=query)

    def get_worktrees(self, **query):
        """List the worktrees of a repository, with their agents."""
        return self._ask("GET", "/v1/worktrees", query=query)

    def kill(self, body):
        """Interrupt or end an agent."""
        return self._ask("POST", "/v1/actions/kill", body=body)

    def kill_all_tasks(self, body):
        """End all tasks of a session, and the session."""
        return self._ask("POST", "/v1/tasks/kill-all", body=body)

    def last(self, body):
        """Return an agent's last answers."""
        return self._ask("POST", "/v1/actions/last", body=body)

    def mark_seen(self, body):
        """Mark a completed agent as seen."""
        return self._ask("POST", "/v1/actions/seen", body=body)

    def new_agent(self, body):
        """Start an agent in a new window or pane, and send its first prompt when the agent is ready."""
        return self._ask("POST", "/v1/actions/new", body=body)

    def post_event(self, body):
        """Post an event about an agent."""
        return self._ask("POST", "/v1/events", body=body)

    def post_hook(self, event, body):
        """Report a hook event of an agent."""
        return self._ask("POST", f"/hook/{urllib.parse.quote(event, safe='')}", body=body)

    def post_link(self, body):
        """Create a link that logs in one browser, once, within two minutes."""
        return self._ask("POST", "/v1/web/link", body=body)

    def post_login(self, body):
        """Exchange the code of a login link for a bearer token."""
        return self._ask("POST", "/v1/web/login", body=body)

    def post_open(self, body):
        """Open the web port, and create a link that logs in one browser, once, within two minutes."""
        return self._ask("POST", "/v1/web/open", body=body)

    def post_respond(self, agent_id, body):
        """Answer an agent's open dialog."""
        return self._ask("POST", f"/api/respond/{urllib.parse.quote(agent_id, safe='')}", body=body)

    def post_revoke(self, body):
        """End the login of one browser, and its streams."""
        return self._ask("POST", "/v1/web/revoke", body=body)

    def post_stop(self):
        """Close the web port and end all logins."""
        return self._ask("POST", "/v1/web/stop")

    def prune_dead_tasks(self, body):
        """Close the windows of tasks that have ended."""
        return self._ask("POST", "/v1/tasks/prune-dead", body=body)

    def remove_target(self, name):
        """Remove a target."""
        return self._ask("DELETE", f"/v1/targets/{urllib.parse.quote(name, safe='')}")

    def remove_worktree(self, body):
        """Remove a worktree, if that loses no work."""
        return self._ask("POST", "/v1/worktrees/remove", body=body)

    def rename(self, body):
        """Give an agent a name."""
        return self._ask("POST", "/v1/actions/rename", body=body)

    def respond(self, body):
        """Answer an agent's open dialog."""
        return self._ask("POST", "/v1/actions/respond", body=body)

    def restart_task(self, body):
        """Run a task again with the same command and directory."""
        return self._ask("POST", "/v1/tasks/restart", body=body)

    def resume(self, body):
        """Start an ended agent again in its pane, with its session."""
        return self._ask("POST", "/v1/actions/resume", body=body)

    def run_task(self, body):
        """Run a task in its own window. A task with the same name is stopped and replaced in its window."""
        return self._ask("POST", "/v1/tasks/run", body=body)

    def send(self, body):
        """Type a text into an agent and submit it, or press keys."""
        return self._ask("POST", "/v1/actions/send", body=body)

    def send_task_input(self, body):
        """Type a text into a task and press Enter."""
        return self._ask("POST", "/v1/tasks/input", body=body)

    def start_mirror(self, body):
        """Start a shared terminal beside a pane, or return the one that exists for the pane or its session."""
        return self._ask("POST", "/v1/mirrors/start", body=body)

    def start_up_tasks(self, body):
        """Clean up after earlier harness sessions of a project."""
        return self._ask("POST", "/v1/tasks/startup", body=body)

    def stop_mirror(self, body):
        """Close a shared terminal and its pane."""
        return self._ask("POST", "/v1/mirrors/stop", body=body)

    def stop_task(self, body):
        """Send SIGTERM to a task, and SIGKILL if it does not end."""
        return self._ask("POST", "/v1/tasks/stop", body=body)

    def switch_adapter(self, body):
        """Switch an adapter on or off."""
        return self._ask("POST", "/v1/adapters", body=body)

    def take_snapshot(self, body):
        """Take a snapshot of a pane to guard a later action."""
        return self._ask("POST", "/v1/actions/snapshot", body=body)

    def test_notify(self, body):
        """Send a test notice, and wait until the channels have taken it or failed."""
        return self._ask("POST", "/v1/notify/test", body=body)

    def view_output(self, body):
        """Return the recent output of a pane."""
        return self._ask("POST", "/v1/actions/view-output", body=body)
