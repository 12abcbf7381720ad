//! Names, titles and paths that contain newlines, commands or escape sequences are handled as plain text.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

use agtmux_core::text;
use agtmux_testkit::agtmux::{SOON, items, run, world};
use agtmux_testkit::hostile_texts::{HOSTILE_TEXTS, assert_terminal_safe, tmux_argument, tmux_argument_escaped};
use agtmux_testkit::terminal::printed_on_terminal;
use agtmux_testkit::{TestPane, TestTmuxServer, TestWorld, wait_for};
use serde_json::Value;

/// Changes to a directory, sets the title and executes a program with a hostile name.
const PANE_SCRIPT: &str =
    r#"cd -- "$1" && printf '\033]2;%s\033\\' "$2" && exec "$3" -c 'while read -r line; do :; done'"#;

/// A world whose sessions, titles, directories and programs have hostile names.
struct HostileFixture {
    world: TestWorld,
    server: TestTmuxServer,
    locale: &'static str,
}

impl HostileFixture {
    fn new(server: &str, locale: &'static str) -> Self {
        let world = world();
        let server = world.tmux(server);
        Self { world, server, locale }
    }

    /// The file that appears if a text is executed as a command.
    fn mark(&self) -> PathBuf {
        self.world.dir().join("executed")
    }

    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("MARK", self.mark()).env("LC_ALL", self.locale)
    }

    #[track_caller]
    fn tmux(&self, args: &[&OsStr]) {
        let done = run(self.prepare(self.server.command().args(args)));
        assert_eq!(done.code, Some(0), "tmux {args:?}: {}", done.stderr);
    }

    fn agtmux(&self, args: &[&str]) -> Command {
        let mut command = self.world.agtmux();
        self.prepare(command.args(args));
        command
    }

    #[track_caller]
    fn list(&self, what: &str) -> Value {
        run(&mut self.agtmux(&["list", what, "--all", "--json"])).json()
    }

    /// Creates a session, window, directory and program with this name, and sets the title.
    fn create_session(&self, name: &[u8], title: &[u8]) {
        let dir = self.world.home().join("dirs").join(OsStr::from_bytes(name));
        fs::create_dir_all(&dir).expect("any name will do");
        let program = self.world.home().join(OsStr::from_bytes(name));
        let copied = run(self.world.command("cp").arg("/bin/sh").arg(&program));
        assert_eq!(copied.code, Some(0), "{}", copied.stderr);
        let (session, arguments) =
            (tmux_argument_escaped(name), [dir.as_os_str(), OsStr::from_bytes(title), program.as_os_str()]);
        let arguments = arguments.map(|argument| tmux_argument(argument.as_bytes()));
        let mut args: Vec<&OsStr> = ["new-session", "-d", "-x", "80", "-y", "24", "-s"].map(OsStr::new).to_vec();
        args.extend([&session, OsStr::new("-n"), &session, OsStr::new("--")]);
        args.extend(["sh", "-c", PANE_SCRIPT, "sh"].map(OsStr::new));
        args.extend(arguments.iter().map(|word| word.as_os_str()));
        self.tmux(&args);
    }

    #[track_caller]
    fn assert_nothing_was_executed(&self) {
        assert!(!self.mark().exists(), "a text was executed as a command");
    }

    /// Waits until agtmux lists every pane with the values of tmux.
    #[track_caller]
    fn wait_for_agreement(&self) -> Vec<TestPane> {
        wait_for("agtmux to agree with tmux", SOON, || {
            let (panes, listing) = (self.server.panes(), self.list("panes"));
            let truth: BTreeMap<String, _> =
                panes.iter().map(|pane| (pane.pane_id.clone(), fields_of_tmux_pane(pane))).collect();
            let listed: BTreeMap<String, _> = items(&listing).iter().map(fields_of_item).collect();
            if truth == listed && items(&listing).len() == panes.len() { Ok(panes) } else { Err((truth, listed)) }
        })
    }
}

type PaneFields = [String; 4];

fn fields_of_tmux_pane(pane: &TestPane) -> PaneFields {
    [
        pane.window_id.clone(),
        text::from_bytes(&pane.session_name),
        text::from_bytes(&pane.title),
        text::from_bytes(&pane.cwd),
    ]
}

fn fields_of_item(item: &Value) -> (String, PaneFields) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let identity = &item["identity"];
    let claim = [&identity["window_id"], &identity["session_name"], &item["title"], &item["cwd"]];
    (text(&identity["pane_id"]), claim.map(text))
}

#[test]
fn hostile_texts_are_never_rows_commands_or_escapes() {
    let hostile = HostileFixture::new("default", "C.UTF-8");
    for name in HOSTILE_TEXTS {
        hostile.create_session(name, name);
    }
    let panes = hostile.wait_for_agreement();
    assert_eq!(panes.len(), HOSTILE_TEXTS.len(), "one pane per text");
    assert_windows_agree(&hostile);
    assert_directories_survive(&hostile);
    assert_programs_are_named(&hostile);
    assert_tables_are_harmless(&hostile, HOSTILE_TEXTS.len());
    hostile.assert_nothing_was_executed();
}

#[track_caller]
fn assert_windows_agree(hostile: &HostileFixture) {
    let rows = hostile.server.rows(&["list-windows", "-a"], &["window_id", "session_name", "window_name"]);
    let mut truth: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|value| text::from_bytes(value)).collect()).collect();
    let listing = hostile.list("windows");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |item: &Value| -> Vec<String> {
        vec![text(&item["identity"]["window_id"]), text(&item["identity"]["session_name"]), text(&item["window_name"])]
    };
    let mut listed: Vec<Vec<String>> = items(&listing).iter().map(row).collect();
    truth.sort();
    listed.sort();
    assert_eq!(listed, truth);
    assert_eq!(items(&hostile.list("sessions")).len(), HOSTILE_TEXTS.len());
}

/// Directories keep every byte, including invalid UTF-8.
#[track_caller]
fn assert_directories_survive(hostile: &HostileFixture) {
    let listing = hostile.list("panes");
    let mut listed: Vec<Vec<u8>> =
        items(&listing).iter().map(|item| text::to_bytes(item["cwd"].as_str().unwrap_or_default())).collect();
    let path = |name: &&[u8]| hostile.world.home().join("dirs").join(OsStr::from_bytes(name)).into_os_string();
    let mut truth: Vec<Vec<u8>> = HOSTILE_TEXTS.iter().map(|name| path(name).as_bytes().to_vec()).collect();
    truth.sort();
    listed.sort();
    assert_eq!(listed, truth);
}

/// Checks some command names; tmux keeps only the first word.
#[track_caller]
fn assert_programs_are_named(hostile: &HostileFixture) {
    let listing = hostile.list("panes");
    let listed: Vec<String> =
        items(&listing).iter().map(|item| item["command"].as_str().unwrap_or_default().to_owned()).collect();
    for name in ["new\nline", "tab\there", "clear", "日本語", "%9"] {
        assert!(listed.iter().any(|command| command == name), "no {name:?} in {listed:?}");
    }
}

#[track_caller]
fn assert_tables_are_harmless(hostile: &HostileFixture, panes: usize) {
    let piped = run(&mut hostile.agtmux(&["list", "panes", "--all"]));
    assert_eq!(piped.text().lines().count(), panes + 1, "a heading and one line per pane: {}", piped.text());
    for args in [
        &["list", "panes", "--all"][..],
        &["list", "windows"],
        &["list", "sessions", "--agent-summary"],
        &["watch", "--once", "--all", "--format", "table"],
        &["watch", "--once", "--all", "--format", "jsonl"],
        &["status"],
        &["daemon", "status"],
        &["daemon", "logs"],
        &["list", "panes", "--session", "\x1b[2J\u{202e}missing"],
    ] {
        let piped = run(&mut hostile.agtmux(args));
        assert_eq!(piped.code, Some(0), "{args:?}: {}", piped.stderr);
        assert_terminal_safe(&piped.stdout, false);
        assert_terminal_safe(piped.stderr.as_bytes(), false);
        assert_terminal_safe(&printed_on_terminal(&mut hostile.agtmux(args), 200), true);
        assert_terminal_safe(&printed_on_terminal(&mut hostile.agtmux(args), 40), true);
    }
}

#[test]
fn a_hostile_server_name_is_printed_safely() {
    let hostile = HostileFixture::new("evil\x1b]0;x\x07\n%9 \u{202e}$(touch $MARK)#(touch $MARK)", "C.UTF-8");
    hostile.create_session(b"work", b"a title");
    let other = hostile.world.tmux("default");
    other.new_session("other", "cat");
    wait_for("both servers", SOON, || {
        let listing = hostile.list("panes");
        if items(&listing).len() == 2 { Ok(()) } else { Err(listing.to_string()) }
    });
    let server =
        items(&hostile.list("panes")).iter().map(|item| item["identity"]["server"].clone()).collect::<Vec<_>>();
    assert!(server.contains(&Value::from(hostile.server.name())), "{server:?}");
    assert_tables_are_harmless(&hostile, 2);
    // An outage message also contains the server name.
    let stopped = hostile.server.stop();
    wait_for("the outage", SOON, || (hostile.list("panes")["partial"] == true).then_some(()));
    assert_tables_are_harmless(&hostile, 2);
    hostile.server.cont(stopped);
    hostile.assert_nothing_was_executed();
}

#[test]
fn a_huge_title_is_truncated() {
    let hostile = HostileFixture::new("default", "C.UTF-8");
    hostile.create_session(b"plain", b"plain");
    for (name, byte) in [("ascii", "x"), ("two-bytes", "é"), ("bidi", "\u{202e}")] {
        // Below the limit of one million bytes in tmux.
        let print = format!(
            "printf '\\033]2;'; head -c 900000 /dev/zero | sed 's/\\x00/{byte}/g' | head -c 900000; printf '\\033\\\\'; exec cat"
        );
        hostile.tmux(&["new-session", "-d", "-s", name, "sh", "-c", &print].map(OsStr::new));
    }
    let long = wait_for("two long titles", SOON, || {
        let listing = hostile.list("panes");
        let titles: Vec<String> =
            items(&listing).iter().map(|item| item["title"].as_str().unwrap_or_default().to_owned()).collect();
        let long: Vec<String> = titles.iter().filter(|title| title.len() > 1000).cloned().collect();
        if long.len() >= 2 { Ok(long) } else { Err(titles.iter().map(String::len).collect::<Vec<_>>()) }
    });
    for title in long {
        assert!(title.len() <= 4100 && title.ends_with('…'), "{} bytes", title.len());
    }
    assert_eq!(items(&hostile.list("panes")).len(), 4);
    assert_tables_are_harmless(&hostile, 4);
}

#[test]
fn text_is_correct_without_a_utf8_locale() {
    for locale in ["C", "POSIX"] {
        let hostile = HostileFixture::new("default", locale);
        let name = "wörk 日本 ✳".as_bytes();
        hostile.create_session(name, "tïtle § 語 ✳ thinking…".as_bytes());
        hostile.create_session(b"invalid \xff\xfe", b"plain");
        let panes = hostile.wait_for_agreement();
        let work = panes.iter().find(|pane| pane.session_name == name).expect("tmux kept the name");
        assert_eq!((work.title.as_slice(), panes.len()), ("tïtle § 語 ✳ thinking…".as_bytes(), 2));
        let table = run(&mut hostile.agtmux(&["list", "panes", "--all"])).text();
        assert!(table.contains("wörk 日本 ✳") && table.contains("tïtle § 語 ✳ thinking…"), "{table}");
        assert!(table.contains("invalid \\xff\\xfe"), "{table}");
    }
}

/// tmux matches `work` to `work-prod` if there is no session `work`.
#[test]
fn a_session_name_never_matches_by_prefix() {
    let hostile = HostileFixture::new("default", "C.UTF-8");
    for name in ["work", "work-prod"] {
        hostile.create_session(name.as_bytes(), name.as_bytes());
    }
    let within = |session: &str| {
        let listing = run(&mut hostile.agtmux(&["list", "panes", "--all", "--session", session, "--json"])).json();
        items(&listing).iter().map(|item| item["title"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    wait_for("both panes", SOON, || if items(&hostile.list("panes")).len() == 2 { Ok(()) } else { Err(()) });
    wait_for("the title", SOON, || if within("work") == ["work"] { Ok(()) } else { Err(within("work")) });
    hostile.server.run(&["kill-session", "-t", "=work"]);
    wait_for("one pane less", SOON, || if items(&hostile.list("panes")).len() == 1 { Ok(()) } else { Err(()) });
    assert_eq!(within("work"), Vec::<String>::new());
    assert_eq!(within("work-prod"), ["work-prod"]);
}
