//! Random chains of programs that start programs. None of them hides the agent at its start.

use std::fs;

use agtmux_testkit::agtmux::soak;
use agtmux_testkit::seeded_random::SeededRandom;

use super::agent_fixture::AgentFixture;

/// How one script starts the next one, `NEXT`. A terminal that closes ends the programs in it, so a link that opens one
/// waits (`WAIT`) until the last script has ended. Each tmux server has its own name (`NAME`): tmux loses a window that is
/// opened while the server ends.
const LINKS: [&str; 15] = [
    "sh NEXT",
    "exec sh NEXT",
    "sh -c 'sh NEXT'",
    "env -i sh NEXT",
    "env -u TMUX -u TMUX_PANE -u AGTMUX_RUN_ID sh NEXT",
    "setsid -f sh NEXT",
    "setsid sh NEXT",
    "nohup sh NEXT >/dev/null 2>&1 &",
    "(sh NEXT &)",
    "script -qc 'sh NEXT; WAIT' /dev/null </dev/null >/dev/null 2>&1 &",
    "PROGRAM run -- sh NEXT",
    "PROGRAM task run --session pi-foo-r NAME -- 'sh NEXT; WAIT'",
    "tmux new-window -d 'sh NEXT; WAIT'",
    "tmux run-shell -b 'sh NEXT'",
    "tmux -L NAME new-session -d 'sh NEXT; WAIT'",
];

const MAX_LENGTH: usize = 5;

#[test]
fn no_random_chain_of_programs_hides_an_agent() {
    let fixture = AgentFixture::start("");
    let mut random = SeededRandom::new();
    for _ in 0..if soak() { 500 } else { 12 } {
        let acting = fixture.write_script("chain");
        let mut links = Vec::new();
        let ended = fixture.file(&format!("{acting}.ended"));
        let wait = format!("while [ ! -e {} ]; do sleep 0.1; done", ended.display());
        let mut next = fixture.script(&acting);
        for at in 0..=random.below(MAX_LENGTH) {
            let link = random.pick(&LINKS).expect("there are links");
            let script = fixture.file(&format!("{acting}-link-{at}.sh"));
            let line = link.replace("NEXT", &next).replace("WAIT", &wait).replace("NAME", &format!("{acting}-{at}"));
            let line = line.replace("PROGRAM", env!("CARGO_BIN_EXE_agtmux"));
            fs::write(&script, format!("{}{line}\n", fixture.exports())).expect("the world is writable");
            next = script.display().to_string();
            links.push(link);
        }
        links.reverse();
        println!("{acting}: {links:?}");
        fixture.type_line(&fixture.agent, &format!("sh {next}"));
        fixture.result(&acting).assert_refused();
    }
}
