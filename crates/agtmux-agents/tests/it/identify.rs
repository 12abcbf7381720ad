//! Agents in realistic process trees, and processes that must not be identified as agents.

use agtmux_agents::AgentRegistry;

use crate::process_tree::ProcessTree;

/// Each case has a name and a process tree. In the tree, each line is one process, indented below its parent. A line
/// consists of marks and the command line, followed by `=> type` on the process that must be found. `~` stands for a
/// space inside an argument. The marks `fg` and `bg` begin a job; `pty` begins a job on another terminal. The marks
/// `stopped`, `zombie`, `exe:PATH` and `comm:NAME` set properties of the process.
const CASES: &[(&str, &str)] = &[
    ("started by a shell", "-bash\n fg claude => claude"),
    ("the pane's own command", "claude --continue => claude"),
    ("by a full path", "zsh\n fg /root/.local/bin/codex => codex"),
    ("a path with spaces", "zsh\n fg /home/my~user/bin/claude => claude"),
    ("named by its version", "zsh\n fg exe:/root/.local/share/claude/versions/2.1.3 /x/2.1.3 => claude"),
    ("replaced by an update", "zsh\n fg exe:/root/.local/share/claude/versions/2.1.3~(deleted) x => claude"),
    (
        "old claude in node",
        "zsh\n fg exe:/usr/bin/node node --no-warnings /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js => claude",
    ),
    ("a linked script in node", "zsh\n fg node /usr/local/bin/claude -c => claude"),
    ("a script by a relative path", "zsh\n fg node node_modules/@google/gemini-cli/dist/index.js => gemini"),
    ("a process title", "zsh\n fg exe:/usr/bin/node comm:pi pi => pi"),
    ("a process title with padding", "zsh\n fg exe:/usr/bin/node claude   => claude"),
    (
        "codex: always the wrapper",
        "zsh\n fg node /usr/bin/codex => codex\n  /usr/lib/node_modules/@openai/codex/vendor/x/codex/codex",
    ),
    (
        "codex from an archive",
        "zsh\n fg exe:/opt/codex-x86_64-unknown-linux-musl ./codex-x86_64-unknown-linux-musl => codex",
    ),
    (
        "gemini: the outer of two",
        "zsh\n fg node /usr/bin/gemini => gemini\n  /usr/bin/node --max-old-space-size=9 /usr/bin/gemini",
    ),
    (
        "copilot shows only in its path",
        "zsh\n fg comm:MainThread exe:/root/.cache/copilot/pkg/linux-x64/copilot x => copilot",
    ),
    ("copilot in node", "zsh\n fg comm:MainThread node /usr/lib/node_modules/@github/copilot/index.js => copilot"),
    (
        "cursor",
        "zsh\n fg exe:/root/.local/share/cursor-agent/versions/1/node /root/.local/bin/cursor-agent --use-system-ca /root/.local/share/cursor-agent/versions/1/index.js => cursor",
    ),
    (
        "cursor as agent",
        "zsh\n fg exe:/root/.local/share/cursor-agent/versions/1/node /root/.local/bin/agent --use-system-ca /root/.local/share/cursor-agent/versions/1/index.js => cursor",
    ),
    ("opencode", "zsh\n fg node /usr/bin/opencode => opencode\n  /usr/lib/node_modules/opencode-ai/bin/.opencode"),
    ("pi in node", "zsh\n fg node /usr/lib/node_modules/@earendil-works/pi-coding-agent/dist/cli.js => pi"),
    ("qwen", "zsh\n fg node /usr/bin/qwen => qwen"),
    ("aider", "zsh\n fg /root/.venv/bin/python3 /root/.local/bin/aider => aider"),
    ("aider as a module", "zsh\n fg python3.12 -m aider --model x => aider"),
    ("bun", "zsh\n fg bun run /root/.bun/bin/claude => claude"),
    ("deno", "zsh\n fg deno run -A npm:@google/gemini-cli => gemini"),
    ("one-shot", "zsh\n fg codex exec fix~it => codex"),
    (
        "below npx",
        "zsh\n fg npm~exec~@openai/codex\n  sh -c codex\n   node /root/.npm/_npx/1/node_modules/.bin/codex => codex",
    ),
    ("below an older npx", "zsh\n fg node /usr/bin/npx @anthropic-ai/claude-code\n  sh -c claude\n   claude => claude"),
    ("below uvx", "zsh\n fg uvx aider-chat\n  /root/.cache/uv/x/bin/python /root/.cache/uv/x/bin/aider => aider"),
    ("below time and nice", "zsh\n fg time nice claude\n  nice claude\n   claude => claude"),
    ("below timeout", "zsh\n fg timeout 9h claude\n  claude => claude"),
    ("below env that stays", "zsh\n fg env -S claude\n  claude => claude"),
    ("below sudo on the same terminal", "zsh\n fg sudo claude\n  claude => claude"),
    ("below sudo on its own terminal", "zsh\n fg sudo claude\n  pty sudo claude\n   fg claude => claude"),
    ("in a root shell", "zsh\n fg sudo -i\n  pty sudo -i\n   fg -bash\n    fg claude => claude"),
    ("below script", "zsh\n fg script -qc claude log\n  pty sh -c claude\n   claude => claude"),
    ("in a subshell", "zsh\n fg zsh\n  claude => claude"),
    ("in a nested shell", "zsh\n bash\n  fg claude => claude"),
    ("behind sh -c", "sh -c claude;~true\n claude => claude"),
    ("a wrapper script around the real one", "zsh\n fg sh /x/bin/claude\n  exe:/opt/claude claude => claude"),
    ("a wrapper script around a program of another name", "zsh\n fg bash -e /x/bin/claude => claude\n  secret-binary"),
    ("a wrapper of another name", "zsh\n fg bash /x/work.sh\n  claude => claude"),
    ("a wrapper around another agent", "zsh\n fg sh /x/bin/claude\n  codex => codex"),
    ("an agent that runs an agent", "zsh\n fg claude => claude\n  bash -c codex~exec~x\n   codex exec x"),
    ("an agent that runs another agent in a pty", "zsh\n fg codex => codex\n  pty bash\n   fg claude"),
    ("in a pipe", "zsh\n fg claude -p hi => claude\n tee log"),
    ("only the short name is known", "zsh\n fg comm:claude => claude"),
    ("a helper's word in the prompt", "zsh\n fg opencode run explain how we serve => opencode"),
    ("stopped", "zsh\n bg stopped claude => claude"),
    ("stopped, while something else runs", "zsh\n bg stopped claude => claude\n fg vim x"),
    ("stopped, while another agent runs", "zsh\n bg stopped claude\n fg codex => codex"),
    ("stopped without a shell", "stopped claude => claude"),
    ("stopped below its wrapper", "zsh\n bg stopped sh /x/bin/claude\n  stopped claude => claude"),
    ("a dead one beside a live one", "zsh\n fg make\n  zombie claude\n  codex => codex"),
    ("background", "zsh\n bg claude"),
    ("background, while something else runs", "zsh\n bg claude\n fg vim x"),
    ("background in a root shell", "zsh\n fg sudo -i\n  pty sudo -i\n   fg -bash\n    bg claude"),
    ("background with its own terminal", "zsh\n bg script -c claude\n  pty claude\n fg vim x"),
    ("dead", "zsh\n fg zombie comm:claude"),
    ("an empty shell", "-zsh"),
    ("an editor on a file", "zsh\n fg vim claude"),
    ("a pager", "zsh\n fg less codex"),
    ("a manual", "zsh\n fg man pi\n  pager"),
    ("cat", "zsh\n fg cat claude.md"),
    ("grep", "zsh\n fg grep codex"),
    ("tail", "zsh\n fg tail -f claude.log"),
    ("the agent's name as an argument of a script", "zsh\n fg node server.js claude"),
    ("another script", "zsh\n fg python pi.py"),
    ("a script in a folder of that name", "zsh\n fg node /src/claude/server.js"),
    ("a package with a longer name", "zsh\n fg node /x/@openai/codex-sdk/index.js"),
    ("code on the command line", "zsh\n fg node -e 1 /usr/bin/claude"),
    ("another module", "zsh\n fg python -m http.server aider"),
    ("a shell's command", "zsh\n fg bash -c echo~claude"),
    ("a shell's command with that name", "zsh\n fg bash -c claude"),
    ("over ssh", "zsh\n fg ssh host claude"),
    ("a program with a longer name", "zsh\n fg claude-monitor"),
    ("upper case", "zsh\n fg /Applications/Claude.app/Claude"),
    ("the Cursor editor", "zsh\n fg cursor ."),
    ("npx before it starts the agent", "zsh\n fg npm~exec~@openai/codex"),
    ("sudo that still asks for a password", "zsh\n fg sudo claude"),
    ("a server for other programs", "zsh\n fg codex app-server"),
    ("a server behind its wrapper", "zsh\n fg node /usr/bin/codex mcp-server\n  codex mcp-server"),
    ("a server with options", "zsh\n fg codex -c model=x app-server"),
    ("claude's server", "zsh\n fg claude mcp serve"),
    ("opencode's server", "zsh\n fg opencode serve --port 1"),
    ("pi for other programs", "zsh\n fg pi --mode rpc"),
    ("another tool called copilot", "zsh\n fg copilot svc deploy"),
    ("a server in an editor", "zsh\n fg nvim\n  node /usr/bin/codex app-server"),
];

#[test]
fn identify_finds_the_agent_of_the_foreground_job() {
    let mut wrong = Vec::new();
    for (name, text) in CASES {
        let tree = ProcessTree::parse(text);
        for (how, tree) in [("", tree.clone()), (" (terminals unknown)", tree.without_terminals())] {
            // If the terminals are unknown, a background job of an inner shell looks like its foreground job.
            if !how.is_empty() && text.contains("pty") && tree.expected.is_none() {
                continue;
            }
            let found = tree.identify(AgentRegistry::builtin());
            if found != tree.expected {
                wrong.push(format!("{name}{how}: found {found:?}, expected {:?}\n{text}", tree.expected));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Process trees whose last process is a hook. `=> type` marks the outermost process of the agent that runs the hook.
/// This mark is missing if no process above the hook is an agent. The second field says whether each child shares the
/// standard input of its parent. It is None if that is unknown.
const HOOKS: &[(&str, Option<bool>, &str)] = &[
    ("no agent at all", None, "zsh\n fg vim\n  sh -c hook"),
    ("of the agent", None, "zsh\n fg claude => claude\n  sh -c hook"),
    (
        "through a launcher",
        Some(true),
        "zsh\n fg node /usr/bin/codex -m x => codex\n  /usr/lib/node_modules/@openai/codex/vendor/x/codex -m x\n   sh -c hook",
    ),
    (
        "of an agent that restarts itself with more arguments",
        Some(true),
        "zsh\n fg node /usr/bin/gemini => gemini\n  node --max-old-space-size=9 /usr/bin/gemini --more\n   sh -c hook",
    ),
    ("through a launcher with its own terminal", Some(false), "zsh\n fg claude -c => claude\n  pty claude -c\n   hook"),
    ("through a launcher in the same job", None, "zsh\n fg claude => claude\n  claude --more\n   hook"),
    ("below npx", None, "zsh\n fg npm~exec~claude\n  sh -c claude\n   claude => claude\n    hook"),
    (
        "of an agent in the shell of another agent",
        None,
        "zsh\n fg claude\n  bash -c claude~-p;true\n   claude -p => claude\n    hook",
    ),
    (
        "the same, and the shell shares the input",
        Some(true),
        "zsh\n fg claude\n  bash -c x\n   claude -p => claude\n    hook",
    ),
    (
        "through a launcher and its child",
        Some(true),
        "zsh\n fg python3 /home/u/bin/claude => claude\n  timeout 9h claude\n   claude\n    hook",
    ),
    ("of an agent that replaced the shell", Some(false), "zsh\n fg codex\n  codex exec x => codex\n   sh -c hook"),
    ("the same, in its own job", None, "zsh\n fg codex\n  bg codex exec x => codex\n   sh -c hook"),
    (
        "with its own launcher",
        Some(false),
        "zsh\n fg node /usr/bin/codex\n  codex\n   node /usr/bin/codex exec x => codex\n    codex exec x\n     sh -c hook",
    ),
    ("of another kind", Some(true), "zsh\n fg claude\n  codex => codex\n   sh -c hook"),
    ("a script with the agent's name", None, "zsh\n fg claude => claude\n  sh /x/hooks/claude\n   hook"),
    ("a server of the agent", None, "zsh\n fg claude => claude\n  claude mcp serve\n   hook"),
];

#[test]
fn a_hook_belongs_to_the_nearest_agent() {
    for (name, launched, text) in HOOKS {
        let tree = ProcessTree::parse(text);
        let expected = tree.expected.as_ref().map(|(_, pid, _)| *pid);
        assert_eq!(tree.own(AgentRegistry::builtin(), *launched), expected, "{name}\n{text}");
    }
}

#[test]
fn without_a_known_foreground_group_every_process_counts() {
    let mut tree = ProcessTree::parse("zsh\n bg claude");
    tree.foreground = None;
    assert_eq!(tree.identify(AgentRegistry::builtin()).map(|(agent, _, _)| agent), Some("claude".into()));
}
