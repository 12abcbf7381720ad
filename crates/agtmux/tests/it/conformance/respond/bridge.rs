//! Checks `POST /api/respond/AGENT_ID` with the real Claude Code: answers reach the model, and nothing else is typed.

use agtmux_testkit::bridge::{follow, post};
use agtmux_testkit::http::{HttpResponse, SseClient, get};
use serde_json::{Value, json};

use super::{DialogTester, RESPONSE_TIMEOUT, poll_until};

/// Answers dialogs of one agent by its bridge agent id.
struct BridgeDialogTester<'a> {
    agent: &'a DialogTester<'a>,
    agent_id: String,
    events: SseClient,
}

pub(super) fn check(agent: &DialogTester<'_>) {
    let agent_id = poll_until(RESPONSE_TIMEOUT, || agent.listed_item()["agent_id"].as_str().map(str::to_owned));
    let agent_id = agent_id.expect("the hooks report the session");
    let events = follow(agent.sandbox().world(), "?types=state_changed,turn_created", None);
    let bridged = BridgeDialogTester { agent, agent_id, events };
    bridged.check_no_dialog();
    bridged.successful_response_delivery();
    bridged.check_one_option();
    bridged.other_mode_response_delivery();
    bridged.check_several_options();
    bridged.check_several_questions();
}

impl BridgeDialogTester<'_> {
    fn path(&self) -> String {
        format!("/api/respond/{}", self.agent_id)
    }

    fn respond(&self, body: &Value) -> HttpResponse {
        post(self.agent.sandbox().world(), &self.path(), &body.to_string())
    }

    /// Asserts that the answer is refused with this error and the dialog stays open.
    #[track_caller]
    fn assert_refused(&self, status: u16, error_type: &str, body: &Value) -> Value {
        let asked = self.agent.dialog();
        let answer = self.respond(body);
        let error = answer.json();
        assert_eq!((answer.status, error["error_type"].as_str()), (status, Some(error_type)), "{body}: {error}");
        assert!(error["hint"].is_string() && error["status"] == "error", "{error}");
        assert_eq!(self.agent.dialog()["fingerprint"], asked["fingerprint"], "{body}");
        error
    }

    /// Asserts that the answer is confirmed. Returns the turn id.
    #[track_caller]
    fn assert_answered(&self, body: &Value) -> Value {
        let answer = self.respond(body);
        let response = answer.json();
        assert_eq!(answer.status, 200, "{body}: {response}\n{}", self.agent.driver.screen_text());
        assert_eq!((&response["status"], &response["agent_id"]), (&json!("ok"), &json!(self.agent_id)), "{response}");
        assert_eq!((&response["verified"], &response["mode"]), (&json!("confirmed"), &body["mode"]), "{response}");
        assert!(matches!(response["new_state"].as_str(), Some("PROCESSING" | "COMPLETE")), "{response}");
        assert!(response["latency_ms"].is_u64(), "{response}");
        response["turn_id"].clone()
    }

    fn check_no_dialog(&self) {
        self.assert_refused(409, "wrong_state", &json!({"mode": "text", "text": "hello"}));
        self.assert_refused(409, "wrong_state", &json!({"mode": "multi_select", "answers": [0]}));
        let available = get(&self.agent.sandbox().world().socket(), &format!("{}/availability", self.path())).json();
        assert_eq!(available["commander_available"], true, "{available}");
    }

    fn successful_response_delivery(&self) {
        let asked = self.agent.prompt_for_dialog("ASK for words", "colour");
        self.assert_refused(409, "wrong_state", &json!({"mode": "text", "text": "x", "if_dialog": "another"}));
        self.assert_refused(400, "missing_text", &json!({"mode": "text", "text": " "}));
        let turn_id =
            self.assert_answered(&json!({"mode": "text", "text": "a red of mine", "if_dialog": asked["fingerprint"]}));
        self.agent.wait_for_model_text("a red of mine");
        let received =
            self.events.until("the turn", |event| event.data["turn_id"] == turn_id && event.is("turn_created"));
        let turn = &received.last().expect("the turn event arrived").data;
        assert_eq!((&turn["actor"], &turn["intent"]), (&json!("USER"), &json!("ANSWER")), "{turn}");
        let goes_on = |event: &agtmux_testkit::http::SseEvent| {
            event.data["new_state"] == "PROCESSING" && event.data["turn_id"] == turn_id
        };
        if !received.iter().any(goes_on) {
            self.events.until("the state change caused by the turn", goes_on);
        }
    }

    fn check_one_option(&self) {
        self.agent.prompt_for_dialog("ASK for an option", "colour");
        self.assert_refused(400, "invalid_option_index", &json!({"mode": "select", "option_index": 8}));
        self.assert_refused(400, "invalid_answers", &json!({"mode": "multi_select", "answers": [0, 1]}));
        self.assert_refused(409, "wrong_state", &json!({"mode": "select", "option_index": 2}));
        self.assert_answered(&json!({"mode": "select", "option_index": 1}));
        self.agent.wait_for_model_text(r#"=\"Blue"#);
    }

    fn other_mode_response_delivery(&self) {
        self.agent.prompt_for_dialog("ASK for something else", "colour");
        self.assert_answered(&json!({"mode": "other", "text": "a green of mine"}));
        self.agent.wait_for_model_text("a green of mine");
        // A dialog with checkboxes submits free text differently.
        self.agent.prompt_for_dialog("MANY for something else", "shapes");
        self.tick_option_in_terminal("2", "Square");
        self.assert_answered(&json!({"mode": "other", "text": "a shape of mine"}));
        self.agent.wait_for_model_text(r#"=\"a shape of mine\""#);
    }

    /// Ticks an option as a user would. The answer must untick it.
    fn tick_option_in_terminal(&self, key: &str, label: &str) {
        self.agent.driver.press_all(&[key]);
        let ticked = || self.agent.sandbox().capture().screen.contains(&format!("[✔] {label}"));
        poll_until(RESPONSE_TIMEOUT, || ticked().then_some(())).expect("the option is ticked");
    }

    fn check_several_options(&self) {
        let asked = self.agent.prompt_for_dialog("MANY shapes", "shapes");
        assert_eq!(asked["multiple"], true, "{asked}");
        for answers in [json!([]), json!([7]), json!([3]), json!([4]), json!("1"), json!([{}])] {
            self.assert_refused(400, "invalid_answers", &json!({"mode": "multi_select", "answers": answers}));
        }
        self.tick_option_in_terminal("2", "Square");
        self.assert_answered(&json!({"mode": "multi_select", "answers": [0, 2], "if_dialog": asked["fingerprint"]}));
        self.agent.wait_for_model_text(r#"=\"Round, Oval\""#);
        self.agent.prompt_for_dialog("MANY and one", "shapes");
        self.assert_answered(&json!({"mode": "select", "option_index": 1}));
        self.agent.wait_for_model_text(r#"=\"Square\""#);
    }

    fn check_several_questions(&self) {
        self.agent.prompt_for_dialog("SEVERAL at once", "shapes");
        let both = json!([{"option_indices": [1, 2]}, {"option_index": 0}]);
        self.assert_answered(&json!({"mode": "multi_select", "answers": both, "request_ref": "both"}));
        self.agent.wait_for_model_text(r#"=\"Square, Oval\""#);
        self.agent.wait_for_model_text(r#"=\"Red\""#);
        // Answering one question at a time works too; the remaining question stays open.
        self.agent.prompt_for_dialog("SEVERAL in turn", "shapes");
        let first = self.respond(&json!({"mode": "multi_select", "answers": [2]})).json();
        assert_eq!(first["new_state"], "AWAITING_INPUT", "{first}");
        let too_many = json!([{"text": "a blue of mine"}, {"option_index": 0}]);
        let answer = self.respond(&json!({"mode": "multi_select", "answers": too_many}));
        let error = answer.json();
        assert_eq!((answer.status, error["error_type"].as_str()), (409, Some("wrong_state")), "{error}");
        assert!(error["message"].as_str().is_some_and(|m| m.starts_with("1 of 2 answers were sent")), "{error}");
        self.agent.wait_for_model_text(r#"=\"Oval\""#);
        self.agent.wait_for_model_text("a blue of mine");
    }
}
