//! What `plan` and `acs` say about what they would do, and would not.

use super::super::Severity;
use super::{Entry, Kind};

const fn plan(
    id: &'static str,
    question: &'static str,
    symptom: &'static str,
    fix: &'static str,
) -> Entry {
    Entry {
        id,
        kind: Kind::Plan,
        question,
        severity: Severity::Warning,
        facts: &["see the finding"],
        symptom,
        fix,
        explains: &[],
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    plan(
        "acs.in-vm",
        "Is this a physical machine, whose ports are real?",
        "in a virtual machine the registers are emulated, and clearing them changes nothing",
        "on the host: ATS on the NIC and ACS Direct Translated P2P on the ports",
    ),
    plan(
        "acs.lockdown",
        "May configuration space be written?",
        "`Lockdown: setpci: direct PCI access is restricted`",
        "the kernel command line (`acs.method = \"cmdline\"`) or the firmware setup",
    ),
    plan(
        "acs.vfio",
        "Are all devices below the ports the host's own?",
        "a device below is bound to a passthrough driver, and clearing would end its guest's isolation",
        "stop the guest, or leave the port with `acs.scope = \"keep\"`",
    ),
    plan(
        "acs.data-direct",
        "Does GPUDirect RDMA here take the ordinary way below a switch?",
        "ConnectX-8 Data Direct needs certain ACS bits set",
        "leave them; `rdma_topo check` of rdma-core knows the values",
    ),
    plan(
        "acs.nvidia-cpu",
        "Is the CPU one whose root ports do not need ACS?",
        "Grace and Vera need the bits that their firmware sets",
        "leave them",
    ),
    plan(
        "acs.virtualised",
        "Is the machine no host of guests with ATS?",
        "the ports isolate guests, and translated requests go directly",
        "leave them; the port above the NIC needs DT",
    ),
    plan(
        "acs.iommu-off",
        "Does the kernel set ACS bits?",
        "no IOMMU is in use, so the bits that are set are the firmware's",
        "turn ACS off in the firmware setup to be rid of them for good",
    ),
    plan(
        "acs.no-devices",
        "Do GPUs and NICs match the selectors?",
        "no GPU or no NIC matches, so there are no paths",
        "compare `[devices]` in the policy with `lspci -Dnn`",
    ),
    plan(
        "acs.cmdline-bits",
        "Does the policy clear all three redirect bits?",
        "the kernel's parameter turns RR, CR and EC off together",
        "`acs.clear = [\"RR\", \"CR\", \"EC\"]`",
    ),
    plan(
        "acs.kernel-bug",
        "Does this kernel do what pci=disable_acs_redir= says?",
        "kernels from 6.11 until the fix write wrong values",
        "another kernel, or `acs.method = \"config-space\"`",
    ),
    plan(
        "acs.way-unknown",
        "Is the way from the root bus to each port known?",
        "the kernel cannot be told which port is meant",
        "run it as root on the node",
    ),
    plan(
        "cmdline.unquotable",
        "Can every argument be written where the distribution keeps them?",
        "an argument holds a character that the file cannot quote",
        "choose another spelling of the argument",
    ),
    plan(
        "cmdline.too-long",
        "Does the command line fit the kernel's limit?",
        "the kernel cuts what is longer",
        "take out arguments that are no longer needed",
    ),
    plan(
        "modules.unreadable",
        "Can the files in modules-load.d be read?",
        "what is loaded at boot is not known",
        "make them readable and run it again",
    ),
    plan(
        "check.unsupported",
        "Does this version know every check that the policy names?",
        "a check group of a later version",
        "take it out of `verify`",
    ),
];
