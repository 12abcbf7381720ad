//! The table of prompt patterns.

pub(super) struct PromptPattern {
    /// Matches the trimmed line. Case is ignored, and so is whitespace in the pattern.
    pub pattern: &'static str,
    /// Excludes lines that only look like this prompt.
    pub unless: Option<&'static str>,
    /// Examples, checked by a test.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the test of the table reads it"))]
    pub prompts: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "only the test of the table reads it"))]
    pub not_prompts: &'static [&'static str],
}

/// Shared parts of patterns.
pub(super) const PARTS: &[(&str, &str)] = &[
    // The start of a sentence: at the start of the line, optionally after a symbol, or after another sentence.
    ("<begin>", r"(?: ^ [^\p{L}\p{N}]* | [.!?:;,)\]}>] \s+ | [\[(<{] | \s [-–—*|] \s+ )"),
    // Part of one sentence; a dot inside a word does not end it.
    ("<words>", r"(?: [^.?!] | [.?!] [\p{L}\p{N}_/'] )"),
    ("<yes>", r"(?: y | yes | j | ja | o | oui | s | si | sí | sim | d | da )"),
    ("<no>", r"(?: n | no | nein | non | não | nee )"),
    (
        "<other>",
        r"(?: [a-z?!/] | all | always | never | once | none | quit | skip | edit | diff | rename | cancel | abort
        | retry | help | later | \[ fingerprint \] )",
    ),
    ("<or>", r"(?: \s* [/|,] \s* | \s+ or \s+ )"),
    // A default in brackets, a question mark, a colon, an arrow, in any order.
    ("<tail>", r"(?: \s* (?: [?:>›»…] | [\[(] [^\])]{0,40} [\])] ) )* $"),
    (
        "<secret>",
        r"(?: pass (?: word | wort | phrase | code | \s phrase | \s code ) | kennwort | mot \s de \s passe | contraseña
        | pin | otp | (?: access | auth | api | verification | security | authentication | one[ -]time | 2fa | mfa )
        (?: \s | - )* (?: token | code | key | password | passcode | pin ) | secret (?: \s key )? )",
    ),
];

/// Matches log lines and source code, which are never prompts.
pub(super) const LOG_LINE: &str = r"^ (?: // | /\* | <!-- | \#+ \s | (?: echo | printf | print | usage ) \b [\s:(]
    |
      [\[(]? \d{4} [-/.] \d{2} [-/.] \d{2} [T\ _]? [\[(]? \d{2} : \d{2}
    | [\[(]? \d{2} : \d{2} : \d{2}
    | (?: jan | feb | mar | apr | may | jun | jul | aug | sep | oct | nov | dec ) \s+ \d{1,2} \s+ \d{2} : \d{2}
    | [\[<(]? (?: trace | debug | info | notice | warn | warning | error | fatal | critical ) [\]>)]? \s* [:|] \s
    | [\[<(] (?: trace | debug | info | notice | warn | warning | error | fatal | critical ) [\]>)] \s+
      (?: [^?]* $ | [^?]* \? .* [.!] $ )
    | level = | time = | \{ \s* \x22 )";

pub(super) const PROMPT_PATTERNS: &[PromptPattern] = &[
    PromptPattern {
        // Yes and no in brackets, optionally with more options: `[y/N]`, `(yes/no/[fingerprint])?`, `[y,n,q,a,d,e,?]?`.
        pattern: r"(?: ^ | [^=\p{L}] ) [\[(<{] (?: <other> <or> )* (?: <yes> (?: <or> <other> )* <or> <no> | <no> (?: <or> <other> )* <or> <yes> )
            (?: <or> <other> )* (?: \s* \[ \w{1,8} \] )? [\])>}] <tail>",
        unless: None,
        prompts: &[
            "Proceed? [y/N]",
            "Proceed? (y/n)",
            "Do you want to continue? [Y/n] ",
            "Overwrite existing file (y/n)?",
            "rm: remove all? <y/n>",
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
            "Are you sure you want to continue connecting (yes/no)? ",
            ":: Proceed with installation? [Y/n] ",
            "Stage this hunk [y,n,q,a,d,e,?]? ",
            "(1/2) Stage this hunk [y,n,q,a,d,j,J,g,/,e,?]? ",
            "*** app.conf (Y/I/N/O/D/Z) [default=N] ? ",
            "Quit anyway? (y or n) ",
            "Kill the process [yes/no]:",
            "? Overwrite the branch? (Y/n) ›",
            "Möchten Sie fortfahren? [J/n] ",
            "Voulez-vous continuer ? [O/n] ",
            "¿Desea continuar? [S/n]",
            "Continue [yes/no/all] (no): ",
            "Ok to proceed? (y) [y/N]",
            "[WARN] the disk is nearly full, go on? [y/N]",
            "Restart services during package upgrades without asking? [yes/no]",
            "Save before leaving {y|n|cancel}:",
            "overwrite 'a.txt'? (y/n [n]) ",
            "Reset branch 'main'? [y/N/?] ",
            "continue (yes or no)?",
        ],
        not_prompts: &[
            "Answer with [y/N] when you are asked.",
            "the flag -y answers [y/N] for you",
            "[y/N] was answered with n",
            "Usage: deploy [y/n] <host>",
            "usage: deploy [y/n]",
            "GET /users?confirm=(yes/no)",
            "# Proceed? [y/N]",
            "echo 'Proceed? [y/N]'",
            "Proceed? [y/N] y",
            "2026-11-15 10:00:01 asked the user: Proceed? [y/N]",
            "INFO: prompt was Proceed? [y/N]",
            "[info] the prompt reads [y/N]",
            "copied [a/b]",
            "tests [n/a]",
            "see issues [1/2]",
        ],
    },
    PromptPattern {
        // Yes and no without brackets, after a question or before a colon.
        pattern: r"(?: [?:] \s* (?: y | yes ) [/|] (?: n | no ) <tail> | \s (?: y | yes ) [/|] (?: n | no ) \s* [:?]+ $ )",
        unless: None,
        prompts: &["Remove? y/n: ", "Continue? yes/no", "Accept? Y/n ", "Drop the table y/n:"],
        not_prompts: &["ratio y/n", "use y/n keys", "Continue? yes/no was asked"],
    },
    PromptPattern {
        // Each answer with its letter in brackets.
        pattern: r"(?: [\[(] [a-z?] [\])] [\p{L}\s]{0,24} [,/|]? \s* (?: or \s+ )? ){2,} (?: [\[(] default [^\])]{0,20} [\])] )? [?:>]+ $",
        unless: None,
        prompts: &[
            "replace a.txt? [y]es, [n]o, [A]ll, [N]one, [r]ename: ",
            "[R]etry, [A]bort or [I]gnore?",
            "(P)roceed, (e)dit, or (q)uit:",
            r#"[Y] Yes  [A] Yes to All  [N] No  [L] No to All  [?] Help (default is "Y"):"#,
        ],
        not_prompts: &["[a]lpha, [b]eta and [c]harlie were built", "options: [v]erbose"],
    },
    PromptPattern {
        // Passwords and other hidden input.
        pattern: r"^ \W* (?: \[ [^\]]{1,20} \] \s* )? (?: \([^)]{1,20}\) \s* )? (?: [\p{L}\p{N}@._'’+/-]+ \s+ ){0,5} <secret>
            (?: \s* [\[(] [^\])]{1,60} [\])] | \s+ (?: for | of | again | für | de | to \s (?: unlock | decrypt ) ) \b [^?!]{0,360} )*
            \s* [:：] $",
        unless: Some(
            r"\b (?: how | set | setting | change | changing | reset | forgot | forgotten | invalid | wrong | incorrect | bad | failed
            | missing | no | without | with | using | is | was | are | has | have | got | expired | error | by | from | in
            | rotate | rotating | read | reading | found | hash | hashed | check | checking ) \b .* <secret>",
        ),
        prompts: &[
            "password:",
            "Password: ",
            "[sudo] password for x: ",
            "[sudo] Passwort für jan:",
            "deploy@10.0.0.5's password: ",
            "Enter passphrase for key '/home/x/.ssh/id_ed25519': ",
            "Enter passphrase for key '/a/very/long/path/that/goes/on/and/on/and/is/longer/than/most/terminals/are/wide/and/then/goes/on/again/over/the/next/line/until/it/comes/to/the/name/of/the/key/id_ed25519': ",
            "Enter passphrase (empty for no passphrase): ",
            "Enter same passphrase again: ",
            "Enter pass phrase for server.key:",
            "New password: ",
            "Retype new password:",
            "(current) UNIX password: ",
            "Password for 'https://x@example.com': ",
            "Password for user postgres: ",
            "BECOME password[defaults to SSH password]: ",
            "Vault password: ",
            "Enter PIN for authenticator: ",
            "Verification code: ",
            "One-time password (OATH) for `x': ",
            "Please enter your API key:",
            "Mot de passe : ",
            "Enter Export Password:",
        ],
        not_prompts: &[
            "This is how you reset your password:",
            "password: hunter2",
            "the password: field is empty",
            "Invalid password:",
            "no password: using the agent",
            "user logged in with password:",
            "ERROR: bad passphrase:",
            "storing the password for x: done",
            "spin:",
            "    \"password\": ",
            "pinning: ",
        ],
    },
    PromptPattern {
        // User names and addresses.
        pattern: r"^ \W* (?: [\p{L}\p{N}._-]+ \s+ ){0,3} (?: login | username | user \s name | user \s id | e-?mail (?: \s address )? | benutzername )
            (?: \s+ for \b [^?!]{1,120} )? (?: \s* [\[(] [^\])]{1,60} [\])] )? \s* : $",
        unless: Some(
            r"\b (?: how | last | failed | invalid | unknown | wrong | no | with | is | was | sent | by | from | bad | error ) \b",
        ),
        prompts: &[
            "login: ",
            "build-7 login:",
            "Username for 'https://example.com': ",
            "Enter Auth Username:",
            "Email address:",
        ],
        not_prompts: &["Last login: ", "failed login:", "sent the e-mail:", "unknown username: x"],
    },
    PromptPattern {
        // A choice from several options.
        pattern: r"<begin> (?: please \s+ )? (?: (?: select | choose | pick | enter | make | type ) \s+ )? (?: (?: an? | one | your | the | of ) \s+ )*
            (?: option | choice | selection | (?: choice | option | selection ) \s+ number | auswahl ) s?
            (?: \s* [\[(] [^\])]{1,60} [\])] | \s+ (?: number | below | from \s the \s (?: list | menu ) | between \s .{1,20} | \d+ \s* (?: - | to ) \s* \d+ ) )*
            (?: \s* [:?>›»] )* $",
        unless: Some(
            r"^ \W* (?: (?: an? | one | your | the ) \s+ )* (?: option | choice | selection ) s? \W* $ | \b (?: was | is | no | bad | invalid | wrong ) \b",
        ),
        prompts: &[
            "Select an option",
            "? Select an option (Use arrow keys)",
            "Select an option [1-3]: ",
            "Choose an option: ",
            "Enter your choice: ",
            "Enter choice (1/2/3):",
            "Please choose your option >",
            "Make a selection:",
            "There are 3 candidates. Pick one option:",
            "Enter selection number between 1 and 4:",
        ],
        not_prompts: &[
            "Select an option from the menu bar to change the theme.",
            "The user must select an option",
            "choices",
            "the choice",
            "Invalid choice:",
            "an option",
        ],
    },
    PromptPattern {
        // A one-word request for a choice.
        pattern: r"^ [^\p{L}\p{N}]* (?: (?: your | my | choice | menu | which ) \s+ )? (?: choice | selection | option | auswahl | pick ) (?: \s* [\[(] [^\])]{1,40} [\])] )?
            \s* [:?>]+ $ | ^ \#\? $",
        unless: None,
        prompts: &["choice:", "Your choice? ", "Selection [1]: ", "#? ", "  option> ", "Choice (1-4): "],
        not_prompts: &["choice: blue", "The right choice:", "#?!"],
    },
    PromptPattern {
        // A request for a number or a word from a list above the prompt.
        pattern: r"^ [^\p{L}\p{N}]* (?: please \s+ )? (?: select | choose | pick ) (?: \s+ (?: an? | one | your | which | between | at \s least | the )
            \b [^.!]{0,60} )? (?: [:>›»] | \[ [^\]]{1,20} \] \s* :? | \( [^)]{1,30} \) \s* :? ) $",
        unless: Some(r"\b (?: following | these | was | were | is | because | steps ) \b"),
        prompts: &[
            "Please select a Python version [3]: ",
            "Choose a template (1-5):",
            "Pick a number:",
            "Please choose:",
            "? Select a framework: ›",
        ],
        not_prompts: &[
            "Selecting previously unselected package curl:",
            "Select from the following steps:",
            "Picked 3 commits:",
        ],
    },
    PromptPattern {
        // A question before the program continues.
        pattern: r"<begin> (?: (?: so | ok | okay | really | and | also | please ) [\s,]+ )* (?: (?: do \s you | would \s you | are \s you | shall \s (?: i | we )
            | should \s (?: i | we ) | may \s i | can \s i | is \s (?: this | that | it ) \s (?: ok | okay | correct | right | fine ) | want \s+ to
            | ready (?: \s to )? | ok \s to | okay \s to | sure | really ) \b <words>{0,120}
            | (?: continue | proceed | overwrite | retry | try \s again | go \s on | go \s ahead | delete | remove | replace | abort | quit | exit | save | discard
            | install | upgrade | restart | reboot | accept | confirm | trust | allow | apply | commit | push | merge | fortfahren ) (?: \s+ <words>{1,80} )? ) \? <tail>",
        unless: Some(
            r"^ \W* (?: why | what | how | when | where | who | whose | which | whether | if | did | does ) \b
            | \b (?: asked | asks | wonder | wondering | says | said | know | means | question | title | faq | wrote ) \b",
        ),
        prompts: &[
            "continue?",
            "Continue? ",
            "Do you really want to continue? ",
            "2 files would be lost, continue?",
            "The disk is almost full. Proceed anyway?",
            "Would you like to create a new project here?",
            "Is this ok? (yes) ",
            "Is this OK?",
            "Overwrite 'notes.txt'? ",
            "Are you sure?",
            "Shall I try again?",
            "Ready to deploy? ",
            "remove write-protected regular file 'a'?",
            "Trust the authors of this folder? [default: no]",
        ],
        not_prompts: &[
            "Why did it not continue?",
            "What happens when I continue?",
            "How do I proceed?",
            "He asked me: do you want to continue?",
            "Will it continue? No one knows.",
            "continue",
            "FAQ: can I delete my account?",
            "discontinued?",
            "error: no such command. Did you mean 'commit'?",
            "# TODO: should we continue?",
            "// Are you sure?",
        ],
    },
    PromptPattern {
        // A question addressed to the user, or one with a default answer.
        pattern: r"<begin> (?: what | which | where | who | how \s (?: many | much | often | long | should ) ) \b <words>{0,60} \b (?: your | you \s (?: want | like | wish | prefer )
            | would \s you | should \s i | shall \s i ) \b <words>{0,80} \? <tail>
            | ^ [^.!]{3,120} \? \s* (?: \[ [^\]]{1,40} \] | \( [^\s)]{1,40} \) ) \s* [:>›»]? $",
        unless: Some(r"\b (?: asked | asks | wonder | says | said | know | means | faq | wrote ) \b"),
        prompts: &[
            "What is your name? ",
            "What would you like to do?",
            "Which version do you want to install?",
            "Where should the project be created? (./app) ",
            "Which one? [1-3]",
            "Install missing components? [Y]",
            "What do you want to do about modified configuration file sshd_config?",
        ],
        not_prompts: &[
            "What does this function do?",
            "What is new in this release?",
            "Where is it? (see the notes below)",
        ],
    },
    PromptPattern {
        // A line that starts with `?`, as prompt libraries write it.
        pattern: r"^ [?❓] \s+ \S .{0,100} [?:›»‣>)\]…] .{0,80} $",
        unless: None,
        prompts: &[
            "? What is your name? ‣ ",
            "? Project name: › my-app",
            "? Pick a preset: (Use arrow keys)",
            "? Target directory ›",
        ],
        not_prompts: &["?", "? is not a command", "?? two"],
    },
    PromptPattern {
        // A field name with a default value.
        pattern: r"^ \p{L} [\p{L}\p{N}\ _/'’-]{1,50} (?: \( [^)]{1,60} \) \s* )? (?: \s* \[ [^\]]{0,60} \] \s* : | : \s* \( [^)\s]{0,60} \) ) $",
        unless: Some(
            r"^ \p{L}+ ing \b | \d+ \s* (?: of | / ) \s* \d+ | ^ (?: note | hint | warning | error | see | step | test | stage | phase | epoch ) \b | %",
        ),
        prompts: &[
            "Port [8080]: ",
            "Country Name (2 letter code) [AU]:",
            "Common Name (e.g. server FQDN or YOUR name) []:",
            "package name: (foo) ",
            "version: (1.0.0) ",
            "Default region name [None]: ",
        ],
        not_prompts: &["Uploading [part 1]:", "Batch [3/10]:", "Note: (below)", "step 3 [build]:", "[8080]:"],
    },
    PromptPattern {
        // A field name alone, for something that only the user knows.
        pattern: r"^ [^\p{L}\p{N}]* (?: your \s+ )? (?: (?: first | last | full | user | project | host | file | domain | display | branch ) \s? name | name | answer | reply | response ) \s* : $",
        unless: None,
        prompts: &["Name: ", "First name:", "> Your answer: ", "Project name:"],
        not_prompts: &["Name: x", "Test name here:", "hostname lookup:"],
    },
    PromptPattern {
        // A request to type something.
        pattern: r"<begin> (?: please \s+ )? (?: enter | input | type | provide | specify | supply | paste | give ) \s+ <words>{1,120} [:>›»] <tail>",
        unless: Some(
            r"\b (?: following | commands | these | this \s command | below | as \s follows | steps | error | mode | phase | state | example | when | if | was | were | is | has )
            \b | \b (?: enter | type ) \s+ (?: of | is | was ) \b | ^ \W* type \s+ \w+ \s* : $",
        ),
        prompts: &[
            "  Enter a value: ",
            "Enter file in which to save the key (/home/x/.ssh/id_rsa): ",
            "Please enter your name:",
            "Type 'yes' to confirm:",
            "Type DELETE to confirm: ",
            "Paste your token here:",
            "Enter new UNIX user id [1000]: ",
            "? Enter the project's name ›",
            "To delete the cluster, type its name:",
        ],
        not_prompts: &[
            "Enter the following commands:",
            "Type the commands below:",
            "Type error:",
            "type Foo:",
            "Enter recovery mode:",
            "Enter a value. Then go on.",
            "Enter key was pressed:",
        ],
    },
    PromptPattern {
        // A pager.
        pattern: r"^ (?: --more-- (?: \s* \( [^)]{1,20} \) )? | .{0,80} \( END \) | lines \s \d+ - \d+ (?: / \d+ )? (?: \s .{0,40} )? ) $",
        unless: None,
        prompts: &["--More--", "--More--(42%)", "(END)", "lines 1-23/120 (END)", "lines 1-23"],
        not_prompts: &["more", "the end", "BEGIN (END) END"],
    },
];

/// Prompts that are also recognized on a complete line right above the cursor, because such a text has no other use.
pub(super) const ABOVE_CURSOR_PATTERNS: &[PromptPattern] = &[
    PromptPattern {
        // A request to press a key to continue.
        pattern: r"<begin> (?: please \s+ )? (?: press | hit | push | tap | type | strike )? \s* (?: the \s+ )? (?: any \s key | (?: [\[<(]? (?:
            enter | return | ⏎ | space (?: \s? bar )? ) [\]>)]? (?: [/|] (?: enter | return ) )? ) (?: \s key )? (?: \s+ or \s+ [\p{L}\s]{1,30} )? ) (?: \s+ to \s+ (?: continue | proceed | go \s on
            | start | begin | exit | quit | close | finish | confirm | accept | select | skip | retry | resume | return | open | abort | cancel )
            \b <words>{0,60} | \s+ when \s+ (?: ready | done | finished ) )? [.…:!\])>*\s-]* $",
        unless: Some(
            r"^ \W* (?: any \s key | enter | return | space (?: \s? bar )? ) (?: \s key )? \W* $ | \b (?: if | whenever | you \s can | then | simply | when \s+ (?: you | it | the | they | asked ) ) \b",
        ),
        prompts: &[
            "Press Enter to continue",
            "Press ENTER to continue...",
            "Press any key to continue . . .",
            "press any key",
            "Press [Enter] to continue:",
            "[Press ENTER to continue]",
            "-- Press RETURN --",
            "Hit <return> to go on",
            "Done. Press Enter to exit.",
            "Press ENTER or type command to continue",
            "Please press the space bar to start the installation",
            "Press RETURN/ENTER to continue or any other key to abort:",
            "Press Enter to open the browser, or Ctrl-C to quit",
            "(press return to continue)",
            "Hit enter when ready",
        ],
        not_prompts: &[
            "Tell them to press Enter to continue",
            "You can press Enter to continue at any time",
            "press h + enter to show help",
            " › Press Enter to trigger a test run.",
            "Press Ctrl-C to stop the server",
            "the handler waits until users press any key to continue, which is odd",
            "If it hangs, press Enter to continue",
            "return",
            "Enter",
            "press q to quit",
        ],
    },
    PromptPattern {
        // A request to press a key, in other languages.
        pattern: r"^ \W* (?: weiter \s mit | drücken \s sie | bitte | appuyez \s sur | presione | pulse | premi | pressione ) \b .{0,40}
            \b (?: taste | eingabetaste | enter | return | touche | entrée | tecla | intro | tasto | invio ) \b .{0,40} $",
        unless: Some(r"\? | \b (?: nicht | nie | wenn | si | se ) \b"),
        prompts: &[
            "Drücken Sie eine beliebige Taste . . .",
            "Weiter mit Eingabetaste",
            "Appuyez sur Entrée pour continuer",
            "Pulse una tecla para continuar",
        ],
        not_prompts: &["Drücken Sie nicht die Taste", "die Taste"],
    },
];
