//! From a call to its answer: what is asked, of whom, with which arguments.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use zbus::message::Message;

use super::{NAME, StatusJson};
use crate::apply::boot_id;
use crate::journal::Journal;
use crate::machine::State;
use crate::nccl_log::harmless;
use crate::sys::{Root, clock};

/// The one object.
const PATH: &str = "/org/gdr_agent/Agent1";

/// What `gdr-agent-reconcile.service` writes every minute.
const REPORT: &str = "/run/gdr-agent/metrics.prom";
/// Far more than a node with hundreds of ports has.
const REPORT_LIMIT: usize = 1 << 20;

const XML: &str = include_str!("introspect.xml");

const PROPERTIES: [&str; 5] = ["Version", "State", "TransactionId", "BootId", "LastReport"];

/// How long what was read is good for: a caller that floods this does not have everything read anew for each call.
const FRESH: Duration = Duration::from_millis(20);

/// What was read, each part when it was first asked for; or why it is not known.
pub(super) struct Known<'s> {
    root: &'s Root,
    status: StatusJson<'s>,
    until: Instant,
    json: OnceCell<Result<String, String>>,
    last: OnceCell<Result<(State, String), String>>,
    report: OnceCell<Result<String, String>>,
}

impl<'s> Known<'s> {
    /// Nothing is read yet.
    pub(super) fn new(root: &'s Root, status: StatusJson<'s>) -> Self {
        Self {
            root,
            status,
            until: clock::now() + FRESH,
            json: OnceCell::new(),
            last: OnceCell::new(),
            report: OnceCell::new(),
        }
    }

    /// Forgets what is not fresh any more.
    pub(super) fn refresh(&mut self) {
        if clock::now() >= self.until {
            *self = Self::new(self.root, self.status);
        }
    }

    fn json(&self) -> Result<String, String> {
        let read = || (self.status)(self.root).map_err(|why| harmless(why.as_bytes()));
        self.json.get_or_init(read).clone()
    }

    fn last(&self) -> &Result<(State, String), String> {
        self.last.get_or_init(|| {
            let journal = Journal::open(self.root);
            let journal = journal.map_err(|e| harmless(e.to_string().as_bytes()))?;
            let last = journal.last();
            Ok(last.map_or((State::Idle, String::new()), |record| {
                (record.txn.state, record.txn.id.to_string())
            }))
        })
    }

    fn report(&self) -> Result<String, String> {
        self.report.get_or_init(|| report(self.root)).clone()
    }

    /// The value, or why it is not known. Empty where there is nothing: no transaction, no report yet.
    fn value(&self, name: &str) -> Result<String, String> {
        Ok(match name {
            "Version" => env!("CARGO_PKG_VERSION").to_owned(),
            "State" => self.last().clone()?.0.name().to_owned(),
            "TransactionId" => self.last().clone()?.1,
            "BootId" => boot_id(self.root),
            _ => self.report()?,
        })
    }
}

/// The answer to a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A string.
    Text(String),
    /// One property's value.
    Property(String),
    /// All of them.
    Properties(Vec<(&'static str, String)>),
    /// Nothing: it was done.
    Nothing,
    /// Whether that may be done is for others to say.
    Reconcile,
    /// An error, by its name.
    Error(&'static str, String),
}

fn error(name: &'static str, text: impl Into<String>) -> Answer {
    Answer::Error(name, text.into())
}

const UNREADABLE: &str = "org.gdr_agent.Agent1.Error.Unreadable";
const UNKNOWN_METHOD: &str = "org.freedesktop.DBus.Error.UnknownMethod";
const UNKNOWN_PROPERTY: &str = "org.freedesktop.DBus.Error.UnknownProperty";
const INVALID: &str = "org.freedesktop.DBus.Error.InvalidArgs";

/// The answer, as far as it needs nobody else. Arguments are looked at only where the method has some: how long
/// they are is the bus's limit to set.
pub(super) fn of(known: &Known<'_>, call: &Message) -> Answer {
    let header = call.header();
    let path = header.path().map_or("", |path| path.as_str());
    let interface = header.interface().map(zbus::names::InterfaceName::as_str);
    let Some(member) = header.member().map(zbus::names::MemberName::as_str) else {
        return error(UNKNOWN_METHOD, "no method is named");
    };
    if member == "Introspect"
        && interface.is_none_or(|i| i == "org.freedesktop.DBus.Introspectable")
    {
        return introspect(path);
    }
    if member == "Ping" && interface.is_none_or(|i| i == "org.freedesktop.DBus.Peer") {
        return Answer::Nothing;
    }
    if path != PATH {
        return error(
            "org.freedesktop.DBus.Error.UnknownObject",
            format!("the object is {PATH}"),
        );
    }
    let ours = interface.is_none_or(|i| i == NAME);
    let properties = interface.is_none_or(|i| i == "org.freedesktop.DBus.Properties");
    match member {
        "Status" | "Reconcile" if ours && !call.body().is_empty() => {
            error(INVALID, format!("{member} takes no argument"))
        }
        "Status" if ours => match known.json() {
            Ok(json) => Answer::Text(json),
            Err(why) => error(UNREADABLE, why),
        },
        "Reconcile" if ours => Answer::Reconcile,
        "Get" if properties => match call.body().deserialize::<(&str, &str)>() {
            Ok((NAME | "", name)) => get(known, name),
            Ok(_) => error(INVALID, format!("only {NAME} has properties")),
            Err(_) => error(INVALID, "Get takes an interface and a property"),
        },
        "GetAll" if properties => match call.body().deserialize::<&str>() {
            Ok(NAME | "") => get_all(known),
            Ok(_) => error(INVALID, format!("only {NAME} has properties")),
            Err(_) => error(INVALID, "GetAll takes an interface"),
        },
        "Set" if properties => error(
            "org.freedesktop.DBus.Error.PropertyReadOnly",
            "nothing can be set here",
        ),
        _ => error(
            UNKNOWN_METHOD,
            "there is no such method; Introspect has them",
        ),
    }
}

fn introspect(path: &str) -> Answer {
    if path == PATH {
        return Answer::Text(XML.to_owned());
    }
    // The way there, for whoever walks down from the root.
    let below = match path {
        "/" => "org",
        "/org" => "gdr_agent",
        "/org/gdr_agent" => "Agent1",
        _ => return Answer::Text("<node/>".to_owned()),
    };
    Answer::Text(format!("<node><node name=\"{below}\"/></node>"))
}

fn get(known: &Known<'_>, name: &str) -> Answer {
    let Some(name) = PROPERTIES.into_iter().find(|known| *known == name) else {
        return error(
            UNKNOWN_PROPERTY,
            format!("there are {}", PROPERTIES.join(", ")),
        );
    };
    match known.value(name) {
        Ok(value) => Answer::Property(value),
        Err(why) => error(UNREADABLE, why),
    }
}

/// A property that cannot be read takes none of the others with it: it is missing.
fn get_all(known: &Known<'_>) -> Answer {
    let all = PROPERTIES
        .into_iter()
        .filter_map(|name| Some((name, known.value(name).ok()?)));
    Answer::Properties(all.collect())
}

fn report(root: &Root) -> Result<String, String> {
    let bytes = root
        .read_if_there(REPORT)
        .map_err(|e| harmless(e.to_string().as_bytes()))?;
    match bytes {
        Some(bytes) if bytes.len() > REPORT_LIMIT => Err(format!("{REPORT} is larger than 1 MiB")),
        // A string on the bus holds no NUL, and ends the connection of whoever sends one.
        Some(bytes) => Ok(String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}")),
        None => Ok(String::new()),
    }
}
