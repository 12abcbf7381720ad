//! The table of prompt patterns.

pub(super) struct PromptPattern {
    /// The kind of prompt. The examples for this pattern in the tests have the same name.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests read it"))]
    pub name: &'static str,
    /// Matches the trimmed line. Case is ignored, and so is whitespace in the pattern.
    pub pattern: &'static str,
    /// Excludes lines that only look like this prompt.
    pub unless: Option<&'static str>,
}

/// Shared parts of patterns.
pub(super) const PARTS: &[(&str, &str)] = &[
    // The start of a sentence: at the start of the line, optionally after a symbol, or after another sentence.
    ("<begin>", r"(?: ^ [^\p{L}\p{N}]* | [.!?:;,)\]}>] \s+ | [\[(<{] | \s [-–—*|] \s+ )"),
    // Part of one sentence. A dot inside a word does not end the sentence.
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
        name: "Yes and no in brackets, optionally with more options: `[y/N]`, `(yes/no/[fingerprint])?`, `[y,n,q,a,d,e,?]?`.",
        pattern: r"(?: ^ | [^=\p{L}] ) [\[(<{] (?: <other> <or> )* (?: <yes> (?: <or> <other> )* <or> <no> | <no> (?: <or> <other> )* <or> <yes> )
            (?: <or> <other> )* (?: \s* \[ \w{1,8} \] )? [\])>}] <tail>",
        unless: None,
    },
    PromptPattern {
        name: "Yes and no without brackets, after a question or before a colon.",
        pattern: r"(?: [?:] \s* (?: y | yes ) [/|] (?: n | no ) <tail> | \s (?: y | yes ) [/|] (?: n | no ) \s* [:?]+ $ )",
        unless: None,
    },
    PromptPattern {
        name: "Each answer with its letter in brackets.",
        pattern: r"(?: [\[(] [a-z?] [\])] [\p{L}\s]{0,24} [,/|]? \s* (?: or \s+ )? ){2,} (?: [\[(] default [^\])]{0,20} [\])] )? [?:>]+ $",
        unless: None,
    },
    PromptPattern {
        name: "Passwords and other hidden input.",
        pattern: r"^ \W* (?: \[ [^\]]{1,20} \] \s* )? (?: \([^)]{1,20}\) \s* )? (?: [\p{L}\p{N}@._'’+/-]+ \s+ ){0,5} <secret>
            (?: \s* [\[(] [^\])]{1,60} [\])] | \s+ (?: for | of | again | für | de | to \s (?: unlock | decrypt ) ) \b [^?!]{0,360} )*
            \s* [:：] $",
        unless: Some(
            r"\b (?: how | set | setting | change | changing | reset | forgot | forgotten | invalid | wrong | incorrect | bad | failed
            | missing | no | without | with | using | is | was | are | has | have | got | expired | error | by | from | in
            | rotate | rotating | read | reading | found | hash | hashed | check | checking ) \b .* <secret>",
        ),
    },
    PromptPattern {
        name: "User names and addresses.",
        pattern: r"^ \W* (?: [\p{L}\p{N}._-]+ \s+ ){0,3} (?: login | username | user \s name | user \s id | e-?mail (?: \s address )? | benutzername )
            (?: \s+ for \b [^?!]{1,120} )? (?: \s* [\[(] [^\])]{1,60} [\])] )? \s* : $",
        unless: Some(
            r"\b (?: how | last | failed | invalid | unknown | wrong | no | with | is | was | sent | by | from | bad | error ) \b",
        ),
    },
    PromptPattern {
        name: "A choice from several options.",
        pattern: r"<begin> (?: please \s+ )? (?: (?: select | choose | pick | enter | make | type ) \s+ )? (?: (?: an? | one | your | the | of ) \s+ )*
            (?: option | choice | selection | (?: choice | option | selection ) \s+ number | auswahl ) s?
            (?: \s* [\[(] [^\])]{1,60} [\])] | \s+ (?: number | below | from \s the \s (?: list | menu ) | between \s .{1,20} | \d+ \s* (?: - | to ) \s* \d+ ) )*
            (?: \s* [:?>›»] )* $",
        unless: Some(
            r"^ \W* (?: (?: an? | one | your | the ) \s+ )* (?: option | choice | selection ) s? \W* $ | \b (?: was | is | no | bad | invalid | wrong ) \b",
        ),
    },
    PromptPattern {
        name: "A one-word request for a choice.",
        pattern: r"^ [^\p{L}\p{N}]* (?: (?: your | my | choice | menu | which ) \s+ )? (?: choice | selection | option | auswahl | pick ) (?: \s* [\[(] [^\])]{1,40} [\])] )?
            \s* [:?>]+ $ | ^ \#\? $",
        unless: None,
    },
    PromptPattern {
        name: "A request for a number or a word from a list above the prompt.",
        pattern: r"^ [^\p{L}\p{N}]* (?: please \s+ )? (?: select | choose | pick ) (?: \s+ (?: an? | one | your | which | between | at \s least | the )
            \b [^.!]{0,60} )? (?: [:>›»] | \[ [^\]]{1,20} \] \s* :? | \( [^)]{1,30} \) \s* :? ) $",
        unless: Some(r"\b (?: following | these | was | were | is | because | steps ) \b"),
    },
    PromptPattern {
        name: "A question before the program continues.",
        pattern: r"<begin> (?: (?: so | ok | okay | really | and | also | please ) [\s,]+ )* (?: (?: do \s you | would \s you | are \s you | shall \s (?: i | we )
            | should \s (?: i | we ) | may \s i | can \s i | is \s (?: this | that | it ) \s (?: ok | okay | correct | right | fine ) | want \s+ to
            | ready (?: \s to )? | ok \s to | okay \s to | sure | really ) \b <words>{0,120}
            | (?: continue | proceed | overwrite | retry | try \s again | go \s on | go \s ahead | delete | remove | replace | abort | quit | exit | save | discard
            | install | upgrade | restart | reboot | accept | confirm | trust | allow | apply | commit | push | merge | fortfahren ) (?: \s+ <words>{1,80} )? ) \? <tail>",
        unless: Some(
            r"^ \W* (?: why | what | how | when | where | who | whose | which | whether | if | did | does ) \b
            | \b (?: asked | asks | wonder | wondering | says | said | know | means | question | title | faq | wrote ) \b",
        ),
    },
    PromptPattern {
        name: "A question addressed to the user, or one with a default answer.",
        pattern: r"<begin> (?: what | which | where | who | how \s (?: many | much | often | long | should ) ) \b <words>{0,60} \b (?: your | you \s (?: want | like | wish | prefer )
            | would \s you | should \s i | shall \s i ) \b <words>{0,80} \? <tail>
            | ^ [^.!]{3,120} \? \s* (?: \[ [^\]]{1,40} \] | \( [^\s)]{1,40} \) ) \s* [:>›»]? $",
        unless: Some(r"\b (?: asked | asks | wonder | says | said | know | means | faq | wrote ) \b"),
    },
    PromptPattern {
        name: "A line that starts with `?`, as prompt libraries write it.",
        pattern: r"^ [?❓] \s+ \S .{0,100} [?:›»‣>)\]…] .{0,80} $",
        unless: None,
    },
    PromptPattern {
        name: "A field name with a default value.",
        pattern: r"^ \p{L} [\p{L}\p{N}\ _/'’-]{1,50} (?: \( [^)]{1,60} \) \s* )? (?: \s* \[ [^\]]{0,60} \] \s* : | : \s* \( [^)\s]{0,60} \) ) $",
        unless: Some(
            r"^ \p{L}+ ing \b | \d+ \s* (?: of | / ) \s* \d+ | ^ (?: note | hint | warning | error | see | step | test | stage | phase | epoch ) \b | %",
        ),
    },
    PromptPattern {
        name: "A field name alone, for something that only the user knows.",
        pattern: r"^ [^\p{L}\p{N}]* (?: your \s+ )? (?: (?: first | last | full | user | project | host | file | domain | display | branch ) \s? name | name | answer | reply | response ) \s* : $",
        unless: None,
    },
    PromptPattern {
        name: "A request to type something.",
        pattern: r"<begin> (?: please \s+ )? (?: enter | input | type | provide | specify | supply | paste | give ) \s+ <words>{1,120} [:>›»] <tail>",
        unless: Some(
            r"\b (?: following | commands | these | this \s command | below | as \s follows | steps | error | mode | phase | state | example | when | if | was | were | is | has )
            \b | \b (?: enter | type ) \s+ (?: of | is | was ) \b | ^ \W* type \s+ \w+ \s* : $",
        ),
    },
    PromptPattern {
        name: "A pager.",
        pattern: r"^ (?: --more-- (?: \s* \( [^)]{1,20} \) )? | .{0,80} \( END \) | lines \s \d+ - \d+ (?: / \d+ )? (?: \s .{0,40} )? ) $",
        unless: None,
    },
];

/// Patterns that also apply if the cursor is on the empty line below the prompt. Programs print a text such as "Press
/// Enter to continue" only as a prompt, so the position of the cursor does not matter.
pub(super) const ABOVE_CURSOR_PATTERNS: &[PromptPattern] = &[
    PromptPattern {
        name: "A request to press a key to continue.",
        pattern: r"<begin> (?: please \s+ )? (?: press | hit | push | tap | type | strike )? \s* (?: the \s+ )? (?: any \s key | (?: [\[<(]? (?:
            enter | return | ⏎ | space (?: \s? bar )? ) [\]>)]? (?: [/|] (?: enter | return ) )? ) (?: \s key )? (?: \s+ or \s+ [\p{L}\s]{1,30} )? ) (?: \s+ to \s+ (?: continue | proceed | go \s on
            | start | begin | exit | quit | close | finish | confirm | accept | select | skip | retry | resume | return | open | abort | cancel )
            \b <words>{0,60} | \s+ when \s+ (?: ready | done | finished ) )? [.…:!\])>*\s-]* $",
        unless: Some(
            r"^ \W* (?: any \s key | enter | return | space (?: \s? bar )? ) (?: \s key )? \W* $ | \b (?: if | whenever | you \s can | then | simply | when \s+ (?: you | it | the | they | asked ) ) \b",
        ),
    },
    PromptPattern {
        name: "A request to press a key, in other languages.",
        pattern: r"^ \W* (?: weiter \s mit | drücken \s sie | bitte | appuyez \s sur | presione | pulse | premi | pressione ) \b .{0,40}
            \b (?: taste | eingabetaste | enter | return | touche | entrée | tecla | intro | tasto | invio ) \b .{0,40} $",
        unless: Some(r"\? | \b (?: nicht | nie | wenn | si | se ) \b"),
    },
];
