"""A client of agtmux's API, with nothing but Python's own library.

Made from the OpenAPI document: `make contract` writes it anew.
"""

import http.client
import json
import os
import socket
import urllib.parse


class AgtmuxError(Exception):
    """What the daemon refused, with its code and what to do next."""

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
    """Over the daemon's socket, or over TCP with a token."""

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

    def _events(self, method, path, query=None):
        """Yields (id, type, data) until the daemon ends."""
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
        """Watches another host from now on. Answers when the first attempt to reach it has come to something."""
        return self._ask("POST", "/v1/targets", body=body)

    def attach(self, body):
        """Tells how to get to a pane."""
        return self._ask("POST", "/v1/actions/attach", body=body)

    def connect_target(self, name):
        """Tries to reach it at once, and tells what came of it."""
        return self._ask("POST", f"/v1/targets/{urllib.parse.quote(name, safe='')}/connect")

    def follow_task_events(self, **query):
        """The same as server-sent events, as they happen; with `after` or `Last-Event-ID` none is missed, also over restarts of the
daemon. With `run_id` the stream ends with `over` when nothing more will be told of that run."""
        return self._events("GET", "/v1/tasks/events/stream", query=query)

    def get_action(self, id):
        """What came of an action."""
        return self._ask("GET", f"/v1/actions/{urllib.parse.quote(id, safe='')}")

    def get_adapters(self):
        """Every adapter with what it can do, how it fares and where its evidence comes from."""
        return self._ask("GET", "/v1/adapters")

    def get_audit(self, **query):
        """Every action, refused ones too, the newest last."""
        return self._ask("GET", "/v1/audit", query=query)

    def get_availability(self, agent_id):
        """Whether an agent can be answered."""
        return self._ask("GET", f"/api/respond/{urllib.parse.quote(agent_id, safe='')}/availability")

    def get_checkup(self, name):
        """Looks what the host has, and tells what that means and what to run."""
        return self._ask("GET", f"/v1/targets/{urllib.parse.quote(name, safe='')}/doctor")

    def get_events(self, **query):
        """Changes as they happen, as server-sent events: a snapshot first, or what came after `Last-Event-ID`."""
        return self._events("GET", "/v1/events", query=query)

    def get_explain(self, **query):
        """The state of one agent and every statement behind it."""
        return self._ask("GET", "/v1/explain", query=query)

    def get_health(self):
        """How the daemon is and what it watches."""
        return self._ask("GET", "/v1/health")

    def get_history(self, **query):
        """The changes of state of one agent, with how long each lasted. An agent that has ended is named by `runtime:ID`."""
        return self._ask("GET", "/v1/history", query=query)

    def get_pane_health(self, **query):
        """Whether a pane is there and its agent runs."""
        return self._ask("GET", "/v1/actions/health", query=query)

    def get_panes(self, **query):
        """Panes, by default only those in which an agent lives."""
        return self._ask("GET", "/v1/panes", query=query)

    def get_past_events(self, **query):
        """The last events about one agent, as they came and without their secrets, the newest last."""
        return self._ask("GET", "/v1/history/events", query=query)

    def get_sessions(self, **query):
        """Sessions, with what their agents amount to."""
        return self._ask("GET", "/v1/sessions", query=query)

    def get_stream(self, **query):
        """Sessions, their states, turns and availability as they change, as server-sent events. A reader that comes back too late
gets `resync`: it has to read `/v1/panes` anew."""
        return self._events("GET", "/api/events/stream", query=query)

    def get_targets(self):
        """Every target with how it fares and what is known of it."""
        return self._ask("GET", "/v1/targets")

    def get_task_events(self, **query):
        """What happened to tasks: the newest, or what came after `after`."""
        return self._ask("GET", "/v1/tasks/events", query=query)

    def get_task_logs(self, **query):
        """What a task has written."""
        return self._ask("GET", "/v1/tasks/logs", query=query)

    def get_tasks(self, **query):
        """The tasks of one session as they are now. A session that is not there has `exists: false`."""
        return self._ask("GET", "/v1/tasks", query=query)

    def get_windows(self, **query):
        """Windows, with what their agents amount to."""
        return self._ask("GET", "/v1/windows", query=query)

    def kill(self, body):
        """Interrupts an agent, or ends it."""
        return self._ask("POST", "/v1/actions/kill", body=body)

    def kill_all_tasks(self, body):
        """Ends all tasks of a session, and the session. Refused to agents."""
        return self._ask("POST", "/v1/tasks/kill-all", body=body)

    def post_event(self, body):
        """Takes an event in. The answer comes when it is stored."""
        return self._ask("POST", "/v1/events", body=body)

    def post_hook(self, event, body):
        """Tells that something happened to an agent. Fields beyond those named are passed on to whoever reads its events."""
        return self._ask("POST", f"/hook/{urllib.parse.quote(event, safe='')}", body=body)

    def post_link(self, body):
        """Makes a link that lets one browser in, once, within two minutes. Only over the unix socket."""
        return self._ask("POST", "/v1/web/link", body=body)

    def post_respond(self, agent_id, body):
        """Answers the dialog that an agent has open."""
        return self._ask("POST", f"/api/respond/{urllib.parse.quote(agent_id, safe='')}", body=body)

    def prune_dead_tasks(self, body):
        """Takes windows away whose tasks have ended."""
        return self._ask("POST", "/v1/tasks/prune-dead", body=body)

    def remove_target(self, name):
        """Watches it no longer. Nothing changes on the host itself."""
        return self._ask("DELETE", f"/v1/targets/{urllib.parse.quote(name, safe='')}")

    def respond(self, body):
        """Answers the dialog that is open."""
        return self._ask("POST", "/v1/actions/respond", body=body)

    def restart_task(self, body):
        """Starts a task again as it was started, by the same rules."""
        return self._ask("POST", "/v1/tasks/restart", body=body)

    def resume(self, body):
        """Starts an agent that has ended again, in its pane, with its session."""
        return self._ask("POST", "/v1/actions/resume", body=body)

    def run_task(self, body):
        """Starts a task in a window of its own, or again in the window that has its name. Agents may do this, too, but what runs in the
session of another is not replaced by them."""
        return self._ask("POST", "/v1/tasks/run", body=body)

    def send(self, body):
        """Types a text and has it submitted, or presses keys."""
        return self._ask("POST", "/v1/actions/send", body=body)

    def send_task_input(self, body):
        """Types a text into a task and presses Enter. Refused to agents."""
        return self._ask("POST", "/v1/tasks/input", body=body)

    def start_up_tasks(self, body):
        """To be told when a harness session begins: removes what earlier ones of the same project have left where nothing runs in it any more, and
names the rest. Sessions of others, and of programs that still run, are not touched."""
        return self._ask("POST", "/v1/tasks/startup", body=body)

    def stop_task(self, body):
        """Asks a task to end, and makes it if it does not. Refused to agents."""
        return self._ask("POST", "/v1/tasks/stop", body=body)

    def switch_adapter(self, body):
        """Switches one on or off. The agents of one that is off are still listed; nothing is said about what they do."""
        return self._ask("POST", "/v1/adapters", body=body)

    def take_snapshot(self, body):
        """Looks at a pane, to act on what was seen within the next 30 seconds, or as long as `actions.snapshot_lifetime` says."""
        return self._ask("POST", "/v1/actions/snapshot", body=body)

    def view_output(self, body):
        """Shows what a pane has shown."""
        return self._ask("POST", "/v1/actions/view-output", body=body)
