//! Which proxy is to be used for a URL, by the environment variables that everybody knows.

/// The proxies of the environment: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in lower
/// or upper case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<String>,
    https: Option<String>,
    never: Vec<String>,
}

impl Proxies {
    /// Reads them. `get` gives the value of an environment variable.
    ///
    /// `HTTP_PROXY` in upper case does not count, as in curl: in a CGI program it comes from the client.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            let mut values = names.iter().filter_map(|name| get(name));
            values.find(|value| !value.trim().is_empty())
        };
        let all = ["all_proxy", "ALL_PROXY"];
        Self {
            http: first(&["http_proxy"]).or_else(|| first(&all)),
            https: first(&["https_proxy", "HTTPS_PROXY"]).or_else(|| first(&all)),
            never: first(&["no_proxy", "NO_PROXY"])
                .unwrap_or_default()
                .split([',', ' '])
                .map(|entry| entry.trim().to_ascii_lowercase())
                .filter(|entry| !entry.is_empty())
                .collect(),
        }
    }

    /// The proxy for a URL, or none.
    #[must_use]
    pub fn of(&self, url: &str) -> Option<&str> {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split('/').next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        let host = host.to_ascii_lowercase();
        if self.never.iter().any(|entry| matches(entry, &host)) {
            return None;
        }
        match scheme {
            "https" => self.https.as_deref(),
            _ => self.http.as_deref(),
        }
    }
}

/// `*`, a host, or a domain with or without a dot or `*.` before it.
fn matches(entry: &str, host: &str) -> bool {
    if entry == "*" {
        return true;
    }
    let name = entry.trim_start_matches('*').trim_start_matches('.');
    host == name
        || host
            .strip_suffix(name)
            .is_some_and(|before| before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(pairs: &'static [(&'static str, &'static str)]) -> Proxies {
        Proxies::read(|name| {
            let mut found = pairs.iter().filter(|(n, _)| *n == name);
            found.next().map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_scheme_has_its_own_and_some_hosts_none() {
        let found = proxies(&[
            ("http_proxy", "http://a:1"),
            ("HTTPS_PROXY", "http://b:2"),
            ("NO_PROXY", "localhost, .in.example,10.0.0.1,::1"),
        ]);
        for (url, proxy) in [
            ("http://lock.example/", Some("http://a:1")),
            ("https://lock.example:9090/x", Some("http://b:2")),
            ("https://lock.in.example:9090/x", None),
            ("https://in.example/", None),
            ("https://notin.example/", Some("http://b:2")),
            ("http://LOCALHOST:9090/", None),
            ("http://10.0.0.1:9090/", None),
            ("http://[::1]:9090/", None),
        ] {
            assert_eq!(found.of(url), proxy, "{url}");
        }
        let all = proxies(&[("ALL_PROXY", "http://c:3"), ("https_proxy", " ")]);
        assert_eq!(all.of("https://x/"), Some("http://c:3"));
        assert_eq!(proxies(&[("HTTP_PROXY", "http://d")]).of("http://x/"), None);
        let none = proxies(&[("http_proxy", "http://a"), ("no_proxy", "*")]);
        assert_eq!(none.of("http://x/"), None);
    }
}
