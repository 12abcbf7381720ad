//! The channels that use the terminals of tmux clients, with text that tries to act on them.

use agtmux_testkit::AttachedClient;
use agtmux_testkit::agtmux::start;
use agtmux_testkit::dialog_agent::DialogAgent;

use super::*;

/// A command in a dialog that tries to run a program, to style the message, to print the time, and to end the command.
const HOSTILE: &str = "touch #(touch $HOME/mark) #S #[fg=red]red %H:%M ; run-shell 'touch $HOME/mark'";

fn output(client: &AttachedClient) -> String {
    String::from_utf8_lossy(&client.output()).into_owned()
}

#[test]
fn tmux_bell_and_osc_reach_every_client_and_the_text_stays_text() {
    let agent = DialogAgent::start();
    let rule = "states = ['waiting_approval']\nchannels = ['tmux', 'bell', 'osc']";
    let settings = format!("[notify]\ndwell = '100ms'\ntmux_message_time = '60s'\n[[notify.rules]]\n{rule}\n");
    configure(&agent.world, &format!("{SETTINGS}{settings}"));
    agtmux_testkit::agtmux::stop(&agent.world);
    start(&agent.world);
    wait_until_settled(&agent.world);
    agent.server.new_session("elsewhere", "exec cat");
    let client = agent.server.attach("elsewhere");
    client.resize(200, 24);
    wait_until("the client", SOON, || output(&client).contains("elsewhere"));
    assert!(!output(&client).contains('\x07'), "tmux rings no bell by itself");
    agent.ask_permission(HOSTILE);
    agent.wait_for_dialog("run-shell");

    let sequence = "\x1b]9;claude asks for approval · Do you want to proceed? Bash command touch #(touch";
    wait_for("the escape sequence", SOON, || {
        let output = output(&client);
        if output.contains(sequence) { Ok(()) } else { Err(output) }
    });
    wait_until("the bell", SOON, || output(&client).contains('\x07'));
    let shown = "touch #(touch $HOME/mark) #S #[fg=red]red %H:%M ; run-shell";
    wait_for("the message in the status line", SOON, || {
        let output = output(&client);
        let lines = output.split(sequence).collect::<Vec<_>>().join("");
        if lines.contains(shown) { Ok(()) } else { Err(lines) }
    });
    assert!(!agent.world.home().join("mark").exists(), "nothing in the text is run");
    let log = agtmux(&agent.world, &["notify", "log", "--json"]).json();
    let events: Vec<&str> =
        log["items"].as_array().expect("items").iter().filter_map(|item| item["event"].as_str()).collect();
    assert_eq!(events, ["sent"; 3], "{log}");
}
