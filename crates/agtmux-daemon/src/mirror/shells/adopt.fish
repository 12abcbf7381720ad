# Read once by a running fish. Removes its own line from the screen. A line with a leading space is not in the history.
set -gx PAGER cat
set -gx GIT_PAGER cat
set -g __agtmux_nonce @NONCE@
set -g __agtmux_dir @DIR@
source $__agtmux_dir/marks
printf '\e[%dA\r\e[J' (math @ROWS@ + (count (__agtmux_user_prompt)) - 1) >/dev/tty
