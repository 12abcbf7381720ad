//! `agtmux mcp`: the MCP server for agents.

use std::sync::Arc;

use agtmux_api::config::Config;
use agtmux_api::wire::TaskRunRequest;
use agtmux_client::DaemonClient;
use agtmux_mcp::{McpAccess, McpOptions, McpPermission};
use clap::Args;
use clap::builder::PossibleValuesParser;

use super::{setup, task};
use crate::choices::one_of;
use crate::error::{CliError, CliResult};
use crate::input::variable;
use crate::message::CliMessage;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "The agent starts this command and talks to it over stdin and stdout. Register it with `agtmux setup --mcp`.\n\n\
    By default the agent may look at other agents, run tasks, and run commands in the terminal that it shares with you. \
    With --allow, the agent may do more. For an agent that runs in tmux, also set actions.allow_from_agents in the \
    configuration, because an agent could start this command itself. An agent can never answer its own dialog.\n\n\
    Examples:\n  agtmux mcp\n  agtmux mcp --read-only\n  agtmux mcp --allow send,stop_task"
)]
pub(crate) struct McpArgs {
    /// Only let the agent look: no tasks and no shared terminal
    #[arg(long, conflicts_with = "allow")]
    read_only: bool,
    /// Let the agent also do this, separated by commas [default: what actions.allow_from_agents allows]
    #[arg(long, value_name = "ACTION", value_delimiter = ',', value_parser = permissions())]
    allow: Vec<McpPermission>,
    /// Print the settings that register this server with an agent, and exit
    #[arg(long, value_name = "CLIENT", value_parser = PossibleValuesParser::new(setup::mcp_clients()))]
    print_config: Option<String>,
}

fn permissions() -> impl clap::builder::TypedValueParser<Value = McpPermission> {
    one_of(McpPermission::ALL.iter().map(|permission| (permission.as_str(), *permission)))
}

pub(crate) async fn run(args: McpArgs) -> CliResult {
    if let Some(client) = &args.print_config {
        return print_config(client);
    }
    let daemon = DaemonClient::from_env()?;
    let config = Config::load(&daemon.paths.config)?;
    let dir = std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?;
    let start_tmux = {
        let daemon = daemon.clone();
        move |run: TaskRunRequest| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
            let daemon = daemon.clone();
            // If this fails, the request to run the task fails and says why.
            Box::pin(async move { drop(task::start_tmux_server(&daemon, &run).await) })
        }
    };
    let options = McpOptions {
        daemon,
        access: McpAccess::new(args.read_only, &args.allow, config.actions.allow_from_agents),
        dir,
        task_session: task::named_session(None),
        socket: task::tmux_socket().display().to_string(),
        terminal: variable("TMUX_MIRROR_TARGET"),
        start_tmux: Arc::new(start_tmux),
    };
    agtmux_mcp::serve_stdio(options).await.map_err(|error| CliError::io("serve the MCP client", error))
}

/// Prints the text for the settings file on stdout, and the name of the file on stderr.
fn print_config(client: &str) -> CliResult {
    let config = setup::mcp_config(client)?;
    let (path, text) =
        config.ok_or_else(|| CliError::failed(format!("'{client}' has no settings file for MCP servers")))?;
    CliMessage::new(format!("add this to {}, or run `agtmux setup --mcp --agent {client}`", path.display()))
        .print_stderr();
    output::verbatim(text.as_bytes())
}
