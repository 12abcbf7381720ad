use std::os::unix::fs::symlink;

use super::*;

/// A temporary home directory, removed when dropped.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("agtmux-titles-{name}-{}", std::process::id()));
        fs::create_dir_all(&home).expect("created");
        Self(home)
    }

    fn pi(&self) -> PathBuf {
        let project = self.0.join(".pi/agent/sessions/--w-foo--");
        fs::create_dir_all(&project).expect("created");
        project
    }

    fn title(&self, session_id: &str) -> Option<String> {
        let home = self.0.clone();
        title_in(&roots(move |name| (name == "HOME").then(|| home.clone())), session_id)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_session_is_found_by_its_complete_id() {
    let home = Home::new("ids");
    let project = home.pi();
    let line = r#"{"type":"session_info","name":"Mine"}"#;
    fs::write(project.join("2026-11-15T10-00-00-000Z_abc-1.jsonl"), line).expect("written");
    fs::write(project.join("2026-11-15T10-00-00-000Z_a_b.jsonl"), line).expect("written");
    assert_eq!(home.title("abc-1").as_deref(), Some("Mine"));
    assert_eq!(home.title("a_b").as_deref(), Some("Mine"));
    for other in ["1", "abc", "b", "bc-1", ""] {
        assert_eq!(home.title(other), None, "{other}");
    }
}

#[test]
fn environment_variables_set_the_session_directory() {
    let home = Home::new("moved");
    let (flat, agent) = (home.0.join("flat"), home.0.join("agent/sessions/--w--"));
    fs::create_dir_all(&flat).expect("created");
    fs::create_dir_all(&agent).expect("created");
    fs::write(flat.join("t_f.jsonl"), r#"{"type":"session_info","name":"Flat"}"#).expect("written");
    fs::write(agent.join("t_a.jsonl"), r#"{"type":"session_info","name":"Agent"}"#).expect("written");
    let variable = |name: &str| match name {
        "PI_CODING_AGENT_SESSION_DIR" => Some(flat.clone()),
        "PI_CODING_AGENT_DIR" => Some("~/agent".into()),
        "HOME" => Some(home.0.clone()),
        _ => None,
    };
    let roots = roots(variable);
    assert_eq!(title_in(&roots, "f").as_deref(), Some("Flat"));
    assert_eq!(title_in(&roots, "a").as_deref(), Some("Agent"));
}

#[test]
fn both_ends_of_a_long_session_are_read() {
    let (home, line) = (Home::new("long"), r#"{"type":"session_info","name":"Mine"}"#);
    let (file, message) =
        (home.pi().join("x_long.jsonl"), r#"{"type":"user","message":{"role":"user","content":"do it"}}"#);
    let work = format!("{{\"type\":\"work\",\"text\":\"{}\"}}\n", "x".repeat(1000)).repeat(5000);
    fs::write(&file, format!("{message}\n{work}{line}\n")).expect("written");
    assert_eq!(home.title("long").as_deref(), Some("Mine"));
    fs::write(&file, format!("{message}\n{work}")).expect("written");
    assert_eq!(home.title("long").as_deref(), Some("do it"));
    // The cut ends of two different lines must not be joined.
    let half = format!(
        "{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{}",
        "a".repeat(MAX_READ_BYTES as usize)
    );
    let other = format!("{}\"}}}}\n", "b".repeat(MAX_READ_BYTES as usize));
    fs::write(&file, half + &"c".repeat(1000) + &other).expect("written");
    assert_eq!(home.title("long"), None);
}

#[test]
fn hostile_session_files_are_ignored() {
    let home = Home::new("hostile");
    let project = home.pi();
    let write = |name: &str, bytes: &[u8]| fs::write(project.join(format!("t_{name}.jsonl")), bytes).expect("written");
    write("endless", &vec![b'x'; 3 << 20]);
    write("deep", "[".repeat(100_000).as_bytes());
    write("bytes", b"\xff\xfe\n{\"type\":\"session_info\",\"name\":\"a\xff\"}\n");
    write(
        "types",
        br#"{"type":"session_info","name":["a"]}
{"type":7}
[]
{"type":"user","message":{"role":"user","content":{"text":"a"}}}
null"#,
    );
    write("escapes", "{\"type\":\"session_info\",\"name\":\"a\\u001b]52;c;eA==\\u0007\\n\\u202eb\"}".as_bytes());
    let secret = home.0.join("secret");
    fs::write(&secret, r#"{"type":"session_info","name":"not yours"}"#).expect("written");
    symlink(&secret, project.join("t_link.jsonl")).expect("linked");
    symlink("/dev/zero", project.join("t_zero.jsonl")).expect("linked");
    fs::create_dir(project.join("t_dir.jsonl")).expect("created");
    let fifo = |path: PathBuf| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).expect("a fifo");
    fifo(project.join("t_fifo.jsonl"));
    // A FIFO instead of a project directory.
    fifo(project.with_file_name("--w-fifo--"));
    for none in ["endless", "deep", "types", "link", "zero", "dir", "fifo"] {
        assert_eq!(home.title(none), None, "{none}");
    }
    assert_eq!(home.title("bytes").as_deref(), Some("a\u{fffd}"));
    assert_eq!(home.title("escapes").as_deref(), Some("a\\x1b]52;c;eA==\\x07 \\u{202e}b"));
}
