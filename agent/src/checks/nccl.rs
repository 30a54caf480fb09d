//! Does the node-wide NCCL configuration turn GPUDirect off?

use super::{Answer, Input};

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let fact = &input.facts.nccl_conf;
    if let Some(why) = &fact.unknown {
        return vec![Answer::unknown(
            "nccl.env-net-disabled",
            fact.from.clone(),
            why.clone(),
            "make it readable",
        )];
    }
    let Some(text) = fact.get() else {
        return vec![Answer::met(
            "nccl.env-net-disabled",
            fact.from.clone(),
            "it is not there",
        )];
    };
    let bad: Vec<Answer> = text
        .lines()
        .filter_map(|line| judge(line, &fact.from))
        .collect();
    if bad.is_empty() {
        return vec![Answer::met(
            "nccl.env-net-disabled",
            fact.from.clone(),
            "nothing in it turns GPUDirect off",
        )];
    }
    bad
}

/// Lines are `KEY=VALUE` without any trimming (NCCL src/misc/param.cc).
fn judge(line: &str, from: &str) -> Option<Answer> {
    let (key, value) = line.split_once('=')?;
    let (id, why) = match (key, value) {
        ("NCCL_IB_DISABLE", "1") => (
            "nccl.env-net-disabled",
            "turns RDMA off: NCCL falls back to sockets",
        ),
        ("NCCL_NET", "Socket") => (
            "nccl.env-net-disabled",
            "chooses sockets, which have no GPUDirect",
        ),
        ("NCCL_NET_GDR_LEVEL", "0" | "LOC") => ("nccl.env-gdr-level", "turns GPUDirect off"),
        ("NCCL_NET_GDR_READ", "0") => ("nccl.env-gdr-read", "turns GPUDirect off for sends"),
        _ => return None,
    };
    Some(Answer::failed(
        id,
        key,
        format!("{from}: {key}={value} {why}"),
        format!("take the line out of {from}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn lines_that_turn_it_off() {
        let id = |line: &str| judge(line, "/etc/nccl.conf").map(|a| a.id);
        assert_eq!(id("NCCL_IB_DISABLE=1"), Some("nccl.env-net-disabled"));
        assert_eq!(id("NCCL_NET_GDR_LEVEL=LOC"), Some("nccl.env-gdr-level"));
        // NCCL does not trim: this sets a variable whose name begins with a blank.
        assert_eq!(id(" NCCL_IB_DISABLE=1"), None);
        assert_eq!(id("#NCCL_IB_DISABLE=1"), None);
        assert_eq!(id("NCCL_NET_GDR_LEVEL=SYS"), None);
    }
}
