#!/bin/sh
# Tells agtmux of an event of an agent, from a hook of any agent: its JSON comes on stdin.
#
#   hook.sh session-start | session-end | stop | notification | user-prompt-submit | pre-tool-use | post-tool-use | permission-request
#
# An agent must never wait for it or fail because of it: it gives up after two seconds and always exits with 0.
socket=${AGTMUX_SOCKET:-${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/agtmux/agtmuxd.sock}}
socket=${socket:-${XDG_STATE_HOME:-$HOME/.local/state}/agtmux/agtmuxd.sock}
payload=$(cat)
case $payload in
*\{*) ;;
*) exit 0 ;;
esac
# What tmux knows goes in front of what the agent says. Neither variable can hold a quote.
place="\"tmux_pane\":\"${TMUX_PANE:-}\",\"tmux\":\"${TMUX:-}\","
[ -n "${TMUX_PANE:-}" ] || place=
printf '{%s%s' "$place" "${payload#*\{}" |
    curl --silent --output /dev/null --max-time 2 --unix-socket "$socket" \
        --header 'content-type: application/json' --data-binary @- "http://agtmux/hook/$1" || :
exit 0
