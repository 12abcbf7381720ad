#!/bin/sh
# Reports a hook event of any agent to agtmux. Reads the hook's JSON from stdin.
#
#   hook.sh session-start | session-end | stop | notification | user-prompt-submit | pre-tool-use | post-tool-use | permission-request
#
# Gives up after two seconds and always exits with 0, so that the agent never waits or fails.
socket=${AGTMUX_SOCKET:-${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/agtmux/agtmuxd.sock}}
socket=${socket:-${XDG_STATE_HOME:-$HOME/.local/state}/agtmux/agtmuxd.sock}
payload=$(cat)
case $payload in
*\{*) ;;
*) exit 0 ;;
esac
# Insert the tmux variables before the agent's fields. Neither variable can contain a quote.
tmux_fields="\"tmux_pane\":\"${TMUX_PANE:-}\",\"tmux\":\"${TMUX:-}\","
[ -n "${TMUX_PANE:-}" ] || tmux_fields=
printf '{%s%s' "$tmux_fields" "${payload#*\{}" |
    curl --silent --output /dev/null --max-time 2 --unix-socket "$socket" \
        --header 'content-type: application/json' --data-binary @- "http://agtmux/hook/$1" || :
exit 0
