//! A person closes a dialog in the pane, and the next one opens, at random moments while a client answers the first one.
//! The answer must never go to a dialog that the client does not mean.

use std::path::PathBuf;
use std::process::Stdio;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use agtmux_testkit::agtmux::soak;
use agtmux_testkit::http;
use agtmux_testkit::real_agents::DialogReply;
use agtmux_testkit::seeded_random::SeededRandom;
use serde_json::{Value, json};

use super::{DialogTester, RESPONSE_TIMEOUT, poll_until};

/// The person and the client act within this time after the first dialog is listed. Longer than `respond` usually takes.
const MAX_DELAY: Duration = Duration::from_millis(2500);

/// How the client answers. With `guarded`, it names the dialog that was shown to it.
#[derive(Debug, Clone, Copy)]
enum Client {
    Cli { guarded: bool },
    Api { guarded: bool },
    Bridge,
}

const CLIENTS: [Client; 5] = [
    Client::Cli { guarded: true },
    Client::Api { guarded: true },
    Client::Bridge,
    Client::Cli { guarded: false },
    Client::Api { guarded: false },
];

#[derive(Debug, Default)]
struct Totals {
    refused: u32,
    first_answered: u32,
    second_answered: u32,
}

pub(super) fn check(agent: &DialogTester<'_>) {
    let agent_id = poll_until(RESPONSE_TIMEOUT, || agent.listed_item()["agent_id"].as_str().map(str::to_owned));
    let agent_id = agent_id.expect("the hooks report the session");
    let mut random = SeededRandom::new();
    let mut totals = Totals::default();
    let rounds = if soak() { 200 } else { 5 };
    for (round, client) in (0..rounds).zip(CLIENTS.into_iter().cycle()) {
        SwapRound { agent, agent_id: &agent_id, round, client }.run(&mut random, &mut totals);
    }
    println!("{rounds} swapped dialogs: {totals:?}");
}

struct SwapRound<'a> {
    agent: &'a DialogTester<'a>,
    agent_id: &'a str,
    round: u32,
    client: Client,
}

impl SwapRound<'_> {
    fn run(&self, random: &mut SeededRandom, totals: &mut Totals) {
        let [first, second] = ["first", "second"].map(|which| format!("swap-{}-{which}", self.round));
        let shown = self.agent.prompt_for_dialog(&format!("RUN touch {first}"), &first);
        let answering = self.answer_later(&shown, random.duration_below(MAX_DELAY));
        thread::sleep(random.duration_below(MAX_DELAY));
        self.agent.driver.press_all(self.agent.driver.agent.keys(DialogReply::Deny));
        poll_until(RESPONSE_TIMEOUT, || self.agent.is_at_rest().then_some(())).expect("the first dialog closes");
        let prompt = format!("RUN touch {second}");
        // A key that was pressed at the moment in which the dialog closed is typed into the input box. The model reads
        // only the last line.
        let enter = |text: &str| self.agent.sandbox().paste(&format!("the next one:\n{text}"));
        let submitted = self.agent.driver.submit(&prompt, enter);
        submitted.unwrap_or_else(|error| panic!("{}", error.0));
        let answered = answering.join().expect("the client returns");
        let context = format!("{self:?} answered {answered:?}; {}", self.agent.driver.screen_text());
        match &answered {
            // The report names the dialog that a client without a guard has answered.
            Some(dialog) if dialog.contains(&second) => {
                assert!(!self.is_guarded(), "{context}");
                totals.second_answered += 1;
                self.agent.wait_for_file(&second);
            }
            answered => {
                self.agent.wait_for_dialog(&second);
                assert!(!self.agent.file_exists(&second), "the second command was approved: {context}");
                let count = if answered.is_some() { &mut totals.first_answered } else { &mut totals.refused };
                *count += 1;
                self.agent.driver.press_all(self.agent.driver.agent.keys(DialogReply::Deny));
            }
        }
    }

    fn is_guarded(&self) -> bool {
        !matches!(self.client, Client::Cli { guarded: false } | Client::Api { guarded: false })
    }

    /// Approves the dialog after a while. The result is the dialog that was answered, or `None` if the daemon refused.
    fn answer_later(&self, shown: &Value, delay: Duration) -> JoinHandle<Option<String>> {
        let fingerprint = shown["fingerprint"].clone();
        let pane = self.agent.sandbox().pane.clone();
        let socket: PathBuf = self.agent.sandbox().world().socket();
        let post = move |path: String, body: Value| {
            thread::spawn(move || {
                thread::sleep(delay);
                let answer = http::post(&socket, &path, &body.to_string());
                (answer.status == 200).then(|| answer.json()["dialog"].to_string())
            })
        };
        match self.client {
            Client::Cli { guarded } => {
                let mut command = self.agent.sandbox().agtmux_command();
                command.args(["respond", &pane, "approve", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null());
                if guarded {
                    command.args(["--if-dialog", fingerprint.as_str().expect("a dialog has a fingerprint")]);
                }
                thread::spawn(move || {
                    thread::sleep(delay);
                    let output = command.output().expect("agtmux can be started");
                    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
                    output.status.success().then(|| report["dialog"].to_string())
                })
            }
            Client::Api { guarded } => {
                let if_dialog = if guarded { fingerprint } else { Value::Null };
                post("/v1/actions/respond".into(), json!({"ref": pane, "answer": "approve", "if_dialog": if_dialog}))
            }
            Client::Bridge => {
                let body = json!({"mode": "select", "option_index": 0, "if_dialog": fingerprint});
                post(format!("/api/respond/{}", self.agent_id), body)
            }
        }
    }
}

impl std::fmt::Debug for SwapRound<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "round {} with {:?}", self.round, self.client)
    }
}
