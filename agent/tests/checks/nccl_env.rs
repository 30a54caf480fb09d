use gdr_agent::facts::Fact;
use gdr_agent::nccl_env::{
    ConfFile, Known, NcclEnv, Process, conf, environ, findings, integer, level, suggestion,
};

/// NCCL's configuration files and processes' environments: as many settings as lines, and bounded.
pub fn nccl_env(data: &[u8]) {
    let lines = conf(data);
    assert!(lines.len() <= data.iter().filter(|b| **b == b'\n').count() + 1);
    for line in &lines {
        assert!(line.key.chars().count() <= 1023 && line.value.chars().count() <= 1023);
        let _ = (line.mistake(), integer(&line.value), level(&line.value));
        let _ = suggestion(&line.key);
    }
    let environment = environ(data);
    assert!(
        environment
            .iter()
            .all(|(name, _)| name.starts_with("NCCL_"))
    );
    let env = NcclEnv {
        files: vec![ConfFile {
            lines: Fact::known(lines, "/etc/nccl.conf"),
            uid: None,
        }],
        processes: vec![Process {
            pid: 1,
            uid: 0,
            name: "x".into(),
            environment,
        }],
        denied: 0,
    };
    let known = Known {
        devices: Some(&[]),
        minor: Some(26),
    };
    findings(&env, known).iter().for_each(super::finding_shown);
}
