#!/bin/sh
# Starts a background task of this Pi session, or starts it again: tmux-task-run.sh NAME -- 'COMMAND'
program=${AGTMUX_PROGRAM:-agtmux}
if ! command -v "$program" >/dev/null 2>&1; then
	echo "tmux-task-run.sh: agtmux is not installed; see https://github.com/agtmux/agtmux" >&2
	exit 127
fi
if [ -z "${PI_TMUX_SESSION:-}" ]; then
	echo "tmux-task-run.sh: PI_TMUX_SESSION is not set; run this with Pi's bash tool, with pi-agtmux loaded" >&2
	exit 2
fi
exec "$program" task run --replace "$@"
