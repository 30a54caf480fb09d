//! Does perftest reach, between GPUs and NICs, what the policy asks for? [`crate::measure`] runs it, and
//! [`crate::bandwidth`] judges.

use super::{Answer, Input, Outcome};
use crate::bandwidth::{Run, judge};
use crate::measure::Measured;

const LOW: &str = "bandwidth.low";
const NOT_GPU: &str = "bandwidth.not-gpu";
const NOT_MEASURED: &str = "bandwidth.not-measured";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let not_measured = |why: &str, fix: &str| Answer::unknown(NOT_MEASURED, "perftest", why, fix);
    match input.more.measured.as_deref() {
        None => vec![not_measured(
            "it was not run",
            "look at the log of gdr-agent-bandwidth.service, or run `gdr-agent verify`",
        )],
        Some([]) => vec![not_measured(
            "no GPU, or no NIC near one, was found by the policy's selectors",
            "look at `gdr-agent topology`",
        )],
        Some(pairs) => pairs.iter().flat_map(|pair| one(input, pair)).collect(),
    }
}

fn one(input: &Input, pair: &Measured) -> Vec<Answer> {
    let between = format!("{} - {}", pair.gpu, pair.nic);
    let min = input.policy.verify.bandwidth.as_ref().map(|b| b.min_gbps);
    let link = pair.link.as_ref();
    let judged = judge(&pair.runs, min, link.map(|l| (l.gbps, l.from.as_str())));
    let mut answers: Vec<Answer> = match pair.runs.is_empty() {
        // that nothing was measured has a reason of its own
        true => Vec::new(),
        false => judged.findings.into_iter().filter_map(Answer::of).collect(),
    };
    for answer in &mut answers {
        answer.subject = format!("{between}: {}", answer.subject);
        if answer.outcome == Outcome::Unknown {
            // what could not be measured is as grave as what is too slow
            answer.severity = None;
        }
    }
    if let Some(why) = &pair.why_not {
        answers.push(Answer::unknown(
            NOT_MEASURED,
            between.clone(),
            why.clone(),
            "look at `gdr-agent topology` and /sys/class/infiniband; where the time is too short, give `trial.deadline` more",
        ));
    }
    let open = |a: &Answer| a.severity.is_none() && a.outcome != Outcome::Met;
    if answers.iter().any(open) {
        return answers;
    }
    if judged.verdict != Outcome::Met {
        answers.push(Answer::unknown(
            NOT_GPU,
            between,
            "perftest ended well, and did not say that its buffer was in GPU memory",
            "run `gdr-agent bandwidth` with this GPU and NIC, and look at what it prints",
        ));
    } else if answers.iter().all(|a| a.id != LOW) {
        let mut met = Answer::met(LOW, between, "");
        met.evidence = pair.runs.iter().filter_map(line).collect();
        met.evidence
            .extend(link.map(|l| format!("{} is {:.0} Gb/s", l.from, l.gbps)));
        answers.push(met);
    }
    answers
}

/// The best of a run, for people.
pub(crate) fn line(run: &Run) -> Option<String> {
    let row = run.best()?;
    Some(format!(
        "{}: {:.2} Gb/s with {} bytes, {}",
        run.name,
        row.average_gbps,
        row.bytes,
        row.memory.word()
    ))
}
