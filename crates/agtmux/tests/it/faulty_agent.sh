# A fake agent with a fault. Draws an input box and appends all input to $1/read. $2 names the fault.
dir=$1
fault=$2
stty raw -echo
cr=$(printf '\r')
escape=$(printf '\033')
rule='────────────────────────────────────────'
box=''
ghost=''
prompt='earlier'
times=0

draw() {
    times=$((times + 1))
    printf '\033[2J\033[H❯ %s\r\n\r\n● Done %s.\r\n\r\n%s\r\n❯ %s\033[2m%s\033[0m\r\n%s\r\n  ? for shortcuts\r\n' \
        "$prompt" "$times" "$rule" "$box" "$ghost" "$rule"
}

printf '\033[?2004h'
bytes=65536
# Read one byte only: the shell reads the rest after the agent exits.
[ "$fault" = dies ] && bytes=1 && printf '\033[?2004l'
draw
: >"$dir/read"
while dd bs=$bytes count=1 of="$dir/chunk" 2>/dev/null && [ -s "$dir/chunk" ]; do
    cat "$dir/chunk" >>"$dir/read"
    case $fault:$(cat "$dir/chunk") in
    stuck:"$cr" | deaf:* | suggests:"$cr") ;;
    suggests:"$escape") ghost='' fault=none ;;
    dies:*) stty sane; exit 0 ;;
    # Ignores the first Enter.
    swallows:"$cr") fault=echoes ;;
    echoes:"$cr") prompt=$box box='' ;;
    hints:"$cr") box='' ghost='' ;;
    *:"$cr") box='' ;;
    swallows:* | echoes:*) box=$(sed "s/$escape\[20[01]~//g" "$dir/chunk") ;;
    hints:*) box='some text' ghost=' that goes on' ;;
    suggests:*) box='some text' ghost=' that goes on' ;;
    *) box='some text' ;;
    esac
    draw
done
