//! rebootmgr in its three versions, each with its own faults: 1 and 2 on a message bus, 3 behind a varlink socket.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    missing_docs
)]

mod reboot_support;

use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gdr_agent::reboot::{Bus, Coordinator, Kind, Rebootmgr, Refusal, Request, Standing};
use reboot_support::daemon::Daemon;
use serde_json::{Value, json};
use zbus::export::futures_core::Stream;
use zbus::message::{Message, Type};
use zbus::{Connection, connection};

const AGE: Duration = Duration::from_secs(1000);
const LIMIT: Duration = Duration::from_secs(5);

/// rebootmgrd 1.x (`old`) or 2.x.
#[derive(Debug, Clone)]
struct Daemon12 {
    old: bool,
    strategy: u32,
    temp_off: bool,
    /// What a request becomes: 1 requested, 2 waiting for the window.
    becomes: u32,
    status: u32,
    log: Vec<String>,
}

impl Daemon12 {
    fn new(old: bool, strategy: u32) -> Self {
        Self {
            old,
            strategy,
            temp_off: false,
            becomes: 1,
            status: 0,
            log: Vec::new(),
        }
    }

    fn off(&self) -> bool {
        self.strategy == if self.old { 5 } else { 4 }
    }

    fn handle(&mut self, member: &str, order: Option<u32>) -> Result<Option<Answer>, ()> {
        self.log.push(member.to_owned());
        Ok(Some(match member {
            "Reboot" => {
                // Always success: off, an unknown order and a pending request are passed over in silence.
                let known = 1..=if self.old { 3 } else { 6 };
                let order = order.unwrap();
                if !self.off() && known.contains(&order) && self.status == 0 {
                    self.status = self.becomes;
                }
                return Ok(None);
            }
            "Cancel" => {
                self.status = 0;
                return Ok(None);
            }
            // While it is off for a time, a request is kept and not shown.
            "Status" => Answer::Number(if self.temp_off { 0 } else { self.status }),
            "GetStrategy" => Answer::Number(self.strategy),
            "GetLockGroup" if self.old => Answer::Text("default"),
            // The interface says TemporaryOn, the daemon knows TemporaryON, and that one switches off.
            "TemporaryON" | "TemporaryOff" => {
                self.temp_off = true;
                return Ok(None);
            }
            _ => return Err(()),
        }))
    }
}

enum Answer {
    Number(u32),
    Text(&'static str),
}

type Shared = Arc<Mutex<Daemon12>>;

/// Serves on a bus until the test ends.
fn join(address: &str, daemon: Daemon12) -> Shared {
    let shared = Arc::new(Mutex::new(daemon));
    let (served, address) = (shared.clone(), address.to_owned());
    let (ready, wait) = std::sync::mpsc::channel();
    thread::spawn(move || {
        zbus::block_on(async {
            let mut messages = connection::Builder::address(address.as_str())
                .name("org.opensuse.RebootMgr")
                .build_message_stream()
                .await
                .unwrap();
            ready.send(()).unwrap();
            let connection = Connection::from(&messages);
            while let Some(Ok(call)) = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await {
                if call.message_type() == Type::MethodCall {
                    answer(&connection, &call, &served).await;
                }
            }
        });
    });
    wait.recv_timeout(Duration::from_secs(10))
        .expect("the daemon gets its name on the bus");
    shared
}

async fn answer(connection: &Connection, call: &Message, daemon: &Shared) {
    let header = call.header();
    let member = header.member().unwrap().to_string();
    let order = call.body().deserialize::<u32>().ok();
    let answer = daemon.lock().unwrap().handle(&member, order);
    match answer {
        Ok(None) => connection.reply(&header, &()).await.unwrap(),
        Ok(Some(Answer::Number(n))) => connection.reply(&header, &n).await.unwrap(),
        Ok(Some(Answer::Text(text))) => connection.reply(&header, &text).await.unwrap(),
        Err(()) => connection
            .reply_error(
                &header,
                "org.freedesktop.DBus.Error.UnknownMethod",
                &"unknown method".to_owned(),
            )
            .await
            .unwrap(),
    }
}

fn request() -> Request {
    Request {
        reason: "trial".to_owned(),
        respect_inhibitors: true,
        back: false,
    }
}

fn on(bus: Bus) -> Rebootmgr {
    Rebootmgr::new(bus).with_socket("/nonexistent/rebootmgrd.socket", LIMIT)
}

/// Asks, and says whether the grant was recorded.
fn ask(rebootmgr: &Rebootmgr) -> (Result<(), Refusal>, bool) {
    let mut recorded = false;
    let outcome = rebootmgr.request(&request(), &mut || {
        recorded = true;
        Ok(())
    });
    (outcome, recorded)
}

#[test]
fn a_request_that_shows_is_granted_and_followed() {
    let Some(bus) = Daemon::start() else { return };
    for (old, strategy) in [
        (true, 1),
        (true, 2),
        (true, 3),
        (true, 4),
        (false, 1),
        (false, 2),
        (false, 3),
    ] {
        let Some(bus) = Daemon::start() else { return };
        let mut daemon = Daemon12::new(old, strategy);
        daemon.becomes = if strategy == 3 { 2 } else { 1 };
        let shared = join(&bus.address, daemon);
        let rebootmgr = on(bus.bus());
        assert_eq!(rebootmgr.can(), Ok(()), "old={old} strategy={strategy}");
        assert_eq!(
            ask(&rebootmgr),
            (Ok(()), true),
            "old={old} strategy={strategy}"
        );
        assert!(matches!(rebootmgr.poll(AGE), Ok(Standing::Coming(_))));
        // A daemon that is started again knows of nothing.
        shared.lock().unwrap().status = 0;
        assert!(matches!(rebootmgr.poll(AGE), Ok(Standing::Gone(_))));
        assert_eq!(rebootmgr.cancel(), Ok(()));
    }
    drop(bus);
}

#[test]
fn off_is_told_apart_by_version_and_explained() {
    for (old, strategy) in [(true, 5), (false, 4)] {
        let Some(bus) = Daemon::start() else { return };
        let shared = join(&bus.address, Daemon12::new(old, strategy));
        let (outcome, recorded) = ask(&on(bus.bus()));
        let refusal = outcome.unwrap_err();
        assert_eq!((refusal.kind(), recorded), (Kind::Denied, false));
        assert!(
            refusal.to_string().contains("rebootmgrctl set-strategy"),
            "{refusal}"
        );
        assert!(!shared.lock().unwrap().log.contains(&"Reboot".to_owned()));
    }
}

#[test]
fn somebody_elses_request_is_not_taken_over() {
    let Some(bus) = Daemon::start() else { return };
    let mut daemon = Daemon12::new(false, 3);
    daemon.status = 2;
    let shared = join(&bus.address, daemon);
    let (outcome, recorded) = ask(&on(bus.bus()));
    assert_eq!((outcome.unwrap_err().kind(), recorded), (Kind::Busy, false));
    assert_eq!(shared.lock().unwrap().status, 2);
}

#[test]
fn a_yes_that_shows_nothing_is_a_no_and_nothing_is_left_behind() {
    let Some(bus) = Daemon::start() else { return };
    let mut daemon = Daemon12::new(true, 1);
    daemon.temp_off = true;
    let shared = join(&bus.address, daemon);
    let refusal = ask(&on(bus.bus())).0.unwrap_err();
    assert_eq!(refusal.kind(), Kind::Denied);
    assert!(
        refusal.to_string().contains("shows no request"),
        "{refusal}"
    );
    let daemon = shared.lock().unwrap();
    assert_eq!(
        (daemon.status, daemon.log.last().unwrap().as_str()),
        (0, "Cancel")
    );
}

#[test]
fn a_record_that_fails_asks_for_nothing() {
    let Some(bus) = Daemon::start() else { return };
    let shared = join(&bus.address, Daemon12::new(false, 1));
    let refusal = on(bus.bus())
        .request(&request(), &mut || Err("disk full".to_owned()))
        .unwrap_err();
    assert_eq!(refusal.kind(), Kind::Record);
    assert_eq!(shared.lock().unwrap().status, 0);
}

#[test]
fn neither_bus_nor_socket_nor_daemon_is_out_of_reach() {
    let refusal = on(Bus::at("unix:path=/nonexistent/bus")).can().unwrap_err();
    assert_eq!(refusal.kind(), Kind::Unreachable);
    assert!(
        refusal.to_string().contains("rebootmgrd.socket"),
        "{refusal}"
    );
    let Some(bus) = Daemon::start() else { return };
    let refusal = on(bus.bus()).can().unwrap_err();
    assert_eq!(refusal.kind(), Kind::Unreachable);
    assert!(
        refusal.to_string().contains("enable --now rebootmgr"),
        "{refusal}"
    );
}

#[test]
fn numbers_that_are_not_known_are_said_to_be() {
    for (strategy, status) in [(9, 0), (0, 0), (1, 7), (5, 0)] {
        let Some(bus) = Daemon::start() else { return };
        let mut daemon = Daemon12::new(false, strategy);
        daemon.status = status;
        join(&bus.address, daemon);
        assert_eq!(
            on(bus.bus()).can().unwrap_err().kind(),
            Kind::Protocol,
            "{strategy} {status}"
        );
    }
}

/// rebootmgrd 3.x.
#[derive(Debug, Clone, Default)]
struct Daemon3 {
    strategy: u64,
    status: u64,
    time: Option<&'static str>,
    disabled: bool,
    log: Vec<String>,
}

impl Daemon3 {
    fn handle(&mut self, call: &Value) -> Value {
        let method = call["method"].as_str().unwrap().to_owned();
        let name = method.strip_prefix("org.openSUSE.rebootmgr.").unwrap();
        self.log.push(name.to_owned());
        let error = |name: &str| json!({ "error": format!("org.openSUSE.rebootmgr.{name}"), "parameters": {} });
        match name {
            "FullStatus" => {
                let mut report =
                    json!({ "RebootStatus": self.status, "RebootStrategy": self.strategy });
                if let Some(time) = self.time {
                    report["RebootTime"] = time.into();
                    report["RequestedMethod"] = 1.into();
                }
                if self.disabled {
                    report["RebootDisabled"] = true.into();
                }
                json!({ "parameters": report })
            }
            "Reboot" if call["parameters"]["Reboot"] != 1 => error("InvalidParameter"),
            "Reboot" if self.status != 0 => error("AlreadyInProgress"),
            "Reboot" => {
                self.status = 2;
                self.time = Some("2026-12-01 03:30:00");
                json!({ "parameters": { "Method": 1, "Scheduled": "2026-12-01 03:30:00" } })
            }
            "Cancel" if self.status == 0 => error("NoRebootScheduled"),
            "Cancel" => {
                (self.status, self.time) = (0, None);
                json!({})
            }
            _ => {
                json!({ "error": "org.varlink.service.MethodNotFound", "parameters": { "method": method } })
            }
        }
    }
}

struct Varlink {
    socket: PathBuf,
    daemon: Arc<Mutex<Daemon3>>,
    _dir: tempfile::TempDir,
}

impl Varlink {
    fn start(daemon: Daemon3) -> Self {
        let daemon = Arc::new(Mutex::new(daemon));
        let served = daemon.clone();
        let (socket, dir) = listen(move |call| {
            let mut bytes = served
                .lock()
                .unwrap()
                .handle(&call)
                .to_string()
                .into_bytes();
            bytes.push(0);
            bytes
        });
        Self {
            socket,
            daemon,
            _dir: dir,
        }
    }

    fn rebootmgr(&self) -> Rebootmgr {
        at(&self.socket)
    }
}

fn at(socket: &Path) -> Rebootmgr {
    Rebootmgr::new(Bus::at("unix:path=/nonexistent/bus"))
        .with_socket(socket, Duration::from_millis(500))
}

/// One answer for each call, and then the connection stays open, as varlink wants it.
fn listen(
    answer: impl Fn(Value) -> Vec<u8> + Send + Sync + 'static,
) -> (PathBuf, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("rebootmgrd.socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            thread::spawn(move || {
                let mut call = Vec::new();
                let mut byte = [0];
                while stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    if byte[0] != 0 {
                        call.push(byte[0]);
                        continue;
                    }
                    let value = serde_json::from_slice(&call).unwrap();
                    call.clear();
                    // In two pieces: a message has no length but its zero byte.
                    let bytes = answer(value);
                    let (first, second) = bytes.split_at(bytes.len() / 2);
                    if stream.write_all(first).is_err() {
                        return;
                    }
                    thread::sleep(Duration::from_millis(5));
                    let _ = stream.write_all(second);
                }
            });
        }
    });
    (socket, dir)
}

#[test]
fn version_three_is_asked_over_its_socket() {
    for strategy in [1, 2, 3] {
        let server = Varlink::start(Daemon3 {
            strategy,
            ..Daemon3::default()
        });
        let rebootmgr = server.rebootmgr();
        assert_eq!(rebootmgr.can(), Ok(()));
        assert_eq!(ask(&rebootmgr), (Ok(()), true));
        assert_eq!(
            rebootmgr.poll(AGE),
            Ok(Standing::Coming(
                "rebootmgr reboots at 2026-12-01 03:30:00".to_owned()
            ))
        );
        assert_eq!(rebootmgr.cancel(), Ok(()));
        assert!(matches!(rebootmgr.poll(AGE), Ok(Standing::Gone(_))));
        assert_eq!(rebootmgr.cancel(), Ok(()), "nothing to cancel is no error");
    }
}

#[test]
fn version_three_that_is_off_or_busy_says_so() {
    for (daemon, kind) in [
        (
            Daemon3 {
                strategy: 4,
                ..Daemon3::default()
            },
            Kind::Denied,
        ),
        (
            Daemon3 {
                strategy: 1,
                disabled: true,
                ..Daemon3::default()
            },
            Kind::Denied,
        ),
        (
            Daemon3 {
                strategy: 1,
                status: 2,
                time: Some("soon"),
                ..Daemon3::default()
            },
            Kind::Busy,
        ),
        (
            Daemon3 {
                strategy: 1,
                status: 1,
                ..Daemon3::default()
            },
            Kind::Busy,
        ),
        (
            Daemon3 {
                strategy: 8,
                ..Daemon3::default()
            },
            Kind::Protocol,
        ),
        (
            Daemon3 {
                strategy: 1,
                status: 5,
                ..Daemon3::default()
            },
            Kind::Protocol,
        ),
    ] {
        let server = Varlink::start(daemon.clone());
        let (outcome, recorded) = ask(&server.rebootmgr());
        assert_eq!(
            (outcome.unwrap_err().kind(), recorded),
            (kind, false),
            "{daemon:?}"
        );
    }
}

#[test]
fn a_request_that_got_stuck_while_it_was_off_is_cleared_and_asked_again() {
    let server = Varlink::start(Daemon3 {
        strategy: 1,
        status: 2,
        disabled: true,
        ..Daemon3::default()
    });
    let rebootmgr = server.rebootmgr();
    assert!(
        matches!(rebootmgr.poll(AGE), Ok(Standing::Gone(_))),
        "its timer was dropped"
    );
    server.daemon.lock().unwrap().disabled = false;
    assert_eq!(ask(&rebootmgr), (Ok(()), true));
    let log = server.daemon.lock().unwrap().log.clone();
    let deeds: Vec<&str> = log
        .iter()
        .map(String::as_str)
        .filter(|m| *m != "FullStatus")
        .collect();
    assert_eq!(deeds, ["Cancel", "Reboot"]);
}

#[test]
fn answers_that_are_none() {
    for (what, bytes, kind) in [
        ("not JSON", b"hello\0".to_vec(), Kind::Protocol),
        (
            "no object",
            b"{\"parameters\": 3}\0".to_vec(),
            Kind::Protocol,
        ),
        (
            "an error that is no text",
            b"{\"error\": 3}\0".to_vec(),
            Kind::Protocol,
        ),
        (
            "no numbers",
            b"{\"parameters\": {\"RebootStatus\": \"0\"}}\0".to_vec(),
            Kind::Protocol,
        ),
        ("no end", vec![b' '; 100], Kind::Unreachable),
        ("too long", vec![b' '; 1 << 20], Kind::Protocol),
        (
            "internal error",
            b"{\"error\": \"org.openSUSE.rebootmgr.InternalError\"}\0".to_vec(),
            Kind::Protocol,
        ),
    ] {
        let (socket, _dir) = listen(move |_| bytes.clone());
        assert_eq!(at(&socket).can().unwrap_err().kind(), kind, "{what}");
    }
}
