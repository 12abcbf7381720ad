# Read by `fish -C`, after the files of the person. The nonce is here, because `ps` shows arguments.
set -gx PAGER cat
set -gx GIT_PAGER cat
set -g __agtmux_nonce @NONCE@
set -g __agtmux_dir @DIR@
source $__agtmux_dir/marks
