//! The states that agtmux reports while dialogs and panels of extensions are open.

use agtmux_testkit::real_agents::states::ReportedState;
use agtmux_testkit::wait_for;

use super::pi_fixture::{PI_TIMEOUT, PiFixture};

/// Tools that ask the user: in an overlay over the running turn, and in a list.
const QUESTIONS: &str = r#"
export default function (pi) {
	const tool = (name, ask) => pi.registerTool({
		name, label: name, description: name, parameters: { type: "object", properties: {} },
		execute: async (_id, _params, _signal, _onUpdate, ctx) => {
			return { content: [{ type: "text", text: `answered ${await ask(ctx.ui)}` }], details: undefined };
		},
	});
	tool("ask_overlay", (ui) => ui.custom((_tui, _theme, _keys, done) => ({
		render: () => ["Which one? y or n"],
		handleInput: (data) => { if (data === "y") done("y"); },
		invalidate() {},
	}), { overlay: true }));
	tool("ask_permission", (ui) => ui.select("Allow this command?", ["Yes", "No"]));
}
"#;

/// The states that agtmux has reported, from this report on, without repetitions.
fn states_since(pi: &PiFixture, from: usize) -> Vec<ReportedState> {
    let mut states: Vec<_> =
        pi.sandbox.watch.state_reports().into_iter().skip(from).map(|report| report.state).collect();
    states.dedup();
    states
}

#[track_caller]
fn wait_for_state(pi: &PiFixture, state: &str, from: usize) {
    wait_for(&format!("the state {state}"), PI_TIMEOUT, || {
        let states = states_since(pi, from);
        if states.last().is_some_and(|last| last.as_str() == state) { Ok(()) } else { Err(format!("{states:?}")) }
    });
}

#[test]
fn questions_wait_and_panels_of_the_user_do_not() {
    let Some(pi) = PiFixture::open_core() else { return };
    pi.add_extension("questions.ts", QUESTIONS);
    pi.launch("pi");
    let now = || pi.sandbox.watch.state_reports().len();
    pi.prompt("SAY ready");
    let start = now().saturating_sub(1);
    wait_for_state(&pi, "completed", start);
    // The panel of the user.
    let from = now();
    pi.type_line("/tmux-tasks");
    pi.wait_for_screen("the panel", |screen| screen.contains("Esc close"));
    pi.sandbox.press("r");
    agtmux_testkit::wait_for_next_second();
    pi.sandbox.press("Escape");
    pi.wait_for_screen("the panel to close", |screen| !screen.contains("Esc close"));
    let waits = |state: &ReportedState| state.as_str().starts_with("waiting");
    assert!(!states_since(&pi, from).iter().any(waits), "{:?}", states_since(&pi, from));
    // A question over a running turn.
    let from = now();
    pi.type_line("CALL ask_overlay {}");
    pi.wait_for_screen("the question", |screen| screen.contains("Which one? y or n"));
    wait_for_state(&pi, "waiting_input", from);
    let asked = now();
    // The spinner of the turn goes on.
    for _ in 0..2 {
        agtmux_testkit::wait_for_next_second();
    }
    assert_eq!(states_since(&pi, asked), [], "the question stays open");
    pi.sandbox.press("y");
    wait_for_state(&pi, "completed", asked);
    // A permission.
    let from = now();
    pi.type_line("CALL ask_permission {}");
    wait_for_state(&pi, "waiting_approval", from);
    let is_input = |state: &ReportedState| state.as_str() == "waiting_input";
    assert!(!states_since(&pi, from).iter().any(is_input), "{:?}", states_since(&pi, from));
    pi.sandbox.press("Enter");
    wait_for_state(&pi, "completed", from);
    // The list of sessions at the start.
    pi.quit();
    let from = now();
    pi.sandbox.type_text("pi -r");
    pi.sandbox.press("Enter");
    pi.wait_for_screen("the list", |screen| screen.contains("Resume Session"));
    wait_for_state(&pi, "waiting_input", from);
    pi.sandbox.press("Enter");
    pi.wait_for_screen("the session", |screen| screen.contains("answered y"));
    wait_for_state(&pi, "idle", from);
}
