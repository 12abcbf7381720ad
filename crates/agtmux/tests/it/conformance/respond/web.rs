//! Answers the real Claude Code from the web dashboard on a phone: from `agtmux web` to the effect of the answer.

use agtmux_testkit::skip;
use serde_json::Value;

use super::{DialogReply, DialogTester, RESPONSE_TIMEOUT, poll_until};
use crate::browser::Browser;
use crate::dashboard::is_built;

/// The button of the first option, in the inbox.
const APPROVE: &str = "[data-option='1']";

pub(super) fn check(agent: &DialogTester<'_>) {
    let (done, link, error) = agent.sandbox().run_agtmux(&["web"]);
    assert!(done, "{error}");
    let world = agent.sandbox().world();
    if !is_built(link.trim()) {
        return skip("web/dist is empty; make web builds it");
    }
    let Some(browser) = Browser::start(world) else { return };
    browser.set_screen(390, 844, true, "light");
    browser.open(link.trim());
    browser.wait_until("the empty inbox", "return document.body.innerText.includes('Nothing waits for you')");
    answer_from_the_phone(agent, &browser);
    dialog_answered_in_the_terminal_first(agent, &browser);
    // The browser reports the answer that the daemon refused.
    let other: Vec<String> = browser.console_errors().into_iter().filter(|entry| !entry.contains("409")).collect();
    assert_eq!(other, Vec::<String>::new());
}

fn answer_from_the_phone(agent: &DialogTester<'_>, browser: &Browser) {
    agent.prompt_for_dialog("RUN touch from-the-phone.txt", "from-the-phone.txt");
    browser.wait_until(
        "the command",
        "return document.querySelector('.subject')?.innerText.includes('from-the-phone.txt')",
    );
    // A press directly after the card has appeared is not taken, so it may need a second one.
    poll_until(RESPONSE_TIMEOUT, || {
        if browser.run(&format!("return document.querySelector({APPROVE:?})?.disabled === false")) == true {
            browser.click(APPROVE);
        }
        agent.file_exists("from-the-phone.txt").then_some(())
    })
    .expect("the answer reaches the agent");
    browser.wait_until("the mark of the answer", "return document.querySelector('.answered') !== null");
    browser.wait_until("the end of the card", "return document.querySelector('[data-option]') === null");
}

/// The button disappears when the dialog is answered in the terminal, and a request that was on its way is refused.
fn dialog_answered_in_the_terminal_first(agent: &DialogTester<'_>, browser: &Browser) {
    let dialog = agent.prompt_for_dialog("RUN touch not-approved.txt", "not-approved.txt");
    browser.wait_until("the button", &format!("return document.querySelector({APPROVE:?}) !== null"));
    let runtime = agent.listed_item()["runtime_id"].clone();
    agent.driver.press_all(agent.driver.agent.keys(DialogReply::Deny));
    poll_until(RESPONSE_TIMEOUT, || agent.dialog().is_null().then_some(())).expect("the dialog is closed");
    browser.wait_until("the end of the button", "return document.querySelector('[data-option]') === null");
    let body = serde_json::json!({"ref": format!("runtime:{}", runtime.as_str().unwrap_or_default()),
        "if_runtime": runtime, "if_dialog": dialog["fingerprint"], "answer": {"option": 1}, "client": "web"});
    let late = browser.run(&format!(
        "return fetch('/v1/actions/respond', {{method: 'POST', body: JSON.stringify({body}), headers: {{\
         'content-type': 'application/json', 'x-agtmux': '1', authorization: 'Bearer ' + localStorage.getItem('token')}}}})\
         .then(async (response) => [response.status, (await response.json()).code])"
    ));
    assert_eq!((&late[0], &late[1]), (&Value::from(409), &Value::from("E_STATE_CHANGED")), "{late}");
    assert!(!agent.file_exists("not-approved.txt"));
}
