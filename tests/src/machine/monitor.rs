//! QEMU's own control socket: devices that come and go while the machine runs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::Error;

/// How long QEMU may take to answer, or a guest to let a device go.
const ANSWER: Duration = Duration::from_secs(120);

/// A connection (QEMU Machine Protocol Specification, docs/interop/qmp-spec.rst).
#[derive(Debug)]
pub(crate) struct Monitor {
    path: PathBuf,
    lines: BufReader<UnixStream>,
}

impl Monitor {
    pub(crate) fn connect(path: &Path) -> Result<Self, Error> {
        let stream = UnixStream::connect(path)
            .and_then(|stream| stream.set_read_timeout(Some(ANSWER)).map(|()| stream))
            .map_err(Error::host("connect to", path))?;
        let mut monitor = Self {
            path: path.to_owned(),
            lines: BufReader::new(stream),
        };
        monitor.next()?;
        monitor.execute("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    /// Gives a command and waits for its answer.
    pub(crate) fn execute(&mut self, command: &str, arguments: &Value) -> Result<(), Error> {
        let line = json!({"execute": command, "arguments": arguments});
        writeln!(self.lines.get_mut(), "{line}").map_err(Error::host("write to", &self.path))?;
        loop {
            let said = self.next()?;
            if said.get("return").is_some() {
                return Ok(());
            }
            if let Some(error) = said.get("error") {
                return Err(self.other(&format!("{command}: {error}")));
            }
        }
    }

    /// Waits for an event about a device.
    pub(crate) fn wait(&mut self, event: &str, device: &str) -> Result<(), Error> {
        loop {
            let said = self.next()?;
            let is = |pointer, wanted| said.pointer(pointer).is_some_and(|value| value == wanted);
            if is("/event", event) && is("/data/device", device) {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Value, Error> {
        let mut line = String::new();
        self.lines
            .read_line(&mut line)
            .map_err(Error::host("read", &self.path))?;
        serde_json::from_str(&line).map_err(|e| self.other(&format!("{line:?} is no answer: {e}")))
    }

    fn other(&self, why: &str) -> Error {
        Error::host("use", &self.path)(std::io::Error::other(why.to_owned()))
    }
}
