//! One D-Bus connection, every step of it with a time limit, every failure sorted by what it means.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use zbus::address::transport::{Transport, Unix, UnixSocket};
use zbus::{
    Address, Connection, DBusError, Message, MessageStream, OwnedVariant, Type, connection,
};
use zruntime::SharedRuntime;

use super::refusal::one_line;

/// Longest wait for a connection or for one answer. A D-Bus client's own default is 25 s, which is
/// too long for a unit that runs at shutdown.
const LIMIT: Duration = Duration::from_secs(10);

/// Where to find a message bus, or a service that is spoken to directly.
#[derive(Debug, Clone)]
pub struct Bus {
    place: Place,
    limit: Duration,
}

#[derive(Debug, Clone)]
enum Place {
    System,
    Address(String),
    Peer(PathBuf),
}

impl Bus {
    /// The system bus: `DBUS_SYSTEM_BUS_ADDRESS` if set, else `/var/run/dbus/system_bus_socket`.
    #[must_use]
    pub fn system() -> Self {
        Self {
            place: Place::System,
            limit: LIMIT,
        }
    }

    /// The bus at a D-Bus address such as `unix:path=/run/dbus/system_bus_socket`.
    #[must_use]
    pub fn at(address: impl Into<String>) -> Self {
        Self {
            place: Place::Address(address.into()),
            limit: LIMIT,
        }
    }

    /// No bus: the service itself listens on this socket, as systemd does on `/run/systemd/private`.
    #[must_use]
    pub fn peer(socket: impl Into<PathBuf>) -> Self {
        Self {
            place: Place::Peer(socket.into()),
            limit: LIMIT,
        }
    }

    /// The longest wait for a connection and for each answer; 10 s unless set.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs one conversation on this thread. Must not be nested: the future may not call this.
    pub(crate) fn run<T>(&self, conversation: impl Future<Output = T>) -> T {
        zbus::block_on(conversation)
    }

    pub(crate) async fn open(&self) -> Result<Session, Fault> {
        let (builder, at) = self.builder()?;
        match within(self.limit, builder.build()).await {
            Some(Ok(connection)) => Ok(Session {
                connection,
                limit: self.limit,
            }),
            other => Err(self.not_open(at, other.and_then(Result::err))),
        }
    }

    /// Takes a name on the bus and gives what is sent there, at most so many messages at once.
    pub(crate) async fn serve(
        &self,
        name: &'static str,
        queued: NonZeroUsize,
    ) -> Result<MessageStream, Fault> {
        let (builder, at) = self.builder()?;
        let opened = async {
            let connection = builder.max_queued(queued).build().await?;
            // Before the name is ours, so that no call for it is missed.
            let messages = MessageStream::from(&connection);
            connection.request_name(name).await?;
            Ok::<_, zbus::Error>(messages)
        };
        match within(self.limit, opened).await {
            Some(Ok(messages)) => Ok(messages),
            other => Err(self.not_open(at, other.and_then(Result::err))),
        }
    }

    fn not_open(&self, at: String, why: Option<zbus::Error>) -> Fault {
        let why = match why {
            Some(zbus::Error::Connection(why, _)) => why.to_string(),
            Some(e) => one_line(&e.to_string()),
            None => format!("no answer within {:?}", self.limit),
        };
        Fault::NoBus { at, why }
    }

    fn builder(&self) -> Result<(connection::Builder<'static>, String), Fault> {
        let (address, peer) = match &self.place {
            Place::System => (Address::system(), false),
            Place::Address(address) => (address.parse(), false),
            Place::Peer(path) => (
                Ok(Transport::Unix(Unix::new(UnixSocket::File(path.clone()))).into()),
                true,
            ),
        };
        let no_bus = |at: String, why: String| Fault::NoBus { at, why };
        let address: Address = address.map_err(|e| {
            let named = match &self.place {
                Place::Address(address) => address.clone(),
                _ => "DBUS_SYSTEM_BUS_ADDRESS".to_owned(),
            };
            no_bus(one_line(&named), one_line(&e.to_string()))
        })?;
        let at = address.to_string();
        let mut builder = connection::Builder::address(address);
        if peer {
            builder = builder.p2p();
        }
        Ok((builder, at))
    }
}

/// The future's outcome, or `None` once the limit has passed.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    match SharedRuntime::current() {
        Ok(runtime) => runtime.timeout(limit, future).await.ok(),
        // No event loop could be made (no file descriptors left): the same fault meets the
        // connection, which reports it at once.
        Err(_) => Some(future.await),
    }
}

/// A service on the bus and the object that is spoken to.
#[derive(Debug)]
pub(crate) struct Service<'a> {
    pub(crate) name: &'static str,
    pub(crate) path: &'a str,
    pub(crate) interface: &'static str,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    limit: Duration,
}

impl Session {
    /// Calls a method and returns the reply.
    pub(crate) async fn call<B>(
        &self,
        to: &Service<'_>,
        member: &'static str,
        body: &B,
    ) -> Result<Message, Fault>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.send(to, to.interface, member, member, body).await
    }

    /// Calls a method and reads the reply as `T`.
    pub(crate) async fn ask<B, T>(
        &self,
        to: &Service<'_>,
        member: &'static str,
        body: &B,
    ) -> Result<T, Fault>
    where
        B: serde::Serialize + zbus::DynamicType,
        T: serde::de::DeserializeOwned + Type,
    {
        let reply = self.call(to, member, body).await?;
        reply
            .body()
            .deserialize()
            .map_err(|e| garbage(member, &reply, &e))
    }

    /// Reads a property as `T`.
    pub(crate) async fn property<T>(&self, to: &Service<'_>, name: &'static str) -> Result<T, Fault>
    where
        T: TryFrom<OwnedVariant>,
        T::Error: std::fmt::Display,
    {
        const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
        let reply = self
            .send(to, PROPERTIES, "Get", name, &(to.interface, name))
            .await?;
        let value: OwnedVariant = reply
            .body()
            .deserialize()
            .map_err(|e| garbage(name, &reply, &e))?;
        T::try_from(value).map_err(|e| garbage(name, &reply, &e))
    }

    async fn send<B>(
        &self,
        to: &Service<'_>,
        interface: &'static str,
        member: &'static str,
        asked: &'static str,
        body: &B,
    ) -> Result<Message, Fault>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let call =
            self.connection
                .call_method(Some(to.name), to.path, Some(interface), member, body);
        match within(self.limit, call).await {
            Some(Ok(reply)) => Ok(reply),
            Some(Err(error)) => Err(sort(asked, error)),
            None => Err(Fault::Silent {
                asked,
                limit: self.limit,
            }),
        }
    }
}

/// What went wrong with a connection or a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// There is nothing to talk to.
    #[error("no system bus at {at}: {why}")]
    NoBus { at: String, why: String },
    /// No answer in time.
    #[error("{asked} was not answered within {limit:?}")]
    Silent {
        asked: &'static str,
        limit: Duration,
    },
    /// The connection broke.
    #[error("the bus connection broke at {asked}: {why}")]
    Lost { asked: &'static str, why: String },
    /// An error reply.
    #[error("{asked} failed with {name}: {text}")]
    Error {
        asked: &'static str,
        name: String,
        text: String,
    },
    /// A reply that is not what the interface says.
    #[error("{asked} was answered with {got}, which cannot be read: {why}")]
    Garbage {
        asked: &'static str,
        got: String,
        why: String,
    },
}

fn garbage(asked: &'static str, reply: &Message, why: &dyn std::fmt::Display) -> Fault {
    Fault::Garbage {
        asked,
        got: format!("D-Bus type \"{}\"", reply.body().signature()),
        why: one_line(&why.to_string()),
    }
}

fn sort(asked: &'static str, error: zbus::Error) -> Fault {
    let reply = |name: String, text: Option<&str>| Fault::Error {
        asked,
        name,
        text: one_line(text.unwrap_or("no text")),
    };
    match error {
        zbus::Error::MethodError(name, text, _) => reply(name.to_string(), text.as_deref()),
        zbus::Error::FDO(error) => match *error {
            zbus::fdo::Error::ZBus(inner) => sort(asked, inner),
            named => reply(named.name().to_string(), named.description()),
        },
        other => Fault::Lost {
            asked,
            why: one_line(&other.to_string()),
        },
    }
}
