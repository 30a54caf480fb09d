//! The one method that does something: polkit's yes, and nothing else, starts the unit.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use zbus::export::futures_core::Stream;
use zbus::message::Type;
use zbus::{Connection, OwnedVariant, connection};

use crate::system_bus::{self, SystemBus};

/// How polkit takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Polkit {
    Yes,
    No,
    Challenge,
    Silent,
    Garbage,
    Failing,
}

/// polkit and systemd in one; what they were asked.
fn others(bus: &SystemBus, polkit: &Arc<Mutex<Polkit>>) -> Arc<Mutex<Vec<String>>> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (address, seen) = (bus.address.clone(), Arc::clone(&log));
    let polkit = Arc::clone(polkit);
    let (ready, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        zbus::block_on(async {
            let mut messages = connection::Builder::address(address.as_str())
                .name("org.freedesktop.PolicyKit1")
                .name("org.freedesktop.systemd1")
                .build_message_stream()
                .await
                .unwrap();
            ready.send(()).unwrap();
            let connection = Connection::from(&messages);
            while let Some(Ok(call)) = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await {
                if call.message_type() != Type::MethodCall {
                    continue;
                }
                let header = call.header();
                if header.member().unwrap().as_str() == "StartUnit" {
                    let (unit, mode): (String, String) = call.body().deserialize().unwrap();
                    seen.lock().unwrap().push(format!("start {unit} {mode}"));
                    let job =
                        zbus::ObjectPath::try_from("/org/freedesktop/systemd1/job/1").unwrap();
                    connection.reply(&header, &job).await.unwrap();
                    continue;
                }
                type Asked = (
                    (String, HashMap<String, OwnedVariant>),
                    String,
                    HashMap<String, String>,
                    u32,
                    String,
                );
                let (subject, action, _, flags, _): Asked = call.body().deserialize().unwrap();
                let who: String = subject.1["name"].try_clone().unwrap().try_into().unwrap();
                assert!(
                    who.starts_with(':'),
                    "{who} is no name that the bus has given"
                );
                seen.lock()
                    .unwrap()
                    .push(format!("{} {action} {flags}", subject.0));
                let none: HashMap<&str, &str> = HashMap::new();
                let mood = *polkit.lock().unwrap();
                match mood {
                    Polkit::Yes => connection
                        .reply(&header, &((true, false, none),))
                        .await
                        .unwrap(),
                    Polkit::No => connection
                        .reply(&header, &((false, false, none),))
                        .await
                        .unwrap(),
                    Polkit::Challenge => connection
                        .reply(&header, &((false, true, none),))
                        .await
                        .unwrap(),
                    Polkit::Garbage => connection.reply(&header, &"yes").await.unwrap(),
                    Polkit::Failing => connection
                        .reply_error(
                            &header,
                            "org.freedesktop.PolicyKit1.Error.Failed",
                            &"no subject",
                        )
                        .await
                        .unwrap(),
                    Polkit::Silent => {}
                }
            }
        });
    });
    wait.recv_timeout(Duration::from_secs(10)).unwrap();
    log
}

#[test]
fn without_polkit_nobody_may() {
    let Some(bus) = SystemBus::start(5) else {
        return;
    };
    let said = bus.reconcile().unwrap_err();
    assert!(
        said.contains("AccessDenied: polkit did not allow it: "),
        "{said}"
    );
}

#[test]
fn polkit_decides_and_is_asked_about_the_caller() {
    const ASKED: &str = "system-bus-name org.gdr_agent.Agent1.reconcile 0";
    let Some(bus) = SystemBus::start(60) else {
        return;
    };
    let mood = Arc::new(Mutex::new(Polkit::Yes));
    let log = others(&bus, &mood);
    for polkit in [
        Polkit::Yes,
        Polkit::No,
        Polkit::Challenge,
        Polkit::Garbage,
        Polkit::Failing,
        Polkit::Silent,
    ] {
        *mood.lock().unwrap() = polkit;
        log.lock().unwrap().clear();
        if polkit == Polkit::Yes {
            bus.reconcile().unwrap();
            let wanted = [ASKED, "start gdr-agent-reconcile.service replace"];
            assert_eq!(*log.lock().unwrap(), wanted);
            continue;
        }
        let begun = Instant::now();
        let said = bus.reconcile().unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(25), "{polkit:?}");
        assert!(said.contains("AccessDenied: polkit"), "{polkit:?}: {said}");
        assert_eq!(
            *log.lock().unwrap(),
            [ASKED],
            "{polkit:?}: nothing is started"
        );
        assert_eq!(
            bus.property("State"),
            "COMMITTED",
            "{polkit:?}: and it goes on"
        );
    }
}

/// polkit and a system bus as the distribution ships them, in mounts of their own, with a rule of the administrator.
const REAL: &str = r#"
set -eu
agent=$1 node=$2 packaging=$3 work=$4
mount -t tmpfs -o mode=755 tmpfs "$work"
mkdir "$work/actions" "$work/rules" "$work/system.d"
cp "$packaging/org.gdr_agent.Agent1.policy" "$work/actions"
cp /usr/share/dbus-1/system.d/org.freedesktop.PolicyKit1.conf "$packaging/org.gdr_agent.Agent1.conf" "$work/system.d"
cat > "$work/rules/50-gdr-agent.rules" << 'TEXT'
polkit.addRule(function (action, subject) {
  if (action.id == "org.gdr_agent.Agent1.reconcile" && subject.user == "daemon")
    return polkit.Result.YES;
});
TEXT
mount --bind "$work/actions" /usr/share/polkit-1/actions
mount --bind "$work/rules" /etc/polkit-1/rules.d
mount --bind "$work/system.d" /usr/share/dbus-1/system.d
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/dbus
until_there() {
  tries=0
  until "$@" > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 300 ]
    sleep 0.1
  done
}
owned() {
  busctl call org.freedesktop.DBus / org.freedesktop.DBus GetNameOwner s "$1"
}
dbus-daemon --system --nofork --nopidfile --nosyslog 2> /dev/null &
until_there busctl list
/usr/lib/polkit-1/polkitd > /dev/null 2>&1 &
"$agent" --root "$node" boot bus --idle 300 &
until_there owned org.freedesktop.PolicyKit1
until_there owned org.gdr_agent.Agent1
for user in 65534 1; do
  setpriv --reuid=$user --regid=$user --clear-groups \
    dbus-send --system --print-reply --dest=org.gdr_agent.Agent1 /org/gdr_agent/Agent1 \
    org.gdr_agent.Agent1.Reconcile 2>&1 | sed "s/^/$user: /"
done
"#;

#[test]
fn the_real_polkit_says_no_until_a_rule_says_yes() {
    let Some(bus) = SystemBus::start(5) else {
        return;
    };
    if !std::path::Path::new("/usr/lib/polkit-1/polkitd").exists() {
        assert!(std::env::var_os("CI").is_none(), "polkitd is missing");
        println!("SKIPPED: there is no polkitd; install the package polkitd");
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("unshare")
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            REAL,
            "sh",
        ])
        .arg(system_bus::binary())
        .arg(bus.node())
        .arg(system_bus::packaging(""))
        .arg(work.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") || said.contains("Operation not permitted") {
        assert!(std::env::var_os("CI").is_none(), "{said}");
        println!("SKIPPED: no mounts of its own: {said}");
        return;
    }
    let lines = String::from_utf8(output.stdout).unwrap();
    let of = |user: &str| {
        let line = lines.lines().find_map(|line| line.strip_prefix(user));
        line.unwrap_or_else(|| panic!("{lines}\n{said}")).to_owned()
    };
    assert!(
        of("65534: ").contains("AccessDenied: polkit's action"),
        "{lines}"
    );
    // There is no systemd on that bus.
    assert!(
        of("1: ").contains("gdr-agent-reconcile.service was not started"),
        "{lines}"
    );
}
