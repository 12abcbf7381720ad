//! Prompts that the user of a client can choose.

use rmcp::model::{ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use crate::untrusted::bounded_field;

const REVIEW: &str = "review-agents";
const HAND_OVER: &str = "hand-over";
/// The maximum length of an argument.
const MAX_ARGUMENT_CHARS: usize = 2000;

pub(crate) fn all() -> Vec<Prompt> {
    let mut review =
        Prompt::new(REVIEW, Some("Review what the other agents are doing, and say which of them need you."), None);
    review.title = Some("Review the other agents".to_owned());
    let arguments = vec![
        PromptArgument::new("task").with_description("What the other agent should do").with_required(true),
        PromptArgument::new("agent").with_description("The agent: its name, type or pane").with_required(false),
    ];
    let mut hand_over = Prompt::new(HAND_OVER, Some("Hand a piece of work to another agent."), Some(arguments));
    hand_over.title = Some("Hand work to another agent".to_owned());
    vec![review, hand_over]
}

pub(crate) fn get(name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        let given = arguments.and_then(|arguments| arguments.get(name)?.as_str());
        given.map(|text| bounded_field(text, MAX_ARGUMENT_CHARS)).filter(|text| !text.is_empty())
    };
    let text = match name {
        REVIEW => {
            "Use the agtmux tools to review what the other agents are doing. Call list_agents, then get_agent for \
                   those that wait or have failed, and read_output where the state does not tell enough. Then tell me, \
                   in a few lines: which agents need me and what they ask, which have failed and why, and which are \
                   making progress. Do not send anything and do not answer any dialog."
                .to_owned()
        }
        HAND_OVER => {
            let missing = || ErrorData::invalid_params("the argument task is missing", None);
            let (task, agent) = (argument("task").ok_or_else(missing)?, argument("agent"));
            let which = agent.map_or_else(
                || "Choose an idle agent with list_agents, and tell me which one and why.".to_owned(),
                |agent| format!("The agent is {agent}."),
            );
            format!(
                "Hand this work to another agent: {task}\n\n{which} Write a prompt that it can understand without our \
                 conversation: the goal, the files, what you know already, and how it can tell that it is done. Send \
                 it with the agtmux tool send, and wait with wait_for. If you lack the permission to send, show me the \
                 prompt instead."
            )
        }
        _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_prompt_can_be_filled_in() {
        let given = json!({"task": "fix the tests", "agent": "codex"});
        for prompt in all() {
            let text = serde_json::to_string(&get(&prompt.name, given.as_object()).expect("a prompt")).expect("JSON");
            assert!(text.contains("list_agents") || text.contains("fix the tests"), "{text}");
        }
        assert!(get(HAND_OVER, None).is_err() && get("other", None).is_err());
    }
}
