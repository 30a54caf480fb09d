//! The one method that does something, and who may call it: polkit says.
//!
//! Interfaces: polkit's `org.freedesktop.PolicyKit1.Authority`, org.freedesktop.systemd1(5).

use std::collections::HashMap;

use zbus::Variant;
use zbus::message::Header;

use super::answer::Answer;
use crate::reboot::Bus;
use crate::reboot::bus::{Fault, Service, Session};

/// Nobody has it unless the administrator's rules say so: `packaging/dbus/org.gdr_agent.Agent1.policy`.
const ACTION: &str = "org.gdr_agent.Agent1.reconcile";

const POLKIT: Service = Service {
    name: "org.freedesktop.PolicyKit1",
    path: "/org/freedesktop/PolicyKit1/Authority",
    interface: "org.freedesktop.PolicyKit1.Authority",
};

const SYSTEMD: Service = Service {
    name: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};

/// What the timer starts every minute anyway. It has the rights that this service has not.
const UNIT: &str = "gdr-agent-reconcile.service";

const DENIED: &str = "org.freedesktop.DBus.Error.AccessDenied";
const FAILED: &str = "org.freedesktop.DBus.Error.Failed";

/// polkit's flags: nobody is asked for a password, since everybody else would wait for that.
const ASK_NOBODY: u32 = 0;

/// Starts the unit if polkit lets the caller. On a connection of its own: calls that pile up on the other one must not
/// keep polkit's answer from being read.
pub(super) async fn reconcile(bus: &Bus, call: &Header<'_>) -> Result<(), Answer> {
    let Some(sender) = call.sender() else {
        return Err(Answer::Error(DENIED, "nobody knows who asks".to_owned()));
    };
    let denied = |why: String| Answer::Error(DENIED, why);
    let session = bus.open().await.map_err(|e| denied(e.to_string()))?;
    // No polkit, no answer, or one that cannot be read: no.
    match allowed(&session, sender.as_str()).await {
        Ok(true) => {}
        Ok(false) => {
            return Err(denied(format!(
                "polkit's action {ACTION} does not allow it"
            )));
        }
        Err(e) => return Err(denied(format!("polkit did not allow it: {e}"))),
    }
    let started = session
        .call(&SYSTEMD, "StartUnit", &(UNIT, "replace"))
        .await;
    started
        .map(drop)
        .map_err(|e| Answer::Error(FAILED, format!("{UNIT} was not started: {e}")))
}

async fn allowed(session: &Session, sender: &str) -> Result<bool, Fault> {
    let who = HashMap::from([("name", Variant::from(sender))]);
    let details: HashMap<&str, &str> = HashMap::new();
    let body = (("system-bus-name", who), ACTION, details, ASK_NOBODY, "");
    let (yes, _, _): (bool, bool, HashMap<String, String>) =
        session.ask(&POLKIT, "CheckAuthorization", &body).await?;
    Ok(yes)
}
