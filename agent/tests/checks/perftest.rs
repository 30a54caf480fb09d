use gdr_agent::bandwidth::{Build, Run, judge};

/// perftest's output, text or JSON, and its `--help`: results or a reason, rates that are numbers.
pub fn perftest(data: &[u8]) {
    let run = Run::read("x", data);
    assert!(!run.rows.is_empty() || run.error().is_some());
    assert!(run.rows.iter().all(|row| row.average_gbps.is_finite()));
    run.error().iter().for_each(|text| super::shown(text));
    for failure in &run.failures {
        super::shown(&failure.message);
    }
    let _ = judge(&[run], Some(1.0), Some((100.0, "x")));
    let _ = Build::of(data);
}
