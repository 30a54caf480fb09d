//! What runs come to: against the policy, against what the link can carry, and GPU memory against host memory.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Memory, Row, Run, failure};
use crate::checks::{Outcome, Severity};
use crate::finding::Finding;

/// GPU memory that is as fast as this share of host memory is taken for as fast.
const ALIKE: f64 = 0.9;
/// Below this share peer traffic does not go the way it should.
const BROKEN: f64 = 0.5;
/// The share of a link's rate that perftest reaches where nothing is wrong, with small MTUs too.
const OF_LINK: f64 = 0.8;
/// Smaller messages measure the message rate, not the path.
const LARGE: u64 = 64 << 10;

/// What GPU memory reaches of what host memory reaches, all else alike.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The run on GPU memory.
    pub gpu: String,
    /// The run on host memory.
    pub host: String,
    /// The message size: the largest that both have.
    pub bytes: u64,
    /// GPU memory's average by host memory's.
    pub ratio: f64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Met if GPU memory was measured and is as fast as it has to be.
    pub verdict: Outcome,
    /// Comparisons of GPU memory with host memory.
    pub ratios: Vec<Ratio>,
    /// What is wrong, or not known.
    pub findings: Vec<Finding>,
}

/// Judges runs. `min_gbps` is the policy's; `ceiling` what the link can carry at most, in 10^9 bits per second, and where
/// that comes from.
#[must_use]
pub fn judge(runs: &[Run], min_gbps: Option<f64>, ceiling: Option<(f64, &str)>) -> Judgement {
    let mut findings: Vec<Finding> = runs
        .iter()
        .filter_map(|run| failure::finding(&run.name, &run.failures, run.memory))
        .collect();
    let ratios = ratios(runs);
    for ratio in ratios.iter().filter(|r| r.ratio < ALIKE) {
        findings.push(slower(ratio));
    }
    let mut measured = false;
    for run in runs {
        let Some((row, gbps)) = best(run) else {
            continue;
        };
        measured |= row.memory.is_gpu();
        let asked = min_gbps.map(|min| (min, format!("the policy asks for {min} Gb/s")));
        let expected =
            ceiling.map(|(link, from)| (link * OF_LINK, format!("{from} is {link:.0} Gb/s")));
        let enough = |least: &(f64, String)| gbps >= least.0;
        match (asked, expected) {
            (Some(least), _) | (None, Some(least)) if !enough(&least) => {
                findings.push(low(run, row, gbps, &least));
            }
            // as much as the policy wants, and the link has more
            (Some(_), Some(least)) if !enough(&least) => findings.push(Finding {
                severity: Severity::Warning,
                ..low(run, row, gbps, &least)
            }),
            _ => {}
        }
    }
    let compared = min_gbps.is_some() || ceiling.is_some() || !ratios.is_empty();
    if !measured && findings.is_empty() {
        findings.push(Finding::unknown(
            "bandwidth.not-gpu",
            "GPU memory",
            vec!["no result with a buffer in GPU memory".to_owned()],
            "measure with `--use_cuda=N`, and give perftest's whole output: what it says before the table tells where the buffer lay",
        ));
    } else if measured && !compared {
        findings.push(Finding::unknown(
            "bandwidth.no-reference",
            "GPU memory",
            vec!["neither a result of host memory nor min_gbps of a policy to compare with".to_owned()],
            "give the output of a run on host memory over the same NIC too, or set [verify.bandwidth] min_gbps",
        ));
    }
    Judgement {
        verdict: verdict(&findings, measured && compared),
        ratios,
        findings,
    }
}

fn verdict(findings: &[Finding], answered: bool) -> Outcome {
    let failed = |f: &Finding| f.outcome == Outcome::Failed && f.severity == Severity::Required;
    if findings.iter().any(failed) {
        Outcome::Failed
    } else if !answered || findings.iter().any(|f| f.outcome == Outcome::Unknown) {
        Outcome::Unknown
    } else {
        Outcome::Met
    }
}

/// The best row of a run, and what it comes to in one direction.
fn best(run: &Run) -> Option<(&Row, f64)> {
    let row = run.best()?;
    Some((row, row.average_gbps / directions(run)))
}

/// A bidirectional test adds both directions up.
fn directions(run: &Run) -> f64 {
    let both = |test: &String| test.contains("Bidirectional");
    if run.about.test.as_ref().is_some_and(both) {
        2.0
    } else {
        1.0
    }
}

fn low(run: &Run, row: &Row, gbps: f64, (least, why): &(f64, String)) -> Finding {
    let evidence = vec![
        format!(
            "{}: {gbps:.2} Gb/s with {} bytes, {}",
            run.name,
            row.bytes,
            row.memory.word()
        ),
        format!("{why}; {least:.2} Gb/s would do"),
    ];
    if row.memory == Memory::Host {
        return Finding::warning(
            "bandwidth.link-low",
            run.name.clone(),
            evidence,
            "host memory does not reach it either: look at the link, its MTU, the NIC's PCIe width and speed, and the switch before looking at GPUDirect RDMA",
        );
    }
    Finding::failed(
        "bandwidth.low",
        run.name.clone(),
        evidence,
        "look at `gdr-agent topology`: ACS redirection, a far NIC, or a narrow link on the way between the two",
    )
}

fn slower(ratio: &Ratio) -> Finding {
    let evidence = vec![format!(
        "{}: {:.0} % of what {} reaches, with {} bytes",
        ratio.gpu,
        ratio.ratio * 100.0,
        ratio.host,
        ratio.bytes
    )];
    let fix = "look at `gdr-agent topology`: ACS redirection on the path, another root port or CPU socket between GPU and NIC, the PCIe width of both";
    let subject = ratio.gpu.clone();
    if ratio.ratio < BROKEN {
        Finding::failed("bandwidth.gpu-slower", subject, evidence, fix)
    } else {
        Finding::warning("bandwidth.gpu-slower", subject, evidence, fix)
    }
}

/// Each run on GPU memory against each on host memory that tested the same thing.
fn ratios(runs: &[Run]) -> Vec<Ratio> {
    let gpus = runs.iter().filter(|run| run.memory.is_gpu());
    let pairs = gpus.flat_map(|gpu| {
        let hosts = runs.iter().filter(|run| run.memory == Memory::Host);
        hosts.map(move |host| (gpu, host))
    });
    pairs
        .filter(|(gpu, host)| alike(gpu, host))
        .filter_map(|(gpu, host)| {
            let common = |row: &&Row| host.rows.iter().find(|h| h.bytes == row.bytes).is_some();
            let row = gpu.rows.iter().filter(common).max_by_key(|row| row.bytes)?;
            let other = host.rows.iter().find(|h| h.bytes == row.bytes)?;
            let usable = row.bytes >= LARGE && other.average_gbps > 0.0;
            usable.then(|| Ratio {
                gpu: gpu.name.clone(),
                host: host.name.clone(),
                bytes: row.bytes,
                ratio: row.average_gbps / other.average_gbps,
            })
        })
        .collect()
}

/// Whether two runs differ in nothing that is known but the memory.
fn alike(a: &Run, b: &Run) -> bool {
    fn same<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
        a.zip(b).is_none_or(|(a, b)| a == b)
    }
    let (a, b) = (&a.about, &b.about);
    same(a.test.as_ref(), b.test.as_ref())
        && same(a.device.as_ref(), b.device.as_ref())
        && same(a.qps.as_ref(), b.qps.as_ref())
}
