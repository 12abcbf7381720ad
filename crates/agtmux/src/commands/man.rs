//! `agtmux man`: writes the manual pages.

use std::path::PathBuf;

use clap::Args;
use clap_mangen::Man;

use crate::error::{CliError, CliResult};
use crate::{cli, output};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  agtmux man ~/.local/share/man/man1 && man agtmux-send")]
pub(crate) struct ManArgs {
    /// The directory to write the pages to; it is created if it does not exist. Without DIR, prints the page of agtmux
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs) -> CliResult {
    let mut command = cli::definition().disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.directory else { return output::verbatim(&page(command)?) };
    let failed = |error: std::io::Error| CliError::io(&format!("write to '{}'", directory.display()), error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let mut written = 0_usize;
    for (name, command) in pages(&command, "") {
        std::fs::write(directory.join(format!("{name}.1")), page(command)?).map_err(failed)?;
        written += 1;
    }
    output::line(&format!("wrote {written} pages to {}", directory.display()))
}

/// All commands with the names of their pages, such as `agtmux-task-run`.
fn pages(command: &clap::Command, parent: &str) -> Vec<(String, clap::Command)> {
    let name = match parent {
        "" => command.get_name().to_owned(),
        parent => format!("{parent}-{}", command.get_name()),
    };
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let inner: Vec<_> = inner.flat_map(|inner| pages(inner, &name)).collect();
    let own = command.clone().name(name.clone()).display_name(name.clone());
    [(name, own)].into_iter().chain(inner).collect()
}

fn page(command: clap::Command) -> CliResult<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| CliError::io("write the page", error))?;
    Ok(page)
}
