use super::operations::Operation;

const HEAD: &str = r#""""A client of the agtmux API. It needs only the Python standard library.

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
"#;

pub(crate) fn client(operations: &[Operation]) -> String {
    let methods: Vec<String> = operations.iter().map(method).collect();
    format!("{HEAD}\n{}", methods.join("\n"))
}

fn method(operation: &Operation) -> String {
    let Operation { name, method, path, summary, in_path, has_query, has_body, streams, is_text } = operation;
    let mut parameters = vec!["self".to_owned()];
    parameters.extend(in_path.iter().cloned());
    parameters.extend(has_body.then(|| "body".to_owned()));
    parameters.extend(has_query.then(|| "**query".to_owned()));
    let quoted_path = in_path.iter().fold(format!("\"{path}\""), |path, name| {
        let quoted_name = format!("{{urllib.parse.quote({name}, safe='')}}");
        let path = path.replace(&format!("{{{name}}}"), &quoted_name);
        if path.starts_with('f') { path } else { format!("f{path}") }
    });
    let mut arguments = vec![format!("\"{method}\""), quoted_path];
    arguments.extend(has_query.then(|| "query=query".to_owned()));
    arguments.extend(has_body.then(|| "body=body".to_owned()));
    let call = match (streams, is_text) {
        (true, _) => "_events",
        (_, true) => "_text",
        _ => "_ask",
    };
    format!(
        "    def {name}({}):\n        \"\"\"{summary}.\"\"\"\n        return self.{call}({})\n",
        parameters.join(", "),
        arguments.join(", ")
    )
}
