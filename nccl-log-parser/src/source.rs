//! Who printed a line: `HOST:PID:TID [CUDA_DEVICE] NCCL INFO `, the same in all versions (NCCL `src/debug.cc`).

use crate::bytes::{last, number_before};

/// Host names are shorter; so a broken line costs nothing.
const HOST: usize = 253;

/// The process that printed a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source<'a> {
    pub host: &'a [u8],
    pub pid: u32,
}

/// Reads the prefix from its end; `before` ends where the message begins. What launchers, containers and terminals
/// put before the host stays out of it.
pub(crate) fn source(before: &[u8]) -> Option<Source<'_>> {
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b"NCCL INFO")?.trim_ascii_end();
    let (before, _) = number_before(before.strip_suffix(b"]")?)?;
    let before = before.strip_suffix(b"[")?.trim_ascii_end();
    let (before, _) = number_before(before)?;
    let (before, pid) = number_before(before.strip_suffix(b":")?)?;
    let before = before.strip_suffix(b":")?;
    let length = last(before, HOST)
        .iter()
        .rev()
        .take_while(|b| in_host(**b))
        .count();
    (length > 0).then(|| Source {
        host: last(before, length),
        pid,
    })
}

fn in_host(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_every_launcher() {
        for before in [
            "",
            "[1,0]<stdout>:",
            "0: ",
            "node7: ",
            "192.0.2.2: ",
            "\x1b[36m(RayWorkerVllm pid=4095)\x1b[0m ",
            "[rank3]: ",
            "2025-05-16T16:39:51.208-07:00 | ",
            "[2025-07-22 17:56:10] ",
            "[pod/a-worker-0/main] 2025-05-16T16:39:51Z ",
        ] {
            let line = format!("{before}node-1.example:12:34 [5] NCCL INFO ");
            let wanted = Source {
                host: b"node-1.example",
                pid: 12,
            };
            assert_eq!(source(line.as_bytes()), Some(wanted), "{line}");
        }
        for line in [
            "",
            "NCCL INFO ",
            "[0] NCCL INFO ",
            ":1:2 [0] NCCL INFO ",
            "h:1:2 [0] NCCL WARN ",
        ] {
            assert_eq!(source(line.as_bytes()), None, "{line}");
        }
    }
}
