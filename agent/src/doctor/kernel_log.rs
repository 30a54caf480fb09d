//! What lines of the kernel log mean. The formats are the kernel's and the driver's own: Linux
//! drivers/iommu/{intel/dmar,amd/iommu}.c, drivers/pci/{pci,pcie/aer}.c, drivers/infiniband/hw/mlx5, and
//! NVRM's messages.

/// The check that a line speaks against, if it does.
#[must_use]
pub fn classify(line: &str) -> Option<&'static str> {
    let has = |text: &str| line.contains(text);
    if has("NVRM: Xid (") {
        return Some("kernel.xid");
    }
    if has("NVRM:") && has("topology not supported") {
        return Some("dma-buf.topology");
    }
    if has("[IO_PAGE_FAULT")
        || has("DMAR:") && (has("fault addr") || has("fault index") || has("DMAR:[fault reason"))
        || has("arm-smmu-v3") && has("event 0x10 received")
    {
        return Some("iommu.fault");
    }
    if has("Can't parse ACS command line parameter") || has("Can't parse disable_acs_redir") {
        return Some("acs.parameter-rejected");
    }
    if has("AER:") && (has("Uncorrected") || has("Uncorrectable")) {
        return Some("link.errors");
    }
    if has("available PCIe bandwidth, limited by") {
        return Some("link.limited");
    }
    let rdma = has("mlx5") || has("infiniband") || has("bnxt_re") || has("irdma");
    if rdma && (has("error cqe") || has("MKEY") && has("failed") || has("dump_cqe")) {
        return Some("kernel.rdma-error");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::classify;

    #[test]
    fn lines_as_kernels_print_them() {
        for (line, id) in [
            (
                "NVRM: Xid (PCI:0000:9b:00): 119, pid=1240590, name=x, Timeout after 6s",
                "kernel.xid",
            ),
            (
                "nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]",
                "iommu.fault",
            ),
            (
                "DMAR: [DMA Write NO_PASID] Request device [17:00.0] fault addr 0x2000000000 [fault reason 0x05] PTE Write access is not set",
                "iommu.fault",
            ),
            (
                "PCI: Can't parse ACS command line parameter",
                "acs.parameter-rejected",
            ),
            (
                "pcieport 0000:15:01.0: AER: Uncorrected (Fatal) error received: 0000:16:00.0",
                "link.errors",
            ),
            (
                "mlx5_core 0000:17:00.0: 126.024 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x8 link at 0000:15:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)",
                "link.limited",
            ),
            (
                "infiniband rocep33s0f0: mlx5_poll_one:527:(pid 0): Responder error cqe on cqn 0x406:",
                "kernel.rdma-error",
            ),
            (
                "mlx5_core 0000:17:00.0: mlx5_cmd_out_err:808:(pid 9): CREATE_MKEY(0x200) op_mod(0x0) failed, status bad parameter(0x3)",
                "kernel.rdma-error",
            ),
            (
                "NVRM: dma-buf attach failed: topology not supported for mapping type FORCE_PCIE",
                "dma-buf.topology",
            ),
        ] {
            assert_eq!(classify(line), Some(id), "{line}");
        }
        for line in [
            "iommu: Default domain type: Passthrough (set via kernel command line)",
            "mlx5_core 0000:41:00.1: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)",
            "mlx5_core 0000:17:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
            "pcieport 0000:15:01.0: AER: Corrected error received: 0000:16:00.0",
            "DMAR: IOMMU enabled",
            "",
        ] {
            assert_eq!(classify(line), None, "{line}");
        }
    }
}
