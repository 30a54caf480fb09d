//! One varlink call: JSON and a zero byte over a socket, one answer (varlink.org/Method-Call).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::refusal::one_line;
use crate::sys::clock;

/// The longest answer that is read.
const MOST: usize = 64 << 10;

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum VarlinkError {
    /// Nobody listens there.
    #[error("nobody listens at {at}: {why}")]
    Nobody { at: String, why: String },
    /// No answer in time, or the connection broke.
    #[error("{method} was not answered: {why}")]
    Silent { method: String, why: String },
    /// An error by name.
    #[error("{method} failed with {name}")]
    Error { method: String, name: String },
    /// Not what the interface says.
    #[error("{method} was answered with something else: {why}")]
    Garbage { method: String, why: String },
}

/// Calls a method and gives the parameters of its answer.
pub(super) fn call(
    socket: &Path,
    method: &str,
    parameters: &Value,
    limit: Duration,
) -> Result<Value, VarlinkError> {
    let nobody = |e: std::io::Error| VarlinkError::Nobody {
        at: socket.display().to_string(),
        why: e.to_string(),
    };
    let silent = |why: String| VarlinkError::Silent {
        method: method.to_owned(),
        why,
    };
    let garbage = |why: String| VarlinkError::Garbage {
        method: method.to_owned(),
        why: one_line(&why),
    };
    let mut stream = UnixStream::connect(socket).map_err(nobody)?;
    let until = clock::now() + limit;
    stream.set_write_timeout(Some(limit)).map_err(nobody)?;
    let mut bytes = json!({ "method": method, "parameters": parameters })
        .to_string()
        .into_bytes();
    bytes.push(0);
    stream
        .write_all(&bytes)
        .map_err(|e| silent(e.to_string()))?;
    let mut answer = Vec::new();
    let end = loop {
        if let Some(end) = answer.iter().position(|byte| *byte == 0) {
            break end;
        }
        if answer.len() >= MOST {
            return Err(garbage(format!("more than {MOST} bytes")));
        }
        let left = until.saturating_duration_since(clock::now());
        if left.is_zero() {
            return Err(silent(format!("no answer within {limit:?}")));
        }
        stream.set_read_timeout(Some(left)).map_err(nobody)?;
        let mut some = [0; 4096];
        match stream.read(&mut some) {
            Ok(0) => return Err(silent("the connection was closed".to_owned())),
            Ok(n) => answer.extend_from_slice(some.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(silent(format!("no answer within {limit:?}")));
            }
            Err(e) => return Err(silent(e.to_string())),
        }
    };
    let value: Value = serde_json::from_slice(answer.get(..end).unwrap_or_default())
        .map_err(|e| garbage(e.to_string()))?;
    match value.get("error") {
        None | Some(Value::Null) => {}
        Some(Value::String(name)) => {
            return Err(VarlinkError::Error {
                method: method.to_owned(),
                name: one_line(name),
            });
        }
        Some(other) => return Err(garbage(format!("an error that is no text: {other}"))),
    }
    match value.get("parameters") {
        None | Some(Value::Null) => Ok(json!({})),
        Some(parameters @ Value::Object(_)) => Ok(parameters.clone()),
        Some(other) => Err(garbage(format!("parameters that are no object: {other}"))),
    }
}
