//! `agtmux setup --mcp` and `agtmux mcp --print-config` on real settings files.

use agtmux_testkit::agtmux::{agtmux, world};

use crate::settings::{CODEX_CONFIG, GEMINI, QWEN, file, put, read, setup_ok};

const CLAUDE_STATE: &str = ".claude.json";

#[test]
fn the_server_is_registered_and_removed_without_changing_other_bytes() {
    let world = world();
    let json = "{\n  \"theme\": \"dark\", // mine\n  \"mcpServers\": { \"other\": {\"command\": \"x\"} }\n}\n";
    let plain = "{\"numStartups\": 3}";
    let files = [
        (put(&world, CLAUDE_STATE, plain), plain),
        (put(&world, GEMINI, json), json),
        (put(&world, QWEN, ""), ""),
        (put(&world, CODEX_CONFIG, "model = 'x' # mine"), "model = 'x' # mine"),
        (put(&world, "../config/opencode/opencode.json", json), json),
        (put(&world, ".cursor/mcp.json", json), json),
        (put(&world, ".copilot/mcp-config.json", json), json),
    ];
    std::fs::create_dir_all(file(&world, ".claude")).expect("made");
    // The hooks in the same files do not matter, whatever is removed first.
    setup_ok(&world, &["--agent", "gemini", "--agent", "codex", "--yes"]);
    let shown = setup_ok(&world, &["--mcp", "--dry-run"]).text();
    assert!(shown.contains("\"mcp\"") && shown.contains("[mcp_servers.agtmux]"), "{shown}");
    let done = setup_ok(&world, &["--mcp", "--yes"]).text();
    assert!(done.contains("Restart running sessions"), "{done}");
    for (path, _) in &files {
        assert!(read(path).contains("agtmux"), "{}: {}", path.display(), read(path));
    }
    assert!(setup_ok(&world, &["--mcp", "--yes"]).text().contains("up to date"));
    setup_ok(&world, &["--uninstall", "--yes"]);
    for (path, _) in &files {
        assert!(read(path).contains("mcp"), "{}: {}", path.display(), read(path));
    }
    setup_ok(&world, &["--mcp", "--uninstall", "--yes"]);
    for (path, before) in &files {
        assert_eq!(read(path), *before, "{}", path.display());
    }
    let nothing = setup_ok(&world, &["--mcp", "--uninstall", "--yes"]).text();
    assert!(nothing.contains("no MCP server of agtmux"), "{nothing}");
}

#[test]
fn the_settings_can_be_printed_for_every_client() {
    let world = world();
    for client in ["claude", "codex", "copilot", "cursor", "gemini", "opencode", "qwen"] {
        let done = agtmux(&world, &["mcp", "--print-config", client]);
        assert_eq!(done.code, Some(0), "{client}: {}", done.stderr);
        assert!(
            done.text().contains(env!("CARGO_BIN_EXE_agtmux")) && done.text().contains("\"mcp\""),
            "{}",
            done.text()
        );
        assert!(done.stderr.contains("add this to"), "{}", done.stderr);
    }
    assert!(agtmux(&world, &["mcp", "--print-config", "claude"]).stderr.contains(CLAUDE_STATE));
    assert_eq!(agtmux(&world, &["mcp", "--print-config", "vim"]).code, Some(2));
}
