//! Why a module could not be loaded: from what modprobe said, what the kernel logged meanwhile, and what the
//! file is.
//!
//! The kernel gives one error number for several causes (`EINVAL` for a stub, for symbols of another
//! version, and for a client name that is taken), so it takes all three to tell them apart. The messages are
//! those of Linux kernel/module/{main,version,signing}.c and of NVIDIA's nvidia-peermem.c.

use schemars::JsonSchema;
use serde::Serialize;

/// Why loading was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// A module without content: it was built where the peer-memory interface was not to be found.
    Stub,
    /// It was built against another version of the RDMA core or of the driver.
    AbiMismatch,
    /// The RDMA core has no peer-memory interface.
    NoApi,
    /// The kernel takes modules with a trusted signature only.
    Unsigned,
    /// There is no such module for this kernel.
    NotInstalled,
    /// Somebody has registered the same client name.
    NameTaken,
    /// It was built for another kernel.
    WrongKernel,
    /// An option of it has a value that it does not take.
    BadOption,
    /// What was read does not tell.
    Unknown,
}

impl Refused {
    /// The finding's id.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Stub => "peermem.stub",
            Self::AbiMismatch => "peermem.abi-mismatch",
            Self::NoApi => "peermem.no-api",
            Self::Unsigned => "peermem.unsigned",
            Self::NotInstalled => "peermem.not-installed",
            Self::NameTaken => "peermem.name-taken",
            Self::WrongKernel => "peermem.wrong-kernel",
            Self::BadOption => "peermem.bad-option",
            Self::Unknown => "peermem.load-failed",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn fix(self) -> &'static str {
        match self {
            Self::Stub => {
                "use DMA-BUF (the open driver, Linux 5.12); or install DOCA-OFED and then rebuild the driver's modules, so that they find its peer-memory interface"
            }
            Self::AbiMismatch => {
                "rebuild or reinstall the driver's modules now that this RDMA stack is installed, for this kernel; then reboot, so that nothing old stays loaded"
            }
            Self::NoApi => {
                "use DMA-BUF (the open driver, Linux 5.12); or install DOCA-OFED, whose ib_core has the peer-memory interface, and rebuild the driver's modules"
            }
            Self::Unsigned => {
                "install modules that the distribution signed, or enrol the key that signs DKMS modules (`mokutil --import`) and sign them"
            }
            Self::NotInstalled => {
                "install the driver's kernel-module package of exactly this kernel and flavour: nvidia-peermem is part of it"
            }
            Self::NameTaken => {
                "unload nv_peer_mem and remove its package (nvidia-peer-memory): both register the client nv_mem"
            }
            Self::WrongKernel => "build or install the driver's modules for this kernel",
            Self::BadOption => {
                "correct the `options nvidia_peermem` line in modprobe.d: peerdirect_support takes 0 or 1, and so does persistent_api_support"
            }
            Self::Unknown => {
                "run `modprobe nvidia-peermem` and look at the end of `dmesg`: what was read does not tell the cause"
            }
        }
    }
}

/// A line of the kernel log that says why a module was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFinding {
    /// `MODULE: disagrees about version of symbol SYMBOL`, or one without a version.
    Disagrees(String),
    /// `MODULE: Unknown symbol SYMBOL (err N)`.
    UnknownSymbol(String, i32),
    /// `MODULE: version magic 'A' should be 'B'`.
    Magic(String),
    /// The kernel or its lockdown wants a signature. No module is named in these lines.
    Signature(String),
    /// The module could not register its client.
    Registering(String),
    /// An option has a wrong value.
    Option(String),
}

/// One attempt to load a module.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// What modprobe printed to standard error.
    pub stderr: &'a str,
    /// The lines of the kernel log since; none if it could not be read.
    pub log: Option<&'a [String]>,
    /// Whether the module is a stub, by its file; none if that could not be read.
    pub stub: Option<bool>,
}

/// The names under which the kernel speaks of modules that register as a peer-memory client of NVIDIA's.
const NAMES: [&str; 3] = ["nvidia_peermem", "nvidia-peermem", "nv_peer_mem"];

/// What log lines say about such modules, in order. Lines may have any prefix: a time, a priority.
#[must_use]
pub fn log_findings<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<LogFinding> {
    lines.into_iter().filter_map(log_finding).collect()
}

fn log_finding(line: &str) -> Option<LogFinding> {
    for name in NAMES {
        let Some((_, said)) = line.split_once(name) else {
            continue;
        };
        if let Some(said) = said.strip_prefix(": ") {
            for start in [
                "disagrees about version of symbol ",
                "no symbol version for ",
            ] {
                if let Some(symbol) = said.strip_prefix(start) {
                    return Some(LogFinding::Disagrees(symbol.trim().to_owned()));
                }
            }
            if let Some(rest) = said.strip_prefix("Unknown symbol ") {
                let (symbol, rest) = rest.split_once(" (err ")?;
                let number = rest.split_once(')')?.0.parse().ok()?;
                return Some(LogFinding::UnknownSymbol(symbol.to_owned(), number));
            }
            if said.starts_with("version magic ") {
                return Some(LogFinding::Magic(said.trim().to_owned()));
            }
        }
        if said.contains("error while registering") {
            return Some(LogFinding::Registering(said.trim().to_owned()));
        }
        if said.contains("ERROR invalid") {
            return Some(LogFinding::Option(said.trim().to_owned()));
        }
    }
    // `module verification failed` only says that the kernel is tainted from now on.
    let signature = line.contains("Loading of ") && line.contains(" is rejected")
        || line.contains("Lockdown: ") && line.contains("module loading is restricted");
    signature.then(|| LogFinding::Signature(line.trim().to_owned()))
}

/// Tells why, with what it was told by.
#[must_use]
pub fn classify(attempt: &Attempt<'_>) -> (Refused, Vec<String>) {
    let errors: Vec<&str> = attempt
        .stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let mut evidence: Vec<String> = errors.iter().map(|line| (*line).to_owned()).collect();
    let said = |text: &str| errors.iter().any(|line| line.contains(text));
    let lines = attempt.log.unwrap_or_default();
    let found = log_findings(lines.iter().map(String::as_str));
    evidence.extend(
        found
            .iter()
            .map(|finding| format!("kernel log: {}", shown(finding))),
    );
    let has = |test: fn(&LogFinding) -> bool| found.iter().any(test);

    // modprobe's message for a failed `install` command is "Invalid argument" too, after the real one.
    let refused = if said("not found in directory") {
        Refused::NotInstalled
    } else if said("Key was rejected")
        || said("Required key not available")
        || has(|f| matches!(f, LogFinding::Signature(_)))
    {
        Refused::Unsigned
    } else if has(|f| matches!(f, LogFinding::Magic(_))) {
        Refused::WrongKernel
    } else if has(|f| matches!(f, LogFinding::Disagrees(_))) {
        Refused::AbiMismatch
    } else if has(|f| matches!(f, LogFinding::UnknownSymbol(name, -2) if name.starts_with("ib_"))) {
        Refused::NoApi
    } else if has(|f| matches!(f, LogFinding::Registering(_))) {
        Refused::NameTaken
    } else if has(|f| matches!(f, LogFinding::Option(_))) {
        Refused::BadOption
    } else if said("Invalid argument") && found.is_empty() && attempt.stub == Some(true) {
        evidence.push("the module's file is a stub".to_owned());
        Refused::Stub
    } else {
        if attempt.log.is_none() {
            evidence.push("the kernel log could not be read".to_owned());
        } else if found.is_empty() {
            evidence.push("the kernel logged nothing about it".to_owned());
        }
        Refused::Unknown
    };
    (refused, evidence)
}

fn shown(finding: &LogFinding) -> String {
    match finding {
        LogFinding::Disagrees(symbol) => format!("disagrees about the version of {symbol}"),
        LogFinding::UnknownSymbol(symbol, number) => {
            format!("unknown symbol {symbol} (err {number})")
        }
        LogFinding::Magic(text)
        | LogFinding::Signature(text)
        | LogFinding::Registering(text)
        | LogFinding::Option(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EINVAL: &str = "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument";

    fn tell(stderr: &str, log: Option<&[&str]>, stub: Option<bool>) -> Refused {
        let log: Option<Vec<String>> =
            log.map(|lines| lines.iter().map(|l| (*l).to_owned()).collect());
        classify(&Attempt {
            stderr,
            log: log.as_deref(),
            stub,
        })
        .0
    }

    #[test]
    fn one_error_number_and_four_causes() {
        let quiet: &[&str] = &[];
        assert_eq!(tell(EINVAL, Some(quiet), Some(true)), Refused::Stub);
        // Not a stub by its file, and no word in the log: nothing that is known.
        assert_eq!(tell(EINVAL, Some(quiet), Some(false)), Refused::Unknown);
        assert_eq!(tell(EINVAL, Some(quiet), None), Refused::Unknown);
        assert_eq!(tell(EINVAL, None, Some(false)), Refused::Unknown);
        assert_eq!(tell(EINVAL, None, Some(true)), Refused::Stub);
        let other = "[  366.26] nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client";
        assert_eq!(
            tell(EINVAL, Some(&[other]), Some(false)),
            Refused::AbiMismatch
        );
        let taken = "6,3973,227996636,-;nvidia-peermem nv_mem_client_init:535 ERROR nv_mem_client_init -- error while registering client";
        assert_eq!(
            tell(EINVAL, Some(&[taken]), Some(false)),
            Refused::NameTaken
        );
        let option = "nvidia-peermem nv_mem_param_conf_check:481 ERROR invalid peerdirect_support param value 7";
        assert_eq!(
            tell(EINVAL, Some(&[option]), Some(false)),
            Refused::BadOption
        );
    }

    #[test]
    fn no_interface_is_not_a_mismatch() {
        let stderr = "modprobe: ERROR: could not insert 'nvidia_peermem': Unknown symbol in module, or unknown parameter (see dmesg)";
        let line = |number: i32| {
            format!(
                "[1.0] nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err {number})"
            )
        };
        assert_eq!(
            tell(stderr, Some(&[&line(-2)]), Some(false)),
            Refused::NoApi
        );
        assert_eq!(tell(stderr, None, Some(false)), Refused::Unknown);
        let driver = "[1.0] nvidia_peermem: Unknown symbol nvidia_p2p_get_pages (err -2)";
        assert_eq!(tell(stderr, Some(&[driver]), Some(false)), Refused::Unknown);
        let lines = [
            "[1.0] nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
            &line(-22),
        ];
        assert_eq!(tell(EINVAL, Some(&lines), None), Refused::AbiMismatch);
    }

    #[test]
    fn signatures_by_modprobe_and_by_lockdown() {
        let key = "modprobe: ERROR: could not insert 'nvidia_peermem': Key was rejected by service";
        assert_eq!(tell(key, None, None), Refused::Unsigned);
        let not = "modprobe: ERROR: could not insert 'nvidia_peermem': Operation not permitted";
        let lockdown = "[9.9] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7";
        assert_eq!(tell(not, Some(&[lockdown]), None), Refused::Unsigned);
        assert_eq!(tell(not, None, None), Refused::Unknown);
        // A tainted kernel has taken the module all the same.
        let tainted = "[9.9] nvidia_peermem: module verification failed: signature and/or required key missing - tainting kernel";
        assert_eq!(
            tell(EINVAL, Some(&[tainted]), Some(false)),
            Refused::Unknown
        );
    }

    #[test]
    fn not_there_and_for_another_kernel() {
        let missing = "modprobe: FATAL: Module nvidia-peermem not found in directory /lib/modules/6.1.0-57-amd64";
        assert_eq!(tell(missing, None, None), Refused::NotInstalled);
        let debian = "modprobe: FATAL: Module nvidia-current-peermem not found in directory /lib/modules/6.1.0\n\
                      modprobe: ERROR: ../libkmod/libkmod-module.c:1047 command_do() Error running install command 'modprobe nvidia' for module nvidia_peermem: retcode 1\n\
                      modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument";
        assert_eq!(tell(debian, Some(&[]), None), Refused::NotInstalled);
        let exec = "modprobe: ERROR: could not insert 'nvidia_peermem': Exec format error";
        let magic = "[3.1] nvidia_peermem: version magic '6.1.0-35-amd64 SMP preempt mod_unload modversions ' should be '6.1.0-37-amd64 SMP preempt mod_unload modversions '";
        assert_eq!(tell(exec, Some(&[magic]), None), Refused::WrongKernel);
        assert_eq!(tell(exec, None, None), Refused::Unknown);
    }

    #[test]
    fn lines_about_other_things_are_not_findings() {
        for line in [
            "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
            "nv_tco: disagrees about version of symbol x",
            "nvidia: module license 'NVIDIA' taints kernel.",
            "",
        ] {
            assert_eq!(log_findings([line]), [], "{line}");
        }
    }
}
