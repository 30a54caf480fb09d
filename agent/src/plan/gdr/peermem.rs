//! nvidia-peermem: would it load, and would it register? Asked of the file, in the order in which the kernel
//! asks.

use super::{Evidence, Input, Missing, Verdict};
use crate::facts::gdr::{PEERMEM, PeermemFile, REGISTER, RdmaCore, Stack, Target};
use crate::kmod::{Outcome, Refused};

/// The module's verdict, and where it is loaded already that.
pub(super) fn verdict(input: &Input, target: &Target) -> Verdict {
    let use_ = &input.facts.gdr.in_use;
    let loaded = &input.facts.modules.loaded;
    let is_loaded = loaded.get().is_some_and(|l| l.contains("nvidia_peermem"));
    if input.runs(target) && is_loaded {
        let version = use_.version.get().cloned().unwrap_or_default();
        let value = format!("loaded {version}").trim_end().to_owned();
        return Verdict {
            missing: None,
            evidence: vec![Evidence::yes(PEERMEM, value, &loaded.from)],
        };
    }
    of_file(input, target)
}

/// Collects the links of the chain; the first that is not a yes ends it.
struct Chain {
    evidence: Vec<Evidence>,
}

impl Chain {
    fn ends(mut self, refused: Refused, last: Evidence) -> Verdict {
        self.evidence.push(last);
        Verdict {
            missing: Some(Missing {
                id: refused.id().to_owned(),
                unknown: false,
                fix: refused.fix().to_owned(),
            }),
            evidence: self.evidence,
        }
    }

    fn with(mut self, id: &str, unknown: bool, fix: &str, last: Evidence) -> Verdict {
        self.evidence.push(last);
        Verdict {
            missing: Some(Missing {
                id: id.to_owned(),
                unknown,
                fix: fix.to_owned(),
            }),
            evidence: self.evidence,
        }
    }
}

/// The verdict from files alone: for the next boot of that kernel.
pub(super) fn of_file(input: &Input, target: &Target) -> Verdict {
    let mut chain = Chain {
        evidence: Vec::new(),
    };
    let Some(lookup) = target.lookup.get() else {
        let unknown = target.lookup.is_unknown();
        let value = target.lookup.why_missing();
        let last = match unknown {
            true => Evidence::unknown(PEERMEM, value, &target.lookup.from),
            false => Evidence::no(PEERMEM, value, &target.lookup.from),
        };
        return chain.with(
            Refused::NotInstalled.id(),
            unknown,
            Refused::NotInstalled.fix(),
            last,
        );
    };
    let how = lookup.chain.iter();
    chain
        .evidence
        .extend(how.map(|line| Evidence::note("modprobe", line.clone(), "modprobe.d(5)")));
    match &lookup.outcome {
        Outcome::File(_) => {}
        Outcome::Missing(name) => {
            let last = Evidence::no(
                PEERMEM,
                format!(
                    "no module {name} for kernel {}{}",
                    target.release,
                    elsewhere(input, target)
                ),
                &target.lookup.from,
            );
            return chain.ends(Refused::NotInstalled, last);
        }
        Outcome::Disabled(command) => {
            let last = Evidence::no(
                PEERMEM,
                format!("switched off: `{command}`"),
                "modprobe.d(5)",
            );
            let fix = "take the `install nvidia-peermem` line out of modprobe.d";
            return chain.with("peermem.blocked", false, fix, last);
        }
        Outcome::Opaque(command) => {
            let last = Evidence::unknown(
                PEERMEM,
                format!("what `{command}` does is not known without running it"),
                "modprobe.d(5)",
            );
            let fix = "run `modprobe nvidia-peermem` on the node";
            return chain.with("peermem.load-failed", true, fix, last);
        }
        Outcome::Builtin => {
            let last = Evidence::unknown(PEERMEM, "part of the kernel", &target.lookup.from);
            let fix = "run it on the booted node";
            return chain.with("peermem.load-failed", true, fix, last);
        }
    }
    let Some(file) = target.peermem.get() else {
        let last = Evidence::unknown(PEERMEM, target.peermem.why_missing(), &target.peermem.from);
        let fix = "make the module readable, or install it again";
        return chain.with("peermem.unreadable", true, fix, last);
    };
    chain.evidence.push(Evidence::yes(
        PEERMEM,
        format!(
            "{} for {}",
            file.version.as_deref().unwrap_or("of unknown version"),
            target.release
        ),
        &file.path,
    ));
    judge(input, target, file, chain)
}

fn judge(input: &Input, target: &Target, file: &PeermemFile, mut chain: Chain) -> Verdict {
    if let Some(from) = target.lookup.get().and_then(|l| l.blacklisted.clone()) {
        let last = Evidence::no("blacklist", "it is not loaded at boot", from);
        let fix = "take it out of the blacklist: modules-load.d does not load what is on it";
        return chain.with("peermem.blocked", false, fix, last);
    }
    let core = target.rdma.get();
    match vermagic(target, file, core) {
        Ok(link) => chain.evidence.extend(link),
        Err(last) => return chain.ends(Refused::WrongKernel, last),
    }
    if !file.registers {
        let last = Evidence::no(
            "content",
            format!("a stub: it does not use {REGISTER}"),
            &file.path,
        );
        return chain.ends(Refused::Stub, last);
    }
    let Some(core) = core else {
        let why = target.rdma.why_missing();
        return if target.rdma.is_unknown() {
            let last = Evidence::unknown("RDMA core", why, &target.rdma.from);
            chain.with(Refused::NoApi.id(), true, Refused::NoApi.fix(), last)
        } else {
            let last = Evidence::no("RDMA core", "no ib_core for this kernel", &target.rdma.from);
            chain.ends(Refused::NoApi, last)
        };
    };
    let stack = match core.stack {
        Stack::Inbox => "the kernel's own",
        Stack::Ofed => "OFED",
    };
    if core.peer_memory.is_none() {
        let last = Evidence::unknown(
            "RDMA core",
            format!("{stack}, part of the kernel: whether it has {REGISTER} is not known"),
            &core.path,
        );
        return chain.with(Refused::NoApi.id(), true, Refused::NoApi.fix(), last);
    }
    if core.peer_memory == Some(false) {
        let last = Evidence::no(
            "RDMA core",
            format!("{stack}, without {REGISTER}"),
            &core.path,
        );
        return chain.ends(Refused::NoApi, last);
    }
    chain.evidence.push(Evidence::yes(
        "RDMA core",
        format!("{stack}, with {REGISTER}"),
        &core.path,
    ));
    if let Some(last) = abi(target, file, core) {
        return chain.ends(Refused::AbiMismatch, last);
    }
    if let Some(last) = driver(input, target, file) {
        return chain.ends(Refused::AbiMismatch, last);
    }
    match signature(input, target, file, core) {
        Ok(link) => chain.evidence.extend(link),
        Err(last) => return chain.ends(Refused::Unsigned, last),
    }
    Verdict {
        missing: None,
        evidence: chain.evidence,
    }
}

/// The kernel compares the whole string, without the release where both sides have versions of symbols
/// (Linux kernel/module/version.c `same_magic`).
fn vermagic(
    target: &Target,
    file: &PeermemFile,
    core: Option<&RdmaCore>,
) -> Result<Option<Evidence>, Evidence> {
    const FACT: &str = "built for";
    let Some(own) = file.vermagic.as_deref() else {
        return Err(Evidence::no(
            FACT,
            "no kernel: it has no vermagic",
            &file.path,
        ));
    };
    let (release, options) = own.split_once(' ').unwrap_or((own, ""));
    let kernel = core.and_then(|core| core.vermagic.as_deref());
    let kernel_options = kernel
        .and_then(|k| k.split_once(' '))
        .map(|(_, options)| options);
    if let Some(other) = kernel_options
        && other.trim() != options.trim()
    {
        return Err(Evidence::no(
            FACT,
            format!(
                "`{own}`, and this kernel is `{}`",
                kernel.unwrap_or_default()
            ),
            &file.path,
        ));
    }
    if release == target.release {
        return Ok(Some(Evidence::yes(FACT, release, &file.path)));
    }
    // A module of another release fits where all versions do: that is what Red Hat's weak updates are.
    let by_symbols = file.versioned && options.split(' ').any(|word| word == "modversions");
    let fits = by_symbols && core.is_some() && file.differs.is_empty();
    if fits {
        return Ok(Some(Evidence::yes(
            FACT,
            format!("{release}, with the same versions of symbols"),
            &file.path,
        )));
    }
    Err(Evidence::no(
        FACT,
        format!("{release}, and the kernel is {}", target.release),
        &file.path,
    ))
}

fn abi(target: &Target, file: &PeermemFile, core: &RdmaCore) -> Option<Evidence> {
    const FACT: &str = "symbol versions";
    if let (Some(built), Some(has)) = (file.register_crc, core.register_crc)
        && built != has
    {
        return Some(Evidence::no(
            FACT,
            format!("built against {REGISTER} {built:#010x}, and the RDMA core has {has:#010x}"),
            &file.path,
        ));
    }
    if file.versioned && file.register_crc.is_none() {
        return Some(Evidence::no(
            FACT,
            format!("it has versions, and none of {REGISTER}"),
            &file.path,
        ));
    }
    let first = file.differs.first()?;
    Some(Evidence::no(
        FACT,
        format!(
            "{} of another build than kernel {} ({}: {:#010x}, {:#010x})",
            file.differs.len(),
            target.release,
            first.symbol,
            first.built,
            first.kernel
        ),
        &file.path,
    ))
}

/// Both come from one build; two versions are the rest of an upgrade.
fn driver(input: &Input, target: &Target, file: &PeermemFile) -> Option<Evidence> {
    let on_disk = target
        .driver
        .get()
        .and_then(|driver| driver.version.clone());
    let loaded = input.facts.gdr.driver.get().filter(|_| input.runs(target));
    let driver = loaded.map(|driver| driver.version.clone()).or(on_disk)?;
    let own = file.version.as_ref()?;
    (*own != driver).then(|| {
        Evidence::no(
            "driver",
            format!("nvidia-peermem is of {own}, and the driver is {driver}"),
            &file.path,
        )
    })
}

/// Whom the kernel trusts is not to be read from files; that it trusts whoever signed its own modules is.
fn signature(
    input: &Input,
    target: &Target,
    file: &PeermemFile,
    core: &RdmaCore,
) -> Result<Option<Evidence>, Evidence> {
    const FACT: &str = "signature";
    let facts = input.facts;
    let by_build = target
        .config
        .get()
        .and_then(|config| config.get("CONFIG_MODULE_SIG_FORCE"))
        .is_some_and(|value| value == "y");
    let lockdown = facts
        .security
        .lockdown
        .get()
        .is_some_and(|mode| mode != "none");
    let asked = facts.gdr.signatures_enforced.get() == Some(&true);
    let why = match () {
        () if by_build => Some(target.config.from.as_str()),
        () if lockdown && !facts.bake => Some(facts.security.lockdown.from.as_str()),
        () if asked && !facts.bake => Some(facts.gdr.signatures_enforced.from.as_str()),
        () => None,
    };
    match (&file.signature, why) {
        (None, Some(from)) => Err(Evidence::no(
            FACT,
            "none, and the kernel takes signed modules only",
            from,
        )),
        (None, None) => Ok(Some(Evidence::note(
            FACT,
            "none: with Secure Boot the kernel would not take it",
            &file.path,
        ))),
        (Some(signature), _) => {
            let who = signature.signer.as_deref().unwrap_or("an unnamed key");
            let hash = signature.hash.as_deref().unwrap_or("unknown hash");
            let same = signature.signer.is_some() && signature.signer == core.signer;
            let trust = match (same, why) {
                (true, _) => ", who signed this kernel's own modules",
                (false, Some(_)) => "; whether this kernel trusts that key is not known",
                (false, None) => "",
            };
            let value = format!("{who}, {hash}{trust}");
            Ok(Some(Evidence::note(FACT, value, &file.path)))
        }
    }
}

/// Where the module is instead: DKMS in an image builds for the kernel that runs.
fn elsewhere(input: &Input, target: &Target) -> String {
    let gdr = &input.facts.gdr;
    if let Some((release, file)) = gdr.strays.iter().next() {
        return format!("; {file} is for {release}, of which there is no kernel here");
    }
    let built = gdr.dkms.get().into_iter().flatten();
    let kernels: Vec<&str> = built
        .flat_map(|build| build.kernels.iter().map(String::as_str))
        .filter(|kernel| *kernel != target.release)
        .collect();
    if kernels.is_empty() {
        return String::new();
    }
    format!("; DKMS has built the driver for {}", kernels.join(", "))
}
