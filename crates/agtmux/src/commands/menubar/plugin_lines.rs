//! SwiftBar, xbar and Argos read lines: `TEXT | NAME=VALUE …`, with `--` before the text for each level of a submenu.
//!
//! Everything after the first `|` of a line is a parameter, and parameters run commands. So foreign text contains no `|`,
//! does not begin a line, and is never part of a parameter.

use super::MenubarFormat;
use super::menu::{FleetMenu, MenuAction, MenuLine};
use crate::error::{CliError, CliResult};

/// The path of this program, as the parameters need it.
pub(super) fn program_path() -> CliResult<String> {
    let program = std::env::current_exe().map_err(|error| CliError::io("find the agtmux program", error))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@=, ".contains(c);
    match program.to_str().filter(|path| path.chars().all(is_plain)) {
        Some(path) => Ok(path.to_owned()),
        None => Err(CliError::failed(format!("a menu cannot run '{}'", program.display()))
            .because("the path contains characters that the formats of menu bars cannot express")
            .hint("move agtmux to another directory")),
    }
}

pub(super) fn lines(menu: &FleetMenu, format: MenubarFormat, program: &str) -> Vec<String> {
    let plain = plain_text(format);
    let title = [format!("{} | {plain}", menu.title()), "---".to_owned()];
    let line = |line: &MenuLine| match line {
        MenuLine::Separator => "---".to_owned(),
        // A separator of a submenu takes no parameters.
        MenuLine::Item { level, text, action: None } if text == "---" => format!("{}---", "--".repeat(*level)),
        MenuLine::Item { level, text, action } => {
            let action = action.as_ref().map(|action| format!(" {}", parameters(action, format, program)));
            format!("{}{text} | {plain}{}", "--".repeat(*level), action.unwrap_or_default())
        }
    };
    title.into_iter().chain(menu.lines.iter().map(line)).collect()
}

/// Parameters that switch off everything that the program would read into a text.
fn plain_text(format: MenubarFormat) -> &'static str {
    match format {
        MenubarFormat::Swiftbar => "trim=false emojize=false symbolize=false ansi=false md=false",
        MenubarFormat::Argos => "trim=false emojize=false ansi=false useMarkup=false unescape=false",
        // An unknown parameter fails the whole plugin.
        MenubarFormat::Xbar | MenubarFormat::Waybar => "trim=false emojize=false ansi=false",
    }
}

fn parameters(action: &MenuAction, format: MenubarFormat, program: &str) -> String {
    let terminal = action.needs_terminal();
    let arguments = action.arguments();
    let command = match format {
        MenubarFormat::Argos => {
            let words: Vec<String> = [format!("'{program}'")].into_iter().chain(arguments).collect();
            format!("bash=\"{}\"", words.join(" "))
        }
        MenubarFormat::Xbar => with_numbered("shell", program, &arguments),
        MenubarFormat::Swiftbar | MenubarFormat::Waybar => with_numbered("bash", program, &arguments),
    };
    format!("{command} terminal={terminal} refresh=true")
}

fn with_numbered(name: &str, program: &str, arguments: &[String]) -> String {
    let arguments = arguments.iter().enumerate().map(|(n, argument)| format!(" param{}={argument}", n + 1));
    format!("{name}=\"{program}\"{}", arguments.collect::<String>())
}

#[cfg(test)]
mod tests;
