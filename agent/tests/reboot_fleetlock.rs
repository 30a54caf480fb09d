//! FleetLock against a real HTTP server on the loopback interface: the real server's answers, and
//! what servers, proxies and networks do when they do not answer like that.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod http_support;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gdr_agent::reboot::{
    Coordinator, Desk, Fate, FleetLock, Http, Kind, Lock, Proxies, Question, Refusal, Request,
    Standing, Trust,
};
use gdr_agent::sys::Root;
use http_support::{Reply, Server, Tls};

/// The coordinator behind the lock: says yes or no, and what was done in which order.
#[derive(Debug, Clone, Default)]
struct Next {
    log: Rc<RefCell<Vec<String>>>,
    refuses: bool,
}

impl Coordinator for Next {
    fn name(&self) -> &'static str {
        "next"
    }
    fn can(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn request(&self, _: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        self.log.borrow_mut().push("next asked".to_owned());
        if self.refuses {
            return Err(Refusal::Busy {
                text: "held up".to_owned(),
            });
        }
        desk.granted().map_err(|text| Refusal::Record {
            text,
            reboot: Fate::CalledBack,
        })
    }
    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }
    fn poll(&self, _: Duration) -> Result<Standing, Refusal> {
        Ok(Standing::Coming("soon".to_owned()))
    }
    fn cancel(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Writes down what the coordinator has recorded.
struct Book {
    log: Rc<RefCell<Vec<String>>>,
    full: bool,
}

impl Desk for Book {
    fn lock(&mut self, lock: &Lock) -> Result<(), String> {
        self.log
            .borrow_mut()
            .push(format!("recorded held={}", lock.held));
        if self.full {
            return Err("disk full".to_owned());
        }
        Ok(())
    }
    fn granted(&mut self) -> Result<(), String> {
        self.log.borrow_mut().push("recorded grant".to_owned());
        Ok(())
    }
}

fn lock(url: &str) -> Lock {
    Lock {
        url: url.parse().unwrap(),
        group: "gpu".parse().unwrap(),
        id: "891db1d8213340c0a33cf57baa93984b".to_owned(),
        ca: None,
        held: false,
        since: 0,
    }
}

fn http(trust: Trust) -> Http {
    Http::new(trust)
        .with_proxies(Proxies::default())
        .with_limit(Duration::from_millis(800))
}

fn client(url: &str, next: &Next) -> FleetLock {
    FleetLock::new(http(Trust::default()), lock(url), Box::new(next.clone()))
}

/// What a server does, and a name for it.
type Named = (&'static str, fn() -> Reply);

fn request() -> Request {
    Request {
        reason: "trial".to_owned(),
        respect_inhibitors: true,
        back: false,
    }
}

/// Asks, and gives what happened in order.
fn ask(lock: &FleetLock, next: &Next) -> (Result<(), Refusal>, Vec<String>) {
    let mut book = Book {
        log: next.log.clone(),
        full: false,
    };
    let outcome = lock.request(&request(), &mut book);
    (outcome, next.log.borrow().clone())
}

#[test]
fn a_slot_is_taken_recorded_and_given_back_word_for_word_as_the_protocol_says() {
    let server = Server::start(Tls::None, |_| Reply::status(200, ""));
    let next = Next::default();
    let lock = client(&server.url("/base/"), &next);
    let (outcome, log) = ask(&lock, &next);
    outcome.unwrap();
    assert_eq!(
        log,
        [
            "recorded held=false",
            "recorded held=true",
            "next asked",
            "recorded grant"
        ]
    );
    lock.release().unwrap();
    let seen = server.seen();
    let paths: Vec<&str> = seen.iter().map(|r| r.line.as_str()).collect();
    assert_eq!(
        paths,
        [
            "POST /base/v1/pre-reboot HTTP/1.1",
            "POST /base/v1/steady-state HTTP/1.1"
        ]
    );
    for request in &seen {
        assert_eq!(request.header("fleet-lock-protocol"), Some("true"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(
            body,
            serde_json::json!({"client_params": {"id": "891db1d8213340c0a33cf57baa93984b", "group": "gpu"}})
        );
    }
}

#[test]
fn everything_but_200_is_a_no_whatever_it_is_called() {
    // The first four are airlock's own.
    for (status, body, kind, says) in [
        (
            500,
            r#"{"kind":"failed_lock","value":"semaphore currently full, all slots are locked already"}"#,
            Kind::Denied,
            "all slots are locked",
        ),
        (
            500,
            r#"{"kind":"failed_sem_init","value":"etcd is down"}"#,
            Kind::Denied,
            "etcd is down",
        ),
        (
            400,
            r#"{"kind":"invalid_client_identity","value":"bad id"}"#,
            Kind::Denied,
            "bad id",
        ),
        (
            400,
            r#"{"kind":"unknown_group","value":"unknown lock group gpu"}"#,
            Kind::Denied,
            "unknown lock group",
        ),
        (
            409,
            r#"{"kind":"lock_held","value":"somebody else"}"#,
            Kind::Denied,
            "somebody else",
        ),
        (201, "", Kind::Denied, "201"),
        (204, "", Kind::Denied, "204"),
        (
            502,
            "<html>\u{7}Bad Gateway\nx</html>",
            Kind::Denied,
            "Bad Gateway x",
        ),
        (404, "not found", Kind::Protocol, "no FleetLock server"),
        (403, "", Kind::NotPermitted, "403"),
    ] {
        let server = Server::start(Tls::None, move |_| Reply::status(status, body));
        let next = Next::default();
        let (outcome, log) = ask(&client(&server.url("/"), &next), &next);
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.kind(), kind, "{status} {body}: {refusal}");
        assert!(refusal.to_string().contains(says), "{refusal}");
        assert!(!refusal.to_string().contains('\u{7}'));
        assert_eq!(
            log,
            ["recorded held=false"],
            "{status}: nobody else is asked"
        );
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(Tls::None, |_| Reply::status(200, ""));
    let to = elsewhere.url("/");
    for status in [301, 302, 307, 308] {
        let to = to.clone();
        let server = Server::start(Tls::None, move |_| {
            Reply::raw(format!(
                "HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
            ))
        });
        let next = Next::default();
        let refusal = ask(&client(&server.url("/"), &next), &next).0.unwrap_err();
        assert_eq!(refusal.kind(), Kind::Protocol);
        assert!(
            refusal.to_string().contains(&elsewhere.url("/")),
            "{refusal}"
        );
    }
    assert!(elsewhere.seen().is_empty());
}

#[test]
fn a_server_that_does_not_answer_is_out_of_reach_within_the_limit() {
    let replies: [Named; 6] = [
        ("silent", || Reply::Silent),
        ("hangs up", || Reply::raw("")),
        ("reset", || Reply::Reset),
        ("a byte now and then", || {
            Reply::Drip(b"HTTP/1.1 200 OK\r\nX: ".to_vec())
        }),
        ("half a status line", || Reply::raw("HTTP/1.1 20")),
        ("a no that breaks off", || {
            Reply::raw("HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\nhalf")
        }),
    ];
    for (what, reply) in replies {
        let server = Server::start(Tls::None, move |_| reply());
        let next = Next::default();
        let begin = Instant::now();
        let (outcome, log) = ask(&client(&server.url("/"), &next), &next);
        assert!(begin.elapsed() < Duration::from_secs(5), "{what}");
        let refusal = outcome.unwrap_err();
        let expected = match what {
            "a no that breaks off" => Kind::Denied,
            _ => Kind::Unreachable,
        };
        assert_eq!(refusal.kind(), expected, "{what}: {refusal}");
        assert_eq!(log, ["recorded held=false"], "{what}");
    }
}

#[test]
fn garbage_is_not_an_answer() {
    for bytes in [
        "SSH-2.0-OpenSSH_9.2p1\r\n",
        "HTTP/1.1 200OK\u{0}\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\n\n",
        "200 OK\r\n\r\n",
    ] {
        let server = Server::start(Tls::None, move |_| Reply::raw(bytes));
        let next = Next::default();
        let refusal = ask(&client(&server.url("/"), &next), &next).0.unwrap_err();
        assert!(
            matches!(refusal.kind(), Kind::Protocol | Kind::Unreachable),
            "{bytes:?}: {refusal}"
        );
        assert!(
            next.log.borrow().iter().all(|l| l != "next asked"),
            "{bytes:?}"
        );
    }
    let huge = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let server = Server::start(Tls::None, move |_| Reply::raw(huge.clone()));
    let next = Next::default();
    let refusal = ask(&client(&server.url("/"), &next), &next).0.unwrap_err();
    assert_eq!(refusal.kind(), Kind::Protocol, "{refusal}");
}

/// Without end, in every place where an answer may go on: no yes, no long wait, no flood in a terminal.
#[test]
fn a_server_that_never_comes_to_an_end_gets_no_reboot_and_no_patience() {
    let many = |line: &str| format!("HTTP/1.1 500 No\r\n{}\r\n", line.repeat(20_000));
    let replies: Vec<(&str, Reply)> = vec![
        (
            "interim answers",
            Reply::Again("HTTP/1.1 100 Continue\r\n\r\n"),
        ),
        (
            "early hints",
            Reply::Again("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
        ),
        ("headers", Reply::Again("HTTP/1.1 500 No\r\nX: y\r\n")),
        ("one line", Reply::Again("HTTP/1.1 500 No")),
        ("blank lines", Reply::Again("\r\n")),
        ("zeros", Reply::Again("\0\0\0\0\0\0\0\0")),
        ("20000 headers", Reply::raw(many("X-Header: y\r\n"))),
        (
            "a header now and then",
            Reply::Drip(b"HTTP/1.1 500 No\r\nX-Header: y\r\nX-".to_vec()),
        ),
        (
            "a no, and a byte of its body now and then",
            Reply::Drip(b"HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\nbusy\x1b[2J".to_vec()),
        ),
        (
            "chunks that are none",
            Reply::raw(
                "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx\r\n",
            ),
        ),
        (
            "two lengths",
            Reply::raw("HTTP/1.1 500 No\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\nx"),
        ),
        (
            "a length that is none",
            Reply::raw("HTTP/1.1 500 No\r\nContent-Length: -5\r\n\r\nx"),
        ),
        (
            "another protocol from here on",
            Reply::raw(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
            ),
        ),
        (
            "a redirect with a terminal's commands",
            Reply::raw(
                "HTTP/1.1 307 Moved\r\nLocation: http://x/\x1b]0;owned\x07\r\nContent-Length: 0\r\n\r\n",
            ),
        ),
    ];
    for (what, reply) in replies {
        let server = Server::start(Tls::None, move |_| reply.clone());
        let next = Next::default();
        let begin = Instant::now();
        let (outcome, log) = ask(&client(&server.url("/"), &next), &next);
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "{what}: {:?}",
            begin.elapsed()
        );
        let text = outcome.expect_err(what).to_string();
        assert!(text.len() < 1500, "{what}: {} bytes", text.len());
        assert!(!text.contains(char::is_control), "{what}: {text:?}");
        assert_eq!(log, ["recorded held=false"], "{what}");
    }
}

/// Given back is only what the server says it has taken back.
#[test]
fn a_slot_is_not_given_back_by_anything_but_200() {
    let replies: [Named; 6] = [
        ("no", || Reply::status(500, "")),
        ("accepted", || Reply::status(202, "")),
        ("redirect", || {
            Reply::raw("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
        }),
        ("garbage", || Reply::raw("SSH-2.0-OpenSSH_9.2p1\r\n")),
        ("hangs up", || Reply::raw("")),
        ("never ends", || {
            Reply::Again("HTTP/1.1 100 Continue\r\n\r\n")
        }),
    ];
    for (what, reply) in replies {
        let server = Server::start(Tls::None, move |_| reply());
        let next = Next::default();
        assert!(client(&server.url("/"), &next).release().is_err(), "{what}");
    }
}

/// A port that takes the connection and is silent, or hangs up, before there is any TLS.
#[test]
fn a_handshake_that_never_comes_is_no_answer_in_time() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let begin = Instant::now();
    let next = Next::default();
    let refusal = ask(&client(&url, &next), &next).0.unwrap_err();
    assert_eq!(refusal.kind(), Kind::Unreachable, "{refusal}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    let hangs_up = std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            drop(stream);
        }
    });
    // The one above is still in the queue.
    let refusal = ask(&client(&url, &next), &next).0.unwrap_err();
    assert!(
        matches!(refusal.kind(), Kind::Unreachable | Kind::Protocol),
        "{refusal}"
    );
    hangs_up.join().unwrap();
    assert!(next.log.borrow().iter().all(|line| line != "next asked"));
}

#[test]
fn a_huge_body_is_neither_read_nor_kept() {
    for status in [200, 500] {
        let server = Server::start(Tls::None, move |_| Reply::Endless(status));
        let next = Next::default();
        let outcome = ask(&client(&server.url("/"), &next), &next).0;
        assert_eq!(outcome.is_ok(), status == 200, "{outcome:?}");
        assert!(outcome.map_or_else(|r| r.to_string().len() < 1000, |()| true));
    }
}

#[test]
fn nobody_there_and_a_name_that_nobody_knows() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for url in [
        format!("http://127.0.0.1:{port}/"),
        "http://no-such-host.invalid:9090/".to_owned(),
    ] {
        let next = Next::default();
        let refusal = ask(&client(&url, &next), &next).0.unwrap_err();
        assert_eq!(refusal.kind(), Kind::Unreachable, "{refusal}");
        assert!(
            refusal
                .to_string()
                .contains("nothing reboots until it answers"),
            "{refusal}"
        );
    }
}

#[test]
fn a_lock_that_cannot_be_recorded_is_not_asked_for() {
    let server = Server::start(Tls::None, |_| Reply::status(200, ""));
    let next = Next::default();
    let mut book = Book {
        log: next.log.clone(),
        full: true,
    };
    let refusal = client(&server.url("/"), &next)
        .request(&request(), &mut book)
        .unwrap_err();
    assert_eq!(refusal.kind(), Kind::Record);
    assert!(server.seen().is_empty());
}

#[test]
fn the_slot_stays_when_the_next_coordinator_says_no() {
    let server = Server::start(Tls::None, |_| Reply::status(200, ""));
    let next = Next {
        refuses: true,
        ..Next::default()
    };
    let lock = client(&server.url("/"), &next);
    let (outcome, log) = ask(&lock, &next);
    assert_eq!(outcome.unwrap_err().kind(), Kind::Busy);
    assert_eq!(
        log,
        ["recorded held=false", "recorded held=true", "next asked"]
    );
    lock.cancel().unwrap();
    assert_eq!(server.seen().len(), 1, "not given back by itself");
}

fn trust(ca: &str) -> Trust {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ca.pem"), ca).unwrap();
    Trust::read(&Root::open(dir.path()).unwrap(), Some("/ca.pem")).unwrap()
}

#[test]
fn https_needs_a_certificate_of_a_trusted_authority_for_this_host_and_time() {
    const CA: &str = include_str!("tls/ca.pem");
    for (tls, trusted, says) in [
        (Tls::Good, true, None),
        (Tls::Good, false, Some("authority that is not trusted here")),
        (
            Tls::OtherName,
            true,
            Some("another name than the URL's host"),
        ),
        (Tls::Expired, true, Some("has expired")),
        (Tls::None, true, Some("does not speak TLS there")),
    ] {
        let server = Server::start(tls, |_| Reply::status(200, ""));
        let next = Next::default();
        let http = http(if trusted { trust(CA) } else { Trust::default() });
        let url = server.url("/").replace("http://", "https://");
        let lock = FleetLock::new(http, lock(&url), Box::new(next.clone()));
        let outcome = ask(&lock, &next).0;
        match says {
            None => outcome.unwrap(),
            Some(says) => {
                let refusal = outcome.unwrap_err();
                assert!(refusal.to_string().contains(says), "{tls:?}: {refusal}");
                assert_eq!(refusal.kind(), Kind::Protocol, "{tls:?}");
            }
        }
    }
}

#[test]
fn a_certificate_file_without_a_certificate_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    std::fs::write(dir.path().join("ca.pem"), include_str!("tls/good.key")).unwrap();
    let error = Trust::read(&root, Some("/ca.pem")).unwrap_err();
    assert!(error.contains("no certificate"), "{error}");
    assert!(
        Trust::read(&root, Some("/gone.pem"))
            .unwrap_err()
            .contains("gone.pem")
    );
}

#[test]
fn the_proxy_of_the_environment_is_asked_to_connect() {
    let proxy = Server::start(Tls::None, |request| {
        assert!(
            request.line.starts_with("CONNECT lock.example:9090 "),
            "{}",
            request.line
        );
        Reply::raw("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    });
    let at = proxy.url("/");
    let proxies = Proxies::read(move |name| (name == "http_proxy").then(|| at.clone()));
    let next = Next::default();
    let http = http(Trust::default()).with_proxies(proxies);
    let lock = FleetLock::new(
        http,
        lock("http://lock.example:9090/"),
        Box::new(next.clone()),
    );
    let refusal = ask(&lock, &next).0.unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("through the proxy of the environment"),
        "{refusal}"
    );
    assert_eq!(proxy.seen().len(), 1);
}
