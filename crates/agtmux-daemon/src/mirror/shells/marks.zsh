# Marks of the shared terminal for zsh 5.3 or newer. The start file sets __agtmux_nonce and __agtmux_dir, both not
# exported. A mark is an OSC 133 sequence with the nonce and the number of the prompt; terminals do not show it.
if [[ -o interactive && -z ${__agtmux_on-} ]]; then
typeset -g __agtmux_on=1 __agtmux_stash= __agtmux_bang= __agtmux_comments=
typeset -gi __agtmux_seq=0 __agtmux_ran=0

__agtmux_mark() { builtin printf '\e]133;%s\a' $1 >$TTY } 2>/dev/null

# The first of precmd_functions: $? is the status of the command. Some plugins call precmd from inside the editor.
__agtmux_ended() {
  local -i code=$?
  builtin zle && return code
  __agtmux_mark "D;$code;agt=$__agtmux_nonce;$__agtmux_seq;r=$__agtmux_ran"
  __agtmux_ran=0
  [[ -z $__agtmux_bang ]] || { histchars=$__agtmux_bang; __agtmux_bang= }
  [[ -z $__agtmux_comments ]] || { unsetopt interactive_comments; __agtmux_comments= }
  return code
} 2>/dev/null

# The last of precmd_functions: a theme has set PS1 by now.
__agtmux_prompt() {
  local -i code=$?
  builtin zle && return code
  (( __agtmux_seq++ ))
  local mark=";agt=$__agtmux_nonce;$__agtmux_seq"
  # zsh prints this before it fills an unfinished last line, so it marks the exact end of the output.
  : ${PROMPT_EOL_MARK='%B%S%#%s%b'}
  PROMPT_EOL_MARK=$'%{\e]133;X'$mark$'\a%}'${PROMPT_EOL_MARK/#$'%{\e]133;X;agt='*$'\a%}'/}
  PS1=${PS1/%$'%{\e]133;B;agt='*$'\a%}'/}$'%{\e]133;B'$mark$';%?\a%}'
  PS2=${PS2/%$'%{\e]133;P;agt='*$'\a%}'/}$'%{\e]133;P'$mark$'\a%}'
  __agtmux_mark "A$mark;q=${(qqqq)PWD}"
  [[ $precmd_functions[1] == __agtmux_ended && $precmd_functions[-1] == __agtmux_prompt ]] ||
    precmd_functions=(__agtmux_ended ${${precmd_functions:#__agtmux_ended}:#__agtmux_prompt} __agtmux_prompt)
  [[ $preexec_functions[-1] == __agtmux_started ]] ||
    preexec_functions=(${preexec_functions:#__agtmux_started} __agtmux_started)
  [[ -z $__agtmux_stash ]] || { builtin print -rz -- $__agtmux_stash; __agtmux_stash= }
  # Without a reader of the marks: appends the exit code and the number of rows of the prompt to a file.
  if [[ -e $__agtmux_dir/codes ]]; then
    local prompt=${(%%)PS1}
    prompt=${prompt//[^$'\n']/}
    builtin print -r -- "$code $(( $#prompt + 1 ))" >>$__agtmux_dir/codes
  fi
  return code
} 2>/dev/null

__agtmux_started() {
  __agtmux_ran=1
  __agtmux_mark "C;agt=$__agtmux_nonce;$__agtmux_seq;q=${(qqqq)1}"
} 2>/dev/null

# A key that agtmux types: takes the command from the file, once. A late key finds no command and changes nothing.
# The next prompt gives the line of the person back. push-line would already give it back to a request for another line.
__agtmux_take() {
  [[ $CONTEXT == start && -s $__agtmux_dir/in ]] || return 0
  local text=${"$(<$__agtmux_dir/in)"}
  : >|$__agtmux_dir/in
  # Variables for the command.
  [[ ! -s $__agtmux_dir/env ]] || . $__agtmux_dir/env
  __agtmux_mark "I;agt=$__agtmux_nonce;$__agtmux_seq;i=${text%%$'\n'*};s=0"
  __agtmux_stash=$BUFFER$__agtmux_stash
  BUFFER=${text#*$'\n'} CURSOR=$#BUFFER
  # No "!" and "^" expansion in this line, and comments as in scripts. The option bang_hist has no effect here: zsh has
  # read it when it began to read the line.
  __agtmux_bang=$histchars histchars=$'\1\1'${histchars[3]-#}
  [[ -o interactive_comments ]] || { setopt interactive_comments; __agtmux_comments=1 }
  zle .accept-line
}

zle -N __agtmux_take
for __agtmux_map in emacs viins vicmd; do bindkey -M $__agtmux_map '\e[24;8~' __agtmux_take; done
unset __agtmux_map
typeset -ga precmd_functions preexec_functions
precmd_functions=(__agtmux_ended $precmd_functions __agtmux_prompt)
preexec_functions+=(__agtmux_started)
fi
