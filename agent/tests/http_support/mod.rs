//! An HTTP server as small as can be, that answers as told or breaks off as told.
#![allow(dead_code, unreachable_pub, clippy::disallowed_methods, missing_docs)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The certificate that the server shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    None,
    Good,
    OtherName,
    Expired,
}

/// What the server does once it has read a request.
#[derive(Debug, Clone)]
pub enum Reply {
    Bytes(Vec<u8>),
    /// Never answers.
    Silent,
    /// Closes with data unread, so that the client sees a reset.
    Reset,
    /// These bytes, one every 50 ms, and then `x` without end.
    Drip(Vec<u8>),
    /// A status and a body without end, as fast as it is taken.
    Endless(u16),
    /// These bytes, again and again, as fast as they are taken.
    Again(&'static str),
}

impl Reply {
    pub fn status(status: u16, body: &str) -> Self {
        Self::Bytes(
            format!(
                "HTTP/1.1 {status} Word\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .into_bytes(),
        )
    }

    pub fn raw(bytes: impl Into<String>) -> Self {
        Self::Bytes(bytes.into().into_bytes())
    }
}

#[derive(Debug, Clone)]
pub struct Seen {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// A server on a port of its own; its threads end with the test.
pub struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub fn start(tls: Tls, answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (seen.clone(), Arc::new(answer));
        let tls = config(tls);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer, tls) = (log.clone(), answer.clone(), tls.clone());
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    let _ = match tls {
                        None => talk(stream, &log, &*answer),
                        Some(config) => {
                            let connection = rustls::ServerConnection::new(config).unwrap();
                            talk(rustls::StreamOwned::new(connection, stream), &log, &*answer)
                        }
                    };
                });
            }
        });
        Self { port, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn config(tls: Tls) -> Option<Arc<rustls::ServerConfig>> {
    let (certificate, key): (&[u8], &[u8]) = match tls {
        Tls::None => return None,
        Tls::Good => (
            include_bytes!("../tls/good.pem"),
            include_bytes!("../tls/good.key"),
        ),
        Tls::OtherName => (
            include_bytes!("../tls/other-name.pem"),
            include_bytes!("../tls/other-name.key"),
        ),
        Tls::Expired => (
            include_bytes!("../tls/expired.pem"),
            include_bytes!("../tls/expired.key"),
        ),
    };
    let chain = vec![CertificateDer::from_pem_slice(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(chain, key)
    .unwrap();
    Some(Arc::new(config))
}

fn talk<S: Read + Write>(
    stream: S,
    log: &Mutex<Vec<Seen>>,
    answer: &(impl Fn(&Seen) -> Reply + ?Sized),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() || !line.contains(" HTTP/") {
        return reader
            .get_mut()
            .write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    }
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Ok(());
        }
        match header.trim_end().split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            None => break,
        }
    }
    let mut seen = Seen {
        line: line.trim_end().to_owned(),
        headers,
        body: Vec::new(),
    };
    let length: usize = seen
        .header("content-length")
        .map_or(0, |n| n.parse().unwrap());
    let reply = answer(&seen);
    if !matches!(reply, Reply::Reset) {
        seen.body = vec![0; length];
        reader.read_exact(&mut seen.body)?;
    }
    log.lock().unwrap().push(seen);
    let mut stream = reader.into_inner();
    match reply {
        Reply::Bytes(bytes) => {
            stream.write_all(&bytes)?;
            stream.flush()
        }
        Reply::Silent => {
            thread::sleep(Duration::from_secs(30));
            Ok(())
        }
        Reply::Reset => Ok(()),
        Reply::Drip(bytes) => {
            for byte in bytes.into_iter().chain(std::iter::repeat(b'x')) {
                stream.write_all(&[byte])?;
                stream.flush()?;
                thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        }
        Reply::Again(text) => loop {
            stream.write_all(text.as_bytes())?;
        },
        Reply::Endless(status) => {
            stream.write_all(format!("HTTP/1.1 {status} Word\r\n\r\n").as_bytes())?;
            loop {
                stream.write_all(&[b'y'; 4096])?;
            }
        }
    }
}
