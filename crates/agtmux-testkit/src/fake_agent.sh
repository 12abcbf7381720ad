# A fake agent. Draws an input box, appends all input to $1/read, and clears the box at Enter. The file $1/scene names
# the screen to draw; Ctrl-L redraws it. In some scenes Enter begins a turn, which is appended to $1/turns at its end.
dir=$1
stty raw -echo
cr=$(printf '\r')
redraw=$(printf '\014')
interrupt=$(printf '\003')
escape=$(printf '\033')
rule='────────────────────────────────────────'
box=''

# Draws the scene of the file, or the scene $1.
draw() {
    scene=idle
    [ -f "$dir/scene" ] && read -r scene <"$dir/scene"
    stands=$box
    foot='  ? for shortcuts'
    above='● Done.'
    case ${1:-$scene} in
    # deaf never shows the typed text; stuck never clears it.
    deaf) stands='' ;;
    stuck) ;;
    running) foot='  esc to interrupt' above='✻ Thinking… (3s)' ;;
    dialog)
        printf '\033[2J\033[H❯ earlier\r\n\r\n%s\r\n Bash command\r\n\r\n   rm -r build\r\n\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Esc to cancel\r\n' "$rule"
        return
        ;;
    # A digit answers this dialog.
    asks)
        printf '\033[2J\033[H❯ earlier\r\n\r\n%s\r\n ☐ Colour\r\n\r\nWhich colour?\r\n\r\n❯ 1. Red\r\n  2. Blue\r\n  3. Type something.\r\n\r\nEnter to select · ↑/↓ to navigate · Esc to cancel\r\n' "$rule"
        return
        ;;
    # Like `dialog`, with another command.
    other)
        printf '\033[2J\033[H❯ earlier\r\n\r\n%s\r\n Bash command\r\n\r\n   rm -r everything\r\n\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Esc to cancel\r\n' "$rule"
        return
        ;;
    # The next three scenes close at Escape. `permission` and `menu` also close at a digit.
    permission)
        printf '\033[2J\033[H❯ earlier\r\n\r\n%s\r\n Bash command\r\n\r\n   rm -r build\r\n\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Esc to cancel\r\n' "$rule"
        return
        ;;
    menu)
        printf '\033[2J\033[H❯ /model\r\n\r\n%s\r\n  Select model\r\n\r\n  ❯ 1. Default\r\n    2. Opus\r\n\r\n  Enter to confirm · Esc to exit\r\n' "$rule"
        return
        ;;
    panel)
        printf '\033[2J\033[H❯ /status\r\n\r\n▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔\r\n   Settings  Status   Config   Usage\r\n\r\n   Version:   2.1.325\r\n   Model:     mock\r\n\r\n   Esc to cancel\r\n'
        return
        ;;
    garbage)
        printf '\033[2J\033[Han unknown screen\r\n'
        return
        ;;
    esac
    printf '\033[2J\033[H❯ earlier\r\n\r\n%s\r\n\r\n%s\r\n❯ %s\r\n%s\r\n%s\r\n' "$above" "$rule" "$stands" "$rule" "$foot"
}

# Plays a turn that begins after $1 seconds and is shown for $2 seconds.
play_turn() {
    box=''
    draw
    sleep "$1"
    draw running
    sleep "$2"
    draw
    echo ended >>"$dir/turns"
}

printf '\033[?2004h'
draw
: >"$dir/read"
while dd bs=65536 count=1 of="$dir/chunk" 2>/dev/null && [ -s "$dir/chunk" ]; do
    cat "$dir/chunk" >>"$dir/read"
    last=$(tail -c 1 "$dir/chunk")
    case $scene:$last in
    asks:[1-9] | works:"$cr") echo running >"$dir/scene" ;;
    asks-next:"$cr") echo permission >"$dir/scene" ;;
    late-turn:"$cr") play_turn 1.5 1 ;;
    short-turn:"$cr") play_turn 0 0.12 ;;
    unseen-turn:"$cr") echo ended >>"$dir/turns" ;;
    permission:[1-9] | permission:"$escape" | menu:[1-9] | menu:"$escape" | panel:"$escape") echo idle >"$dir/scene" ;;
    esac
    case $last in
    "$cr") [ "$scene" = stuck ] || box='' ;;
    "$redraw" | "$interrupt") ;;
    *) box='[Pasted text #1]' ;;
    esac
    draw
done
