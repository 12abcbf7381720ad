# Read by `bash --posix` through ENV, as a login shell. Posix mode has skipped the files of the person.
set +o posix
unset ENV
[ -z "${AGTMUX_ENV+x}" ] || { export ENV="$AGTMUX_ENV"; unset AGTMUX_ENV; }
[ "${HISTFILE-}" != "$HOME/.sh_history" ] || HISTFILE=$HOME/.bash_history
[ ! -r /etc/profile ] || . /etc/profile
if [ -r ~/.bash_profile ]; then . ~/.bash_profile
elif [ -r ~/.bash_login ]; then . ~/.bash_login
elif [ -r ~/.profile ]; then . ~/.profile
fi
export PAGER=cat GIT_PAGER=cat
__agtmux_nonce=@NONCE@ __agtmux_dir=@DIR@
. "$__agtmux_dir/marks"
