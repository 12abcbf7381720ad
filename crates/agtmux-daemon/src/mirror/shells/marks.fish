# Marks of the shared terminal for fish 3.2 or newer. The start file sets __agtmux_nonce and __agtmux_dir, both not
# exported. A mark is an OSC 133 sequence with the nonce and the number of the prompt; terminals do not show it.
if status is-interactive; and not set -q __agtmux_on
    set -g __agtmux_on 1
    set -g __agtmux_seq 0
    set -g __agtmux_stash ''

    function __agtmux_mark
        printf '\e]133;%s\a' $argv[1] >/dev/tty
    end

    function __agtmux_started --on-event fish_preexec
        set -l code $status
        __agtmux_mark "C;agt=$__agtmux_nonce;$__agtmux_seq;u="(string escape --style=url -- $argv[1])
        return $code
    end

    function __agtmux_ended --on-event fish_postexec
        set -l code $status
        __agtmux_mark "D;$code;agt=$__agtmux_nonce;$__agtmux_seq"
        return $code
    end

    function __agtmux_refused --on-event fish_posterror
        __agtmux_mark "D;127;agt=$__agtmux_nonce;$__agtmux_seq;r=0"
    end

    function __agtmux_prompt --on-event fish_prompt
        set -l code $status
        set -g __agtmux_seq (math $__agtmux_seq + 1)
        __agtmux_mark "A;agt=$__agtmux_nonce;$__agtmux_seq;u="(string escape --style=url -- $PWD)
        # Without a reader of the marks: appends the exit code and the number of rows of the prompt to a file.
        test -e $__agtmux_dir/codes; and echo $code (count (__agtmux_user_prompt)) >>$__agtmux_dir/codes
        return $code
    end

    # The prompt of the person comes first, because it may show the status of the command.
    functions -q fish_prompt; and functions -c fish_prompt __agtmux_user_prompt
    function fish_prompt
        # fish removes a newline at the end of the prompt, so the mark must not follow one.
        set -l text (__agtmux_user_prompt | string collect)
        printf '%s\e]133;B;agt=%s;%d\a' "$text" $__agtmux_nonce $__agtmux_seq
    end

    # A key that agtmux types: takes the command from the file, once. A late key finds no command and changes nothing.
    function __agtmux_take
        test -s $__agtmux_dir/in; or return 0
        set -l text (string collect -N <$__agtmux_dir/in)
        echo -n >$__agtmux_dir/in
        # Variables for the command.
        test -s $__agtmux_dir/env; and source $__agtmux_dir/env
        set -l line (commandline | string collect)
        __agtmux_mark "I;agt=$__agtmux_nonce;$__agtmux_seq;i="(string split -m 1 -f 1 \n -- $text)";s="(string length -- "$line")
        set -g __agtmux_stash "$line$__agtmux_stash"
        commandline -r -- (string replace -r '^[^\n]*\n' '' -- $text | string collect)
        commandline -f execute
    end

    # A key that agtmux types: gives the line of the person back.
    function __agtmux_return
        commandline -r -- "$__agtmux_stash"(commandline | string collect)
        set -g __agtmux_stash ''
        __agtmux_mark "R;agt=$__agtmux_nonce;$__agtmux_seq"
    end

    # fish 4 decodes keys itself and wants their names.
    set -l keys \e'[24;8~' \e'[24;6~'
    string match -qr '^[4-9]' -- $version; and set keys ctrl-alt-shift-f12 ctrl-shift-f12
    for mode in default insert visual replace
        bind -M $mode $keys[1] __agtmux_take 2>/dev/null
        bind -M $mode $keys[2] __agtmux_return 2>/dev/null
    end
end
