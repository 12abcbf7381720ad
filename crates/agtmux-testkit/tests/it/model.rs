//! The mock model does what the prompt says, in each protocol.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use agtmux_testkit::model::{CLOSING_TEXT, MockModel, SLOW_END_TEXT};
use agtmux_testkit::wait_for;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

fn post(model: &MockModel, path: &str, body: &Value) -> String {
    // A connection that is cut ends with an error after the data.
    exchange(model, path, body).0
}

/// Sends a request. Returns the answer, and how the connection ended.
fn exchange(model: &MockModel, path: &str, body: &Value) -> (String, io::Result<usize>) {
    let address = model.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).expect("the model listens");
    let body = body.to_string();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}", body.len());
    write!(stream, "{head}\r\n\r\n{body}").expect("the model reads the request");
    let mut answer = Vec::new();
    let end = stream.read_to_end(&mut answer);
    (String::from_utf8_lossy(&answer).into_owned(), end)
}

fn anthropic(prompt: &str) -> Value {
    let tools = json!([{"name": "Bash"}, {"name": "AskUserQuestion"}]);
    json!({"model": "m", "stream": true, "tools": tools, "messages": [{"role": "user", "content": prompt}]})
}

fn responses(prompt: &str) -> Value {
    let content = json!([{"type": "input_text", "text": prompt}]);
    let tools = json!([{"type": "function", "name": "exec_command"}]);
    json!({"model": "m", "stream": true, "tools": tools, "input": [{"role": "user", "content": content}]})
}

fn chat(prompt: &str) -> Value {
    let tools = json!([{"type": "function", "function": {"name": "bash"}}]);
    json!({"model": "m", "stream": true, "tools": tools, "messages": [{"role": "user", "content": prompt}]})
}

fn gemini(prompt: &str) -> Value {
    let tools = json!([{"functionDeclarations": [{"name": "run_shell_command"}]}]);
    json!({"tools": tools, "contents": [{"role": "user", "parts": [{"text": prompt}]}]})
}

/// A request with this prompt in each protocol.
fn all_protocols(prompt: &str) -> [(&'static str, Value); 4] {
    [
        ("/v1/messages?beta=true", anthropic(prompt)),
        ("/v1/responses", responses(prompt)),
        ("/v1/chat/completions", chat(prompt)),
        ("/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", gemini(prompt)),
    ]
}

#[test]
fn say_answers_with_the_text() {
    let model = MockModel::new();
    for (path, body) in all_protocols("SAY good morning") {
        let answer = post(&model, path, &body);
        assert!(answer.contains("text/event-stream") && answer.contains("good morning"), "{path}: {answer}");
        let request = model.find_request("SAY good").expect("the request is logged");
        assert!(request.answer_ended.is_some() && request.action == "SAY" && !request.is_side_request, "{request:?}");
    }
}

#[test]
fn run_calls_the_shell_tool_and_ends_after_the_result() {
    let model = MockModel::new();
    for (path, body) in all_protocols("RUN touch wanted") {
        let answer = post(&model, path, &body);
        assert!(answer.contains("touch wanted"), "{path}: {answer}");
    }
    assert!(post(&model, "/v1/responses", &responses("RUN touch x")).contains("require_escalated"));
    assert!(!post(&model, "/v1/responses", &responses("DO touch x")).contains("require_escalated"));
    let mut after = anthropic("RUN touch wanted");
    let result = json!([{"type": "tool_result", "tool_use_id": "x", "content": "RUN again"}]);
    after["messages"] = json!([after["messages"][0], {"role": "user", "content": result}]);
    assert!(post(&model, "/v1/messages", &after).contains(CLOSING_TEXT));
    let next = json!([result[0], {"type": "text", "text": "[interrupted]"}, {"type": "text", "text": "SAY go on"}]);
    after["messages"][1]["content"] = next;
    let answer = post(&model, "/v1/messages", &after);
    assert!(answer.contains("go on") && !answer.contains(CLOSING_TEXT), "a prompt after a denial: {answer}");
}

#[test]
fn an_agent_without_tools_gets_the_command_as_text() {
    let model = MockModel::new();
    let mut body = chat("RUN touch wanted");
    body["tools"] = json!([]);
    assert!(
        !post(&model, "/v1/chat/completions", &body).contains("wanted"),
        "a request without tools is not part of the conversation"
    );
    body["model"] = json!("mock-no-tools");
    let answer = post(&model, "/v1/chat/completions", &body);
    assert!(answer.contains("```bash\\ntouch wanted") && !answer.contains("tool_calls"), "{answer}");
    assert!(model.find_request("RUN touch").is_some_and(|request| !request.is_side_request));
}

#[test]
fn fail_and_drop_end_the_answer() {
    let model = MockModel::new();
    for (path, body) in all_protocols("FAIL 529") {
        let answer = post(&model, path, &body);
        assert!(answer.starts_with("HTTP/1.1 529") && answer.contains("mock failure 529"), "{path}: {answer}");
    }
    for (path, body) in all_protocols("DROP") {
        let answer = post(&model, path, &body);
        assert!(answer.contains("half an ans") && !answer.ends_with("0\r\n\r\n"), "{path}: {answer}");
    }
}

#[test]
fn hangup_resets_the_connection_instead_of_answering() {
    let model = MockModel::new();
    for (path, body) in all_protocols("HANGUP") {
        let (answer, end) = exchange(&model, path, &body);
        let error = end.expect_err("the connection was reset");
        assert_eq!((answer.as_str(), error.kind()), ("", io::ErrorKind::ConnectionReset), "{path}");
    }
}

#[test]
fn side_requests_are_answered_in_the_requested_format() {
    let model = MockModel::new();
    let mut title = responses("SLOW 30");
    title["text"] = json!({"format": {"type": "json_schema"}});
    assert!(post(&model, "/v1/responses", &title).contains(r#"{\"title\":"#));
    assert!(model.requests().last().is_some_and(|request| request.is_side_request));
    assert!(model.find_request("SLOW 30").is_none(), "a title request is not part of the conversation");
    let counted = post(&model, "/v1/messages/count_tokens", &anthropic("SLOW 30"));
    assert!(counted.contains("input_tokens"), "{counted}");
}

#[test]
fn a_slow_answer_is_slow_and_a_disconnect_is_logged() {
    let model = MockModel::new();
    let begun = Instant::now();
    assert!(post(&model, "/v1/messages", &anthropic("SLOW 1")).contains(SLOW_END_TEXT));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let address = model.url().replace("http://", "");
    let body = anthropic("SLOW 60").to_string();
    let mut stream = TcpStream::connect(&address).expect("the model listens");
    write!(stream, "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .expect("the request is sent");
    wait_for("the answer to begin", SOON, || model.find_request("SLOW 60")?.answer_began);
    drop(stream);
    wait_for("the disconnect to be logged", SOON, || model.find_request("SLOW 60")?.client_left);
}

#[test]
fn a_stopped_server_refuses_connections_and_keeps_its_log() {
    let model = MockModel::new();
    post(&model, "/v1/messages", &anthropic("SAY first"));
    model.stop();
    let refused = TcpStream::connect(model.url().replace("http://", "")).expect_err("no server listens");
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert!(model.find_request("SAY first").is_some());
}

#[test]
fn the_server_ends_when_dropped() {
    let model = MockModel::new();
    let address = model.url().replace("http://", "");
    drop(model);
    assert!(TcpStream::connect(address).is_err(), "the port is closed");
}
