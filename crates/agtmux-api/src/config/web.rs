//! Settings of the web port.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Settings for the TCP listener for browsers and scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebConfig {
    pub listen: ListenAddress,
    pub i_know: bool,
    pub hosts: Vec<String>,
    pub proxy_users: Vec<ProxyUser>,
    pub public_url: PublicUrl,
}

/// The address that the web port listens on. None if the port is off.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub Option<SocketAddr>);

impl std::str::FromStr for ListenAddress {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "" => Ok(Self(None)),
            _ => s
                .parse()
                .map(|address| Self(Some(address)))
                .map_err(|_| format!("'{s}' is not an address; write it like 127.0.0.1:7777")),
        }
    }
}

impl Serialize for ListenAddress {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0.map(|address| address.to_string()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl WebConfig {
    /// Returns an error if the address is reachable from other machines and the user has not confirmed that.
    pub fn exposure_error(&self) -> Option<String> {
        let address = self.listen.0.filter(|address| !address.ip().is_loopback() && !self.i_know)?;
        Some(format!(
            "web.listen: {address} is reachable from other machines without encryption; use 127.0.0.1, or put a TLS proxy \
             in front of it and confirm with web.i_know = true (--i-know)"
        ))
    }
}

/// The address under which other devices reach the dashboard through a proxy, such as `https://agents.example`. Empty if
/// there is none. Stored without a slash at its end.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PublicUrl(String);

impl PublicUrl {
    pub fn url(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }

    /// The host name, with the port if the address contains one. Browsers send it in the Host header.
    pub fn host(&self) -> Option<&str> {
        self.url()?.split_once("://").map(|(_, host)| host)
    }
}

impl std::str::FromStr for PublicUrl {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let url = s.trim_end_matches('/');
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_host =
            |host: &str| !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b));
        if s.is_empty() || host.is_some_and(is_host) {
            return Ok(Self(url.to_owned()));
        }
        Err(format!("'{s}' is not an address without a path; write it like https://agents.example"))
    }
}

impl<'de> Deserialize<'de> for PublicUrl {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A user whose processes may connect to the web port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "the name or the number of a user, such as \"www-data\" or 33")]
pub enum ProxyUser {
    Uid(u32),
    Name(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_users_are_names_or_numbers() {
        let text = "listen = ''\ni_know = false\nhosts = []\nproxy_users = ['www-data', 33]\npublic_url = ''";
        let config: WebConfig = toml::from_str(text).expect("valid");
        assert_eq!(config.proxy_users, [ProxyUser::Name("www-data".into()), ProxyUser::Uid(33)]);
        let error = toml::from_str::<WebConfig>(&text.replace("33", "-1")).expect_err("not a user").to_string();
        assert!(error.contains("the name or the number of a user"), "{error}");
    }

    #[test]
    fn a_public_url_has_a_host_and_no_path() {
        let url: PublicUrl = "https://agents.example:8443/".parse().expect("valid");
        assert_eq!((url.url(), url.host()), (Some("https://agents.example:8443"), Some("agents.example:8443")));
        assert_eq!("".parse::<PublicUrl>().expect("none").host(), None);
        for wrong in
            ["agents.example", "https://", "https://a/b", "https://a#b", "https://u@a", "ftp://a", "https://a b"]
        {
            assert!(wrong.parse::<PublicUrl>().is_err(), "{wrong}");
        }
    }
}
