# Read once by a running zsh. Removes its own line from the screen. Unless the person has set hist_ignore_space, zsh has
# already added the line to the history.
export PAGER=cat GIT_PAGER=cat
__agtmux_nonce=@NONCE@ __agtmux_dir=@DIR@
. $__agtmux_dir/marks
() {
  local prompt=${(%%)PS1}
  prompt=${prompt//[^$'\n']/}
  builtin printf '\e[%dA\r\e[J' $(( $1 + $#prompt )) >$TTY
  [[ -o hist_ignore_space ]] || : >|$__agtmux_dir/stays
} @ROWS@
