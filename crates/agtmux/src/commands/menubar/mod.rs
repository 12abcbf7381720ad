//! `agtmux menubar`: the agents as a menu for SwiftBar, xbar, Argos and waybar.

mod menu;
mod plugin_lines;
mod text;
mod waybar;

use agtmux_api::wire::{ListQuery, ListResponse, PaneItem};
use agtmux_client::{ClientError, DaemonClient, parse};
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::fleet_follow;
use crate::error::{CliError, CliResult};
use crate::output;
use menu::FleetMenu;

#[derive(Debug, Args)]
#[command(after_help = "\
SwiftBar and xbar: save as agtmux.5s.sh in the plugin directory, and make it executable:
  #!/bin/sh
  exec /path/to/agtmux menubar --format swiftbar
SwiftBar can also show each change at once: save as agtmux.sh with the line
`# <swiftbar.type>streamable</swiftbar.type>`, and add --follow.
Argos: save as agtmux.5s.sh in ~/.config/argos, with --format argos.
waybar: \"custom/agtmux\": {\"exec\": \"agtmux menubar --format waybar --follow\", \"return-type\": \"json\",
\"on-click\": \"your-terminal agtmux\"}")]
pub(crate) struct MenubarArgs {
    /// The program that shows the menu
    #[arg(long, value_enum)]
    format: MenubarFormat,
    /// Print the menu again whenever it changes, until the reader closes the pipe. Only for swiftbar and waybar
    #[arg(long)]
    follow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MenubarFormat {
    Swiftbar,
    Xbar,
    Argos,
    Waybar,
}

pub(crate) async fn run(args: MenubarArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let program = plugin_lines::program_path()?;
    let render = |menu: &FleetMenu| match args.format {
        MenubarFormat::Waybar => vec![waybar::line(menu)],
        format => plugin_lines::lines(menu, format, &program),
    };
    if !args.follow {
        let listed = daemon.api.get_bytes("/v1/panes", &ListQuery::default()).await;
        let items = match listed {
            Ok(list) => Some(parse::<ListResponse<PaneItem>>(&list)?),
            Err(ClientError::NotRunning(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let menu = FleetMenu::new(items.as_ref(), Timestamp::now());
        return output::styled_lines(&render(&menu));
    }
    if matches!(args.format, MenubarFormat::Xbar | MenubarFormat::Argos) {
        let error = CliError::usage("--follow works with --format swiftbar and waybar");
        return Err(error.because("xbar and Argos start the plugin again after each interval"));
    }
    let mut before = Vec::new();
    fleet_follow::follow(&daemon, Some(menu::AGE_STEP), |list, now| {
        let lines = render(&FleetMenu::new(list.as_ref(), now));
        if lines == before {
            return Ok(());
        }
        // SwiftBar replaces the menu after this line.
        let separator = (args.format == MenubarFormat::Swiftbar).then(|| "~~~".to_owned());
        output::styled_lines(&separator.into_iter().chain(lines.iter().cloned()).collect::<Vec<_>>())?;
        before = lines;
        Ok(())
    })
    .await
}
