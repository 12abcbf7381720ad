"""Prints every agent that waits for input or approval, with its question.

    python3 waiting.py            over the daemon's socket (AGTMUX_SOCKET)
    python3 waiting.py ADDRESS TOKEN   over TCP
"""

import sys

from agtmux_client import AgtmuxError, Client

client = Client(address=sys.argv[1], token=sys.argv[2]) if len(sys.argv) > 2 else Client()
try:
    panes = client.get_panes()["items"]
except AgtmuxError as error:
    sys.exit(f"{error} ({error.code}); {error.hint}")
for pane in panes:
    if pane["needs_action"]:
        question = pane["dialog"]["question"] if pane["dialog"] else "(unknown question)"
        print(f"{pane['agent_type']} in {pane['identity']['pane_id']} asks: {question}")
print(f"{len(panes)} agents")
