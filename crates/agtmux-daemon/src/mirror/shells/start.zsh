# The .zshenv in the directory that ZDOTDIR names at the start. Gives the person's ZDOTDIR back before anything else.
if [[ -n ${AGTMUX_ZDOTDIR+x} ]]; then export ZDOTDIR=$AGTMUX_ZDOTDIR; unset AGTMUX_ZDOTDIR; else unset ZDOTDIR; fi
[[ ! -r ${ZDOTDIR-$HOME}/.zshenv ]] || . ${ZDOTDIR-$HOME}/.zshenv
if [[ -o interactive ]]; then
  export PAGER=cat GIT_PAGER=cat
  __agtmux_nonce=@NONCE@ __agtmux_dir=@DIR@
  . $__agtmux_dir/marks
fi
