//! `POST /api/respond/AGENT_ID` on the real Claude Code: what is answered reaches the model, and nothing else is typed.

use serde_json::{Value, json};

use super::super::bridge::{follow, post};
use super::super::http::{Answer, Events, get};
use super::{DialogTester, RESPONSE_TIMEOUT, poll_until};

/// One agent, by the id that the bridge has for it.
struct BridgeDialogTester<'a> {
    agent: &'a DialogTester<'a>,
    agent_id: String,
    events: Events,
}

pub(super) fn check(agent: &DialogTester<'_>) {
    let agent_id = poll_until(RESPONSE_TIMEOUT, || agent.listed_item()["agent_id"].as_str().map(str::to_owned));
    let agent_id = agent_id.expect("its hooks name its session");
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

    fn respond(&self, body: &Value) -> Answer {
        post(self.agent.sandbox().world(), &self.path(), &body.to_string())
    }

    /// Refused by this name, and whatever was asked is asked still.
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

    /// Answered, and seen to go on. Gives the turn.
    #[track_caller]
    fn assert_answered(&self, body: &Value) -> Value {
        let answer = self.respond(body);
        let said = answer.json();
        assert_eq!(answer.status, 200, "{body}: {said}\n{}", self.agent.driver.screen_text());
        assert_eq!((&said["status"], &said["agent_id"]), (&json!("ok"), &json!(self.agent_id)), "{said}");
        assert_eq!((&said["verified"], &said["mode"]), (&json!("confirmed"), &body["mode"]), "{said}");
        assert!(matches!(said["new_state"].as_str(), Some("PROCESSING" | "COMPLETE")), "{said}");
        assert!(said["latency_ms"].is_u64(), "{said}");
        said["turn_id"].clone()
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
        let seen = self.events.until("the turn", |event| event.data["turn_id"] == turn_id && event.is("turn_created"));
        let turn = &seen.last().expect("until it was seen").data;
        assert_eq!((&turn["actor"], &turn["intent"]), (&json!("USER"), &json!("ANSWER")), "{turn}");
        let goes_on = |event: &super::super::http::Event| {
            event.data["new_state"] == "PROCESSING" && event.data["turn_id"] == turn_id
        };
        if !seen.iter().any(goes_on) {
            self.events.until("the change that the turn led to", goes_on);
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
        // Where options are ticked, what is typed is sent off in another way.
        self.agent.prompt_for_dialog("MANY for something else", "shapes");
        self.tick_option_in_terminal("2", "Square");
        self.assert_answered(&json!({"mode": "other", "text": "a shape of mine"}));
        self.agent.wait_for_model_text(r#"=\"a shape of mine\""#);
    }

    /// What somebody has ticked and is not wanted is taken back.
    fn tick_option_in_terminal(&self, key: &str, label: &str) {
        self.agent.driver.press_all(&[key]);
        let ticked = || self.agent.sandbox().capture().screen.contains(&format!("[✔] {label}"));
        poll_until(RESPONSE_TIMEOUT, || ticked().then_some(())).expect("it is ticked");
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
        // One after the other is as good, and what is left is still asked.
        self.agent.prompt_for_dialog("SEVERAL in turn", "shapes");
        let first = self.respond(&json!({"mode": "multi_select", "answers": [2]})).json();
        assert_eq!(first["new_state"], "AWAITING_INPUT", "{first}");
        let too_many = json!([{"text": "a blue of mine"}, {"option_index": 0}]);
        let answer = self.respond(&json!({"mode": "multi_select", "answers": too_many}));
        let error = answer.json();
        assert_eq!((answer.status, error["error_type"].as_str()), (409, Some("wrong_state")), "{error}");
        assert!(error["message"].as_str().is_some_and(|m| m.starts_with("1 of 2 answers were given")), "{error}");
        self.agent.wait_for_model_text(r#"=\"Oval\""#);
        self.agent.wait_for_model_text("a blue of mine");
    }
}
