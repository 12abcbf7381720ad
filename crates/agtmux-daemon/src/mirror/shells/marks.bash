# Marks of the shared terminal for bash 5.1 or newer. The start file sets __agtmux_nonce and __agtmux_dir, both not
# exported. A mark is an OSC 133 sequence with the nonce and the number of the prompt; terminals do not show it.
# Every part ends with success, because a failing builtin would end a shell with `set -e`.
if [[ $- == *i* && -z ${__agtmux_on-} ]]; then
__agtmux_on=1 __agtmux_seq=0 __agtmux_ran=0 __agtmux_entry=$HISTCMD __agtmux_none= __agtmux_stash= __agtmux_bang=

__agtmux_mark() { builtin printf '\e]133;%s\a' "$1" >/dev/tty || :; }

# The first element of PROMPT_COMMAND: $? is the status of the command.
__agtmux_ended() {
  local code=$? entry=$HISTCMD text=
  if (( __agtmux_ran )); then
    # The text of the command, without a new process. h=0: the history has no entry for it.
    HISTTIMEFORMAT= builtin history 1 >|"$__agtmux_dir/history" || :
    IFS= builtin read -r -d '' text <"$__agtmux_dir/history" || :
    text=${text#"${text%%[![:space:]]*}"} text=${text#"${text%%[!0-9]*}"} text=${text:2} text=${text%$'\n'}
    text=";h=$((entry != __agtmux_entry));q=${text@Q}"
  fi
  __agtmux_mark "D;$code;agt=$__agtmux_nonce;$__agtmux_seq;r=$__agtmux_ran$text"
  __agtmux_ran=0 __agtmux_entry=$entry
  __agtmux_accept '""'
  [[ -z $__agtmux_bang ]] || { set -H; __agtmux_bang=; }
  return "$code"
}

# The last element of PROMPT_COMMAND: a theme has set PS1 by now.
__agtmux_prompt() {
  local code=$? mark=';agt=${__agtmux_nonce};${__agtmux_seq}'
  __agtmux_seq=$((__agtmux_seq + 1))
  [[ ${PS0-} == *__agtmux_ran=1* ]] || PS0=${PS0-}'${__agtmux_none:$((__agtmux_ran=1,0)):0}\e]133;C'"$mark"'\a'
  [[ ${PS1-} == *"$mark"* ]] || PS1=${PS1-}'\[\e]133;B'"$mark"';$?\a\]'
  [[ ${PS2-} == *"$mark"* ]] || PS2=${PS2-}'\[\e]133;P'"$mark"'\a\]'
  # An assignment to PROMPT_COMMAND replaces element 0. It is changed in place, because bash walks the array now.
  [[ -n ${bash_preexec_imported-}${__bp_imported-} || ${PROMPT_COMMAND[0]-} == *__agtmux_ended* ]] ||
    PROMPT_COMMAND[0]="{ __agtmux_ended; } 2>/dev/null || :; ${PROMPT_COMMAND[0]-}"
  __agtmux_mark "A;agt=$__agtmux_nonce;$__agtmux_seq;q=${PWD@Q}"
  [[ ! -e $__agtmux_dir/codes ]] || __agtmux_report "$code"
  return "$code"
}

# Without a reader of the marks: appends the exit code and the number of rows of the prompt to a file.
__agtmux_report() {
  local prompt=${PS1@P}
  prompt=${prompt//[!$'\n']/}
  builtin printf '%s %s\n' "$1" "$((${#prompt} + 1))" >>"$__agtmux_dir/codes" || :
}

# The action of the key that submits a line.
__agtmux_accept() {
  local map
  for map in emacs-standard vi-insert vi-command; do
    builtin bind -m "$map" "\"\\e[24;7~\": $1" || :
  done
}

# A key that agtmux types: takes the command from the file, once. A late key finds no command and changes nothing.
__agtmux_take() {
  local id= text=
  if [[ -s $__agtmux_dir/in ]]; then
    { IFS= builtin read -r id && IFS= builtin read -r -d '' text; } <"$__agtmux_dir/in" || :
    : >|"$__agtmux_dir/in"
    # Variables for the command.
    [[ ! -s $__agtmux_dir/env ]] || . "$__agtmux_dir/env" || :
  fi
  if [[ -z $id ]]; then
    __agtmux_accept '""'
    return 0
  fi
  __agtmux_mark "I;agt=$__agtmux_nonce;$__agtmux_seq;i=$id;s=${#READLINE_LINE}"
  __agtmux_stash=$READLINE_LINE$__agtmux_stash
  READLINE_LINE=$text READLINE_POINT=${#text}
  # No "!" expansion in this line.
  [[ $- != *H* ]] || { set +H; __agtmux_bang=1; }
  __agtmux_accept accept-line
}

# A key that agtmux types: gives the line of the person back.
__agtmux_return() {
  READLINE_LINE=$__agtmux_stash$READLINE_LINE READLINE_POINT=${#READLINE_LINE} __agtmux_stash=
  __agtmux_mark "R;agt=$__agtmux_nonce;$__agtmux_seq"
}

__agtmux_install() {
  local map first='{ __agtmux_ended; } 2>/dev/null || :' last='{ __agtmux_prompt; } 2>/dev/null || :'
  for map in emacs-standard vi-insert vi-command; do
    builtin bind -m "$map" -x '"\e[24;8~": __agtmux_take' || :
    builtin bind -m "$map" -x '"\e[24;6~": __agtmux_return' || :
  done
  __agtmux_accept '""'
  if [[ -n ${bash_preexec_imported-}${__bp_imported-} ]]; then
    precmd_functions=(__agtmux_ended "${precmd_functions[@]}" __agtmux_prompt)
  else
    PROMPT_COMMAND=("$first" "${PROMPT_COMMAND[@]}" "$last")
  fi
}
{ __agtmux_install; } 2>/dev/null || :
unset -f __agtmux_install
fi
