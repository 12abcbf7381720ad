# Read by dash, ksh and other POSIX shells through ENV. Such a shell has no hooks; only its prompt can run a function. The
# function runs in a subshell, so it changes no variables of the person.
unset ENV
[ ! -r /etc/profile ] || . /etc/profile
[ ! -r ~/.profile ] || . ~/.profile
[ -z "${AGTMUX_ENV+x}" ] || { export ENV="$AGTMUX_ENV"; unset AGTMUX_ENV; }
[ -z "${ENV-}" ] || [ ! -r "$ENV" ] || . "$ENV"
PAGER=cat GIT_PAGER=cat
export PAGER GIT_PAGER
__agtmux_codes=@DIR@/codes
__agtmux_line='
'
# Appends the exit code of the last command and the number of rows of the prompt to a file.
__agtmux_report() {
  __agtmux_code=$? __agtmux_rest=$PS1 __agtmux_rows=1
  while :; do
    case $__agtmux_rest in
    *"$__agtmux_line"*) __agtmux_rest=${__agtmux_rest#*"$__agtmux_line"} ;;
    *\\n*) __agtmux_rest=${__agtmux_rest#*\\n} ;;
    *) break ;;
    esac
    __agtmux_rows=$((__agtmux_rows + 1))
  done
  echo "$__agtmux_code $__agtmux_rows" >>"$__agtmux_codes"
}
PS1='$(__agtmux_report)'"${PS1-\$ }"
