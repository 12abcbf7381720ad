#!/bin/sh
# Keys and status line of agtmux for tmux 3.2 and newer. TPM runs this file. Without TPM, add a line to ~/.tmux.conf:
#     run-shell '/path/to/agtmux/agtmux.tmux'
# docs/tmux.md lists the options. Options are read when a key is pressed, so a changed option works at once, except for keys.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
self=$here/agtmux.tmux

# Prints the option @agtmux-NAME, or a default if the option is not set. An empty option stays empty.
option() {
    if [ -n "$(tmux show-option -gq "@agtmux-$1")" ]; then
        tmux show-option -gqv "@agtmux-$1"
    else
        printf '%s\n' "$2"
    fi
}

# Prints the path of agtmux. tmux servers often have a shorter PATH than shells.
find_agtmux() {
    wanted=$(option command '')
    case $wanted in
    '~/'*) wanted=$HOME/${wanted#'~/'} ;;
    esac
    if [ -n "$wanted" ]; then
        command -v -- "$wanted"
        return
    fi
    PATH=$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin:/opt/homebrew/bin:$here/target/release command -v agtmux
}

# Shows a text in the status line of the client $1.
say() {
    tmux display-message -c "$1" "$(printf '%s' "$2" | sed 's/[#%]/&&/g')"
}

# What a key does: $1 is the name of the key's option, $2 the terminal of the client that pressed it.
pressed() {
    if ! agtmux=$(find_agtmux); then
        say "$2" 'agtmux: program not found; set @agtmux-command to its path'
        return 0
    fi
    AGTMUX_TMUX_CLIENT=$2
    export AGTMUX_TMUX_CLIENT
    case $1 in
    # The interface must be the first process of its popup: the daemon lets it answer only then.
    popup) exec "$agtmux" ;;
    inbox) exec "$agtmux" inbox ;;
    next | back) "$agtmux" "$1" --client "$2" ;;
    sidebar) "$agtmux" sidebar toggle --client "$2" ;;
    esac
    # agtmux has shown its errors in the status line. tmux would also show an exit code.
    return 0
}

# The status line: prints a line whenever it changes.
print_status() {
    if ! agtmux=$(find_agtmux); then
        echo 'agtmux not found'
        return
    fi
    format=$(option status-format '')
    if [ -n "$format" ]; then
        exec "$agtmux" status --follow --format "$format"
    fi
    exec "$agtmux" status --follow
}

# Prints the keys of the table $1 whose command matches $2, in the form in which tmux prints them. Lists all tables, because tmux 3.7
# does not print a list with one entry.
keys_of() {
    tmux list-keys | sed -n "s/^bind-key  *\(-r  *\)\{0,1\}-T  *$1  *\([^ ][^ ]*\)  *${2-}.*/\2/p"
}

# Whether the key is bound. Versions of tmux print keys differently, so a table of its own shows the form of the key.
is_bound() {
    tmux bind-key -T agtmux-probe -- "$1" display-message wanted || return 0
    form=$(keys_of agtmux-probe 'display-message wanted')
    tmux unbind-key -a -T agtmux-probe
    keys_of prefix | grep -Fqx -e "$form"
}

# Binds the key of the option $1 to the tmux command that follows the note $3. $2 is the default key. Bindings of the user stay.
bind_if_free() {
    name=$1 key=$(option "$1-key" "$2") note=$3
    shift 3
    # tmux would read a `;` at the end of an argument as the end of the command.
    case $key in
    '') return 0 ;;
    *';') key=${key%';'}'\;' ;;
    esac
    if is_bound "$key"; then
        taken="${taken:+$taken, }$key (@agtmux-$name-key)"
    else
        tmux bind-key -N "$note" -T prefix -- "$key" "$@"
    fi
}

# Removes the bindings that an earlier run of this file made. tmux reads keys in the form in which it prints them.
unbind_ours() {
    keys_of prefix '.*agtmux\.tmux.* bound-key ' | sed 's/^/unbind-key -T prefix -- /' | tmux source-file -
}

# Prints the option @agtmux-$1 if it is a size for a popup, otherwise 90%.
popup_size() {
    size=$(option "popup-$1" '90%')
    case ${size%'%'} in
    '' | *[!0-9]*) echo '90%' ;;
    *) printf '%s\n' "$size" ;;
    esac
}

bind_keys() {
    unbind_ours
    taken=
    width=$(popup_size width) height=$(popup_size height)
    run() { printf "'%s' bound-key %s '#{client_tty}'" "$self" "$1"; }
    popup() { printf 'display-popup -E -w %s -h %s "exec %s"' "$width" "$height" "$(run "$1")"; }
    bind_if_free popup a 'agtmux: open the interface' run-shell -C "$(popup popup)"
    bind_if_free inbox A 'agtmux: answer the waiting agents' run-shell -C "$(popup inbox)"
    bind_if_free next g 'agtmux: go to the next waiting agent' run-shell -b "$(run next)"
    bind_if_free back G 'agtmux: go back' run-shell -b "$(run back)"
    bind_if_free sidebar '' 'agtmux: show or hide the sidebar' run-shell -b "$(run sidebar)"
    if [ -n "$taken" ]; then
        tmux display-message "agtmux: these keys are in use, set other ones: $(printf '%s' "$taken" | sed 's/[#%]/&&/g')"
    fi
}

# Replaces #{agtmux_status} where the user wrote it.
fill_in_status() {
    for name in status-left status-right; do
        value=$(tmux show-option -gqv "$name")
        filled=
        while :; do
            case $value in
            *'#{agtmux_status}'*)
                filled="$filled${value%%'#{agtmux_status}'*}#('$self' status)"
                value=${value#*'#{agtmux_status}'}
                ;;
            *) break ;;
            esac
        done
        [ -z "$filled" ] || tmux set-option -g "$name" "$filled$value"
    done
}

case $self in
*[!A-Za-z0-9/._\ +=,@-]*)
    tmux display-message 'agtmux: move the plugin to a directory whose path has no special characters'
    exit 1
    ;;
esac

case ${1-} in
'')
    bind_keys
    fill_in_status
    ;;
bound-key) pressed "$2" "$3" ;;
status) print_status ;;
*)
    echo "usage: $0" >&2
    exit 2
    ;;
esac
