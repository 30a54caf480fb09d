//! One HTTP request with a time limit over everything, every failure sorted by what it means.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::proxy::Proxies;
use super::refusal::one_line;
use crate::sys::{Root, SysError, env};

/// Over name, connection, handshake, request and answer together: a server that sends a byte now and
/// then is as good as one that sends none.
const LIMIT: Duration = Duration::from_secs(20);
/// As much of an answer as is looked at.
const MOST: u64 = 64 << 10;

/// Where distributions keep the certificates of the authorities they trust.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// Which authorities' certificates count.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    certificates: Vec<Certificate<'static>>,
    /// Where they were looked for.
    places: Vec<String>,
}

impl Trust {
    /// Those of the system and, if named, those of one more file.
    ///
    /// # Errors
    /// The named file cannot be read, or has no certificate in it.
    pub fn read(root: &Root, more: Option<&str>) -> Result<Self, String> {
        let mut trust = Self::default();
        for path in BUNDLES {
            trust.places.push(path.to_owned());
            if let Ok(Some(bytes)) = root.read_if_there(path) {
                trust.add(&bytes);
                break;
            }
        }
        if let Some(path) = more {
            let bytes = root.read(path).map_err(|e: SysError| e.to_string())?;
            trust.places.push(path.to_owned());
            if trust.add(&bytes) == 0 {
                return Err(format!(
                    "{} has no certificate in PEM form in it",
                    root.outside(path).display()
                ));
            }
        }
        Ok(trust)
    }

    fn add(&mut self, pem: &[u8]) -> usize {
        let before = self.certificates.len();
        let found = parse_pem(pem).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        });
        self.certificates.extend(found);
        self.certificates.len() - before
    }
}

/// A client for a few requests.
#[derive(Debug, Clone)]
pub struct Http {
    trust: Trust,
    proxies: Proxies,
    limit: Duration,
}

/// What a server said: the status, and the beginning of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Such as 200.
    pub status: u16,
    /// Where a redirect leads.
    pub location: Option<String>,
    /// At most 64 KiB of it.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The server was not reached, or did not answer in time.
    #[error("{0}")]
    Unreachable(String),
    /// It was reached, and is not who it should be, or does not speak HTTP.
    #[error("{0}")]
    Protocol(String),
}

/// How a request gets to a server: over the network, or in a simulation.
pub trait Wire: std::fmt::Debug {
    /// Sends a body and gives the answer, whatever its status.
    ///
    /// # Errors
    /// There is no answer.
    fn post(&self, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer, HttpError>;
}

impl Http {
    /// A client that trusts these and goes through the environment's proxy.
    #[must_use]
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            proxies: Proxies::read(env::var),
            limit: LIMIT,
        }
    }

    /// The longest wait for a whole answer; 20 s unless set.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Goes through these proxies instead of the environment's.
    #[must_use]
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    pub(super) fn get(&self, url: &str) -> Result<Answer, HttpError> {
        self.answer(url, self.agent(url)?.get(url).call(), true)
    }

    fn agent(&self, url: &str) -> Result<ureq::Agent, HttpError> {
        let proxy = match self.proxies.of(url) {
            None => None,
            Some(text) => Some(ureq::Proxy::new(text).map_err(|_| {
                HttpError::Unreachable(
                    "the proxy that the environment names is not a URL such as http://proxy.example:3128"
                        .to_owned(),
                )
            })?),
        };
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(self.trust.certificates.clone()))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A redirect is not a yes, and whoever redirects could send the node anywhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(self.limit))
            .max_idle_connections(0)
            .max_response_header_size(MOST as usize)
            .user_agent(concat!("gdr-agent/", env!("CARGO_PKG_VERSION")))
            .proxy(proxy)
            .tls_config(tls)
            .build();
        Ok(config.into())
    }

    fn answer(
        &self,
        url: &str,
        outcome: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        wants_body: bool,
    ) -> Result<Answer, HttpError> {
        let response = outcome.map_err(|e| self.sort(url, e))?;
        let status = response.status().as_u16();
        let location = response.headers().get("location");
        let location = location.and_then(|value| value.to_str().ok()).map(one_line);
        let mut body = Vec::new();
        // The status is the answer. What comes after it is for people, and may break off.
        if status != 200 || wants_body {
            let mut reader = response.into_body().into_reader();
            let _ = (&mut reader).take(MOST).read_to_end(&mut body);
        }
        Ok(Answer {
            status,
            location,
            body,
        })
    }

    fn sort(&self, url: &str, error: ureq::Error) -> HttpError {
        let via = match self.proxies.of(url) {
            // A proxy's URL may hold a password.
            Some(_) => " (through the proxy of the environment)",
            None => "",
        };
        let no = |why: String| HttpError::Unreachable(format!("{url}{via}: {why}"));
        let strange = |why: String| HttpError::Protocol(format!("{url}{via}: {why}"));
        match error {
            ureq::Error::Timeout(_) => no(format!("no answer within {:?}", self.limit)),
            ureq::Error::HostNotFound => {
                no("the host's name is not known; see `getent hosts`".to_owned())
            }
            ureq::Error::ConnectionFailed => no("no connection could be made".to_owned()),
            ureq::Error::ConnectProxyFailed(why) => {
                no(format!("the proxy refused: {}", one_line(&why)))
            }
            ureq::Error::Rustls(why) => self.tls(url, &why),
            ureq::Error::Io(e) => match e
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<rustls::Error>())
            {
                Some(why) => self.tls(url, why),
                None => no(one_line(&e.to_string())),
            },
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => strange(format!(
                "this is not an answer of HTTP: {}",
                one_line(&error.to_string())
            )),
            other => strange(one_line(&other.to_string())),
        }
    }

    /// A handshake that failed. Certificates are the frequent reason, and the one that people can mend.
    fn tls(&self, url: &str, error: &rustls::Error) -> HttpError {
        use rustls::CertificateError as C;
        let why = match error {
            rustls::Error::InvalidCertificate(C::UnknownIssuer) => format!(
                "its certificate was issued by an authority that is not trusted here (looked in {}); \
                 name the authority's certificate in [reboot.fleetlock] ca",
                self.trust.places.join(", ")
            ),
            rustls::Error::InvalidCertificate(C::Expired | C::ExpiredContext { .. }) => {
                "its certificate has expired; or this node's clock is wrong (`timedatectl`)"
                    .to_owned()
            }
            rustls::Error::InvalidCertificate(C::NotValidYet | C::NotValidYetContext { .. }) => {
                "its certificate is not valid yet; or this node's clock is wrong (`timedatectl`)"
                    .to_owned()
            }
            rustls::Error::InvalidCertificate(
                C::NotValidForName | C::NotValidForNameContext { .. },
            ) => "its certificate is for another name than the URL's host".to_owned(),
            rustls::Error::InvalidMessage(_) => {
                "it does not speak TLS there; is the URL to begin with http://?".to_owned()
            }
            other => format!("TLS failed: {}", one_line(&other.to_string())),
        };
        HttpError::Protocol(format!("{url}: {why}"))
    }
}

impl Wire for Http {
    fn post(&self, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer, HttpError> {
        let mut request = self.agent(url)?.post(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.answer(url, request.send(body), false)
    }
}
