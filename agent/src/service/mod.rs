//! `org.gdr_agent.Agent1` on the system bus: what monitoring and desktops may know without being root.
//!
//! Started by the bus, ends when nobody asks any more. One call after the other, on one thread: a caller that
//! floods it is answered in turn, and costs what one caller costs. `docs/dbus.md` has the interface.

mod answer;
mod leave;

use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::time::Duration;

use zbus::export::futures_core::Stream as _;
use zbus::message::{Flags, Message, Type};
use zbus::{Connection, MessageStream};

use crate::reboot::Bus;
use crate::reboot::bus::within;
use crate::sys::{Root, clock};

use answer::{Answer, Known};

/// The name on the bus.
pub const NAME: &str = "org.gdr_agent.Agent1";

/// Calls that wait in this process; the bus keeps the others back.
const QUEUED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// How long the bus may take for one answer.
const LIMIT: Duration = Duration::from_secs(5);

/// What was sent before the name was given up, and is still on its way.
const LAST_CALLS: Duration = Duration::from_millis(200);

/// Who knows the answers that this folder does not: the status as JSON, by the same code as `gdr-agent status`.
pub type StatusJson<'s> = &'s dyn Fn(&Root) -> Result<String, String>;

/// Answers until nobody has asked for `idle`.
///
/// # Errors
/// There is no bus, the name cannot be had, or the bus went away.
pub fn serve(root: &Root, bus: &Bus, status: StatusJson<'_>, idle: Duration) -> Result<(), String> {
    let bus = bus.clone().with_limit(LIMIT);
    bus.run(async {
        let opened = bus.serve(NAME, QUEUED).await;
        let mut messages = opened.map_err(|e| format!("cannot serve {NAME}: {e}"))?;
        let connection = Connection::from(&messages);
        let mut served = Served {
            bus: &bus,
            known: Known::new(root, status),
            connection: &connection,
        };
        let mut until = clock::now() + idle;
        loop {
            let left = until.saturating_duration_since(clock::now());
            match within(left, next(&mut messages)).await {
                None => break,
                Some(None) => return Err("the bus went away".to_owned()),
                Some(Some(Err(e))) => return Err(format!("the bus connection broke: {e}")),
                Some(Some(Ok(call))) if call.message_type() == Type::MethodCall => {
                    served.answer(&call).await;
                    until = clock::now() + idle;
                }
                Some(Some(Ok(_))) => {}
            }
        }
        // From now on a call starts this anew; what came before is still answered.
        let _ = within(LIMIT, connection.release_name(NAME)).await;
        while let Some(Some(Ok(call))) = within(LAST_CALLS, next(&mut messages)).await {
            if call.message_type() == Type::MethodCall {
                served.answer(&call).await;
            }
        }
        Ok(())
    })
}

async fn next(messages: &mut MessageStream) -> Option<zbus::Result<Message>> {
    poll_fn(|context| Pin::new(&mut *messages).poll_next(context)).await
}

struct Served<'s> {
    bus: &'s Bus,
    known: Known<'s>,
    connection: &'s Connection,
}

impl Served<'_> {
    async fn answer(&mut self, call: &Message) {
        self.known.refresh();
        let header = call.header();
        let answer = match answer::of(&self.known, call) {
            Answer::Reconcile => match leave::reconcile(self.bus, &header).await {
                Ok(()) => Answer::Nothing,
                Err(refused) => refused,
            },
            answer => answer,
        };
        if header.primary().flags().contains(Flags::NO_REPLY_EXPECTED) {
            return;
        }
        let to = self.connection;
        let sent = async {
            match &answer {
                Answer::Text(text) => to.reply(&header, text).await,
                Answer::Property(text) => {
                    to.reply(&header, &zbus::Variant::from(text.as_str())).await
                }
                Answer::Properties(all) => {
                    let all: std::collections::BTreeMap<&str, zbus::Variant<'_>> = all
                        .iter()
                        .map(|(name, text)| (*name, zbus::Variant::from(text.as_str())))
                        .collect();
                    to.reply(&header, &all).await
                }
                Answer::Nothing | Answer::Reconcile => to.reply(&header, &()).await,
                Answer::Error(name, text) => to.reply_error(&header, *name, &text.as_str()).await,
            }
        };
        // Who has gone away, or does not read, is not waited for.
        match within(LIMIT, sent).await {
            Some(Ok(())) => {}
            Some(Err(e)) => tracing::debug!("an answer was not sent: {e}"),
            None => tracing::debug!("an answer was not taken within {LIMIT:?}"),
        }
    }
}
