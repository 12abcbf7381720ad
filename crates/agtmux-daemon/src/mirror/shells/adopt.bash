# Read once by a running bash. Removes its own line from the screen and from the history.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
  export PAGER=cat GIT_PAGER=cat
  __agtmux_nonce=@NONCE@ __agtmux_dir=@DIR@
  . "$__agtmux_dir/marks"
  __agtmux_adopt() {
    local entry prompt=${PS1@P}
    prompt=${prompt//[!$'\n']/}
    HISTTIMEFORMAT= builtin history 1 >|"$__agtmux_dir/history"
    IFS= builtin read -r -d '' entry <"$__agtmux_dir/history"
    [[ $entry != *"$__agtmux_dir/adopt"* ]] || builtin history -d -1
    builtin printf '\e[%dA\r\e[J' "$(($1 + ${#prompt}))" >/dev/tty
  }
  { __agtmux_adopt @ROWS@; } 2>/dev/null || :
  unset -f __agtmux_adopt
fi
