//! Opens the port and prints a login link.

use agtmux_api::wire::{WebLink, WebOpenRequest};
use agtmux_client::{DaemonClient, parse};
use jiff::tz::TimeZone;

use super::{WebOpenArgs, qr};
use crate::error::CliResult;
use crate::message;
use crate::output;
use crate::render;
use crate::terminal::StdoutTerminal;

pub(super) async fn run(daemon: &DaemonClient, args: WebOpenArgs) -> CliResult {
    // A time below one second is rounded up.
    let for_seconds = args.time.map(|time| time.0.as_secs().max(u64::from(!time.0.is_zero())));
    let answer = daemon.act("/v1/web/open", &WebOpenRequest { read_only: args.read_only, for_seconds }).await?;
    if args.json {
        return output::json_answer(&answer);
    }
    let link: WebLink = parse(&answer)?;
    output::line(&link.url)?;
    if StdoutTerminal::detect().is_tty {
        notes(&link, args.read_only).iter().for_each(|note| message::line(note));
        print_code(&link);
    }
    Ok(())
}

/// What a person should know about the link. They go to stderr, so that scripts read only the link.
fn notes(link: &WebLink, read_only: bool) -> Vec<String> {
    let access = if read_only { ", with read-only access" } else { "" };
    let closes = match link.closes_at {
        Some(at) => format!("The port closes at {}.", render::age::local_time(at, &TimeZone::system())),
        None => "The port stays open until the daemon stops.".to_owned(),
    };
    let mut notes = vec![
        format!("The link logs in one browser within two minutes{access}."),
        format!("{closes} To close it now, run: agtmux web stop"),
    ];
    if !link.public {
        notes.push(
            "For a phone, set web.public_url: https://github.com/agtmux/agtmux/blob/main/docs/web.md#phone".into(),
        );
    }
    notes
}

/// Prints the link as a QR code if another device can open the link.
fn print_code(link: &WebLink) {
    if let Some(code) = Some(link).filter(|link| link.public).and_then(|link| qr::lines(&link.url)) {
        code.iter().for_each(|line| message::line(line));
    }
}
