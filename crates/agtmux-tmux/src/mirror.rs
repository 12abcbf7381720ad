//! Creates the panes of shared terminals. Splits a pane, starts a shell in the new pane, and starts a program that
//! reads the shell's output.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::command::{Framing, TmuxCommand};
use crate::input::and;
use crate::listing::{parse_id, parse_number};
use crate::server::{TmuxError, TmuxServer};
use crate::tasks::{
    DONE, LaunchError, LaunchedPane, PLACEHOLDER_PROGRAM, parse_launched, pipe_command, server_matches_before,
};

/// The pane option that contains the name of the shared terminal in the pane.
const MIRROR: &str = "@agtmux_mirror";
/// The variable in the environment of a tmux session that names the pane of the shared terminal.
const PANE_VARIABLE: &str = "PI_MIRROR_PANE";

const FACTS: char = 'f';
const NEW_PANE: char = 'n';

/// A pane that is to be split or adopted, and how tmux starts shells in its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitSource {
    pub server_pid: u32,
    pub server_start: i64,
    pub session: u32,
    pub pane: u32,
    pub pane_pid: u32,
    pub has_pipe: bool,
    pub default_shell: String,
    pub cwd: Vec<u8>,
}

/// A shared terminal that is to be started in a new pane. The pane was made by splitting another one.
#[derive(Debug, Clone)]
pub struct MirrorLaunch<'a> {
    pub server_pid: u32,
    pub server_start: i64,
    pub session: u32,
    pub pane: u32,
    pub mirror: &'a str,
    /// The command line that starts the shell.
    pub program: &'a [OsString],
    /// The command line of the program that reads the pane's output. Empty if no program reads the output.
    pub reader: &'a [OsString],
}

impl TmuxServer {
    /// Asks tmux for the data that is needed to split this pane. `None` if the pane is gone.
    pub async fn split_source(&self, pane: u32) -> Result<Option<SplitSource>, TmuxError> {
        let framing = Framing::fresh();
        let facts = "pid start_time session_id pane_id pane_pid pane_pipe default-shell pane_current_path";
        let command = TmuxCommand::display(&framing.variables(FACTS, facts), Some(pane));
        let answer = self.run(&[command]).await?;
        // If the pane is gone, tmux may print the facts of another pane.
        Ok(parse_source(&framing, &answer).filter(|source| source.pane == pane))
    }

    /// Splits a pane. The new pane runs a placeholder until a shared terminal is started in it.
    pub async fn split_for_mirror(&self, source: &SplitSource) -> Result<u32, TmuxError> {
        let framing = Framing::fresh();
        let split = TmuxCommand::new("split-window").arg("-d").arg("-h").arg("-t").arg(format!("%{}", source.pane));
        let split = split.arg("-P").arg("-F").arg(framing.record(NEW_PANE, &["#{pane_id}"]));
        let answer = self.run(&[PLACEHOLDER_PROGRAM.iter().fold(split, TmuxCommand::arg)]).await?;
        let records = framing.records(NEW_PANE, &answer);
        let pane = records.first().and_then(|fields| parse_id(b'%', fields.first()?));
        pane.ok_or_else(|| TmuxError::Unreadable("the pane id is missing".into()))
    }

    /// Starts the shell of a shared terminal. `launch.reader` gets all output of the shell from the first byte, because
    /// tmux connects the reader before it reads any output.
    pub async fn launch_mirror(&self, launch: &MirrorLaunch<'_>) -> Result<LaunchedPane, LaunchError> {
        let framing = Framing::fresh();
        let until = self.deadline_second(None);
        let answer = self.run(&[launch_command(&framing, until, launch)]).await?;
        parse_launched(&framing, &answer).ok_or(LaunchError::Gone)
    }

    /// Sets a variable in a session's environment, or removes the variable if `value` is `None`. Does nothing if this
    /// server generation has ended.
    pub async fn set_session_variable(
        &self,
        server: (u32, i64),
        session: u32,
        name: &'static str,
        value: Option<&str>,
    ) -> Result<(), TmuxError> {
        let set = TmuxCommand::new("set-environment").literal("-t").literal(format!("${session}"));
        let set = match value {
            Some(value) => set.literal(name).literal(value),
            None => set.literal("-u").literal(name),
        };
        self.run(&[self.if_same_server(server, &set)]).await.map(drop)
    }

    /// Closes the pipe of a pane, if this server generation still runs. The program at its other end reads to the end.
    pub async fn close_pipe(&self, server: (u32, i64), pane: u32) -> Result<(), TmuxError> {
        let close = TmuxCommand::new("pipe-pane").arg("-t").arg(format!("%{pane}"));
        self.run(&[self.if_same_server(server, &close)]).await.map(drop)
    }

    /// The lines of a pane from this row to the row of the cursor. Row 0 is the first row of the screen, and rows of the
    /// history have negative numbers. The rows of a wrapped line are joined. The call fails if the pane is gone.
    pub async fn lines_to_cursor(&self, pane: u32, from: i64, cursor_row: usize) -> Result<Vec<String>, TmuxError> {
        let capture = TmuxCommand::new("capture-pane").arg("-p").arg("-J").arg("-t").arg(format!("%{pane}"));
        let capture = capture.arg("-S").arg(from.to_string()).arg("-E").arg(cursor_row.to_string());
        let answer = self.run(&[capture]).await?;
        let text = String::from_utf8_lossy(&answer);
        Ok(text.strip_suffix('\n').unwrap_or(&text).split('\n').map(str::to_owned).collect())
    }

    /// Kills a pane by id, if this server generation still runs. A pane that is gone is ignored.
    pub async fn kill_pane(&self, server: (u32, i64), pane: u32) -> Result<(), TmuxError> {
        self.kill(server, "kill-pane", &format!("%{pane}")).await
    }
}

fn parse_source(framing: &Framing, answer: &[u8]) -> Option<SplitSource> {
    let records = framing.records(FACTS, answer);
    let &[pid, start, session, pane, pane_pid, pipe, shell, cwd] = records.first()?.as_slice() else { return None };
    Some(SplitSource {
        server_pid: parse_number(pid)?,
        server_start: std::str::from_utf8(start).ok()?.parse().ok()?,
        session: parse_id(b'$', session)?,
        pane: parse_id(b'%', pane)?,
        pane_pid: parse_number(pane_pid)?,
        has_pipe: pipe == b"1",
        default_shell: String::from_utf8(shell.to_vec()).ok()?,
        cwd: cwd.to_vec(),
    })
}

fn launch_command(framing: &Framing, until: u64, launch: &MirrorLaunch<'_>) -> TmuxCommand {
    let pane = format!("%{}", launch.pane);
    let respawn = TmuxCommand::new("respawn-pane").literal("-k").literal("-t").literal(&pane);
    let ids = framing.record(DONE, &["#{window_id}", "#{pane_id}", "#{pane_pid}"]);
    let pipe = (!launch.reader.is_empty()).then(|| pipe_command(&pane, launch.reader));
    let start = [
        TmuxCommand::new("set-option")
            .literal("-p")
            .literal("-t")
            .literal(&pane)
            .literal(MIRROR)
            .literal(launch.mirror),
        launch.program.iter().fold(respawn, TmuxCommand::literal),
    ];
    let end = [
        TmuxCommand::new("set-environment")
            .literal("-t")
            .literal(format!("${}", launch.session))
            .literal(PANE_VARIABLE)
            .literal(&pane),
        TmuxCommand::new("display-message").literal("-p").literal("-t").literal(&pane).literal(ids),
    ];
    let commands = start.into_iter().chain(pipe).chain(end);
    let lines: Vec<Vec<u8>> = commands.map(|command| command.line().into_vec()).collect();
    let server = server_matches_before(launch.server_pid, launch.server_start, until);
    let condition = and(server, format!("#{{==:#{{pane_id}},{pane}}}"));
    let all = OsString::from_vec(lines.join(b" ; ".as_slice()));
    TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&pane).arg(condition).arg(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_started_with_its_reader_only_in_the_expected_pane() {
        let (program, reader) = (["/a b/agtmux".into(), "x".into()], ["/r".into(), "50%#{x}".into()]);
        let launch = MirrorLaunch {
            server_pid: 9,
            server_start: 100,
            session: 1,
            pane: 4,
            mirror: "m1",
            program: &program,
            reader: &reader,
        };
        let command = launch_command(&Framing::fixed("W"), 77, &launch);
        let words: Vec<String> = command.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words[4].contains("#{==:#{pane_id},%4}") && words[4].contains("#{==:#{pid},9}"), "{}", words[4]);
        assert!(
            words[5].contains("'respawn-pane' '-k' '-t' '%4' '/a b/agtmux' 'x' ; 'pipe-pane' '-IO'"),
            "{}",
            words[5]
        );
        assert!(words[5].contains("'set-environment' '-t' '$1' 'PI_MIRROR_PANE' '%4' ; "), "{}", words[5]);
    }

    #[test]
    fn a_source_needs_all_its_fields() {
        let framing = Framing::fixed("W");
        let source = framing.record(FACTS, &["9", "100", "$1", "%4", "42", "0", "/bin/zsh", "/a\nb"]);
        let read = parse_source(&framing, source.as_bytes()).expect("all fields");
        assert_eq!((read.pane, read.default_shell.as_str(), read.cwd.as_slice()), (4, "/bin/zsh", &b"/a\nb"[..]));
        assert_eq!(
            parse_source(&framing, framing.record(FACTS, &["9", "100", "", "", "", "", "", ""]).as_bytes()),
            None
        );
    }
}
