//! Sends requests with the program curl.

use tokio::process::Command;

use super::DeliveryResult;
use super::http::JsonRequest;
use super::program::run_with_input;

/// Sends the request. The URL, the token and the body may be secret, so curl reads them from its stdin and not from its
/// command line, which other users can see.
pub(super) async fn send(request: &JsonRequest) -> DeliveryResult {
    let mut command = Command::new("curl");
    // Only https is allowed, so that a redirection cannot lead to a file or an unencrypted server.
    command.args(["--disable", "--silent", "--show-error", "--fail", "--proto", "=https", "--config", "-"]);
    let sent = run_with_input(&mut command, options(request).as_bytes()).await;
    sent.map_err(|error| match error.starts_with("cannot start") {
        true => format!("{error}; https:// needs curl"),
        false => error,
    })
}

/// The configuration file for curl.
fn options(request: &JsonRequest) -> String {
    let mut options = vec![("url", request.url.clone()), ("request", request.method.to_string())];
    options.push(("output", "/dev/null".into()));
    if let Some(token) = &request.token {
        options.push(("header", format!("Authorization: Bearer {token}")));
    }
    if let Some(body) = &request.body {
        options.push(("header", "Content-Type: application/json".into()));
        options.push(("data-raw", body.clone()));
    }
    options.into_iter().map(|(name, value)| format!("{name} = {}\n", quoted(&value))).collect()
}

/// Quotes a value for curl's configuration file.
fn quoted(value: &str) -> String {
    let escape = |c: char| match c {
        '\\' => "\\\\".to_owned(),
        '"' => "\\\"".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c => c.to_string(),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::*;

    #[test]
    fn values_cannot_add_options() {
        let request = JsonRequest {
            method: Method::POST,
            url: "https://x/".into(),
            token: Some("t\"\noutput = \"/etc/passwd".into()),
            body: Some("@/etc/passwd \\\" \n next".into()),
        };
        let lines: Vec<String> = options(&request).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert_eq!(lines[3], r#"header = "Authorization: Bearer t\"\noutput = \"/etc/passwd""#);
        assert_eq!(lines[5], r#"data-raw = "@/etc/passwd \\\" \n next""#);
    }
}
