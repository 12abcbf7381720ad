//! Runs a program of the person with the fields of the selected agent.

use super::{ProgramCall, TuiEffect};
use crate::model::{AgentRow, TuiModel, TuiNotice};

/// The fields of an agent for a program.
const FIELDS: [&str; 10] = ["agent", "name", "state", "cwd", "target", "server", "session", "window", "pane", "ref"];

pub(super) fn run(model: &mut TuiModel, n: usize) -> Vec<TuiEffect> {
    let Some(row) = model.list.selected() else {
        model.notice = Some(TuiNotice::info("no agent is selected"));
        return Vec::new();
    };
    let Some(custom) = model.keys.custom().get(n) else { return Vec::new() };
    let arguments: Result<Vec<String>, &str> = match custom.is_shell {
        // A shell would read text of other programs as code, so it gets the fields only as variables.
        true => Ok(custom.arguments.clone()),
        false => custom.arguments.iter().map(|argument| fill_in(argument, row)).collect(),
    };
    match arguments {
        Ok(arguments) => {
            let name = custom.name.clone();
            vec![TuiEffect::RunProgram(ProgramCall { name, arguments, environment: environment(row) })]
        }
        Err(field) => {
            let text = format!("'{}' was not run: the agent has no {field}", custom.name);
            model.notice = Some(TuiNotice::error(text, None));
            Vec::new()
        }
    }
}

/// Replaces `{cwd}` and other fields. A value is not looked at again, so a value cannot name a field.
fn fill_in<'a>(argument: &'a str, row: &AgentRow) -> Result<String, &'a str> {
    let (mut out, mut rest) = (String::new(), argument);
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = from.find('}');
        let name = end.map(|end| &from[1..end]).filter(|name| FIELDS.contains(name));
        match (name, end) {
            (Some(name), Some(end)) => {
                out.push_str(&field(row, name).ok_or(name)?);
                rest = &from[end + 1..];
            }
            _ => {
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    Ok(out + rest)
}

fn environment(row: &AgentRow) -> Vec<(String, String)> {
    let variable = |name: &str| Some((format!("AGTMUX_SELECTED_{}", name.to_uppercase()), field(row, name)?));
    // A variable cannot contain NUL.
    FIELDS.into_iter().filter_map(variable).filter(|(_, value)| !value.contains('\0')).collect()
}

fn field(row: &AgentRow, name: &str) -> Option<String> {
    let (item, identity) = (&row.item, &row.item.identity);
    match name {
        "agent" => Some(row.agent_type().to_owned()),
        "name" => item.name.clone(),
        "state" => item.state.map(|state| state.as_str().to_owned()),
        "cwd" => item.cwd.clone(),
        "target" => Some(identity.target.clone()),
        "server" => Some(identity.server.clone()),
        "session" => Some(identity.session_name.clone()),
        "window" => Some(identity.window_id.to_string()),
        "pane" => Some(identity.pane_id.to_string()),
        _ => Some(row.reference()),
    }
}
