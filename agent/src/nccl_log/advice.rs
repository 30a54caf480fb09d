//! What to do about a finding.

pub(super) const UNSET: &str =
    "unset it in the job's environment, in /etc/nccl.conf and in ~/.nccl.conf";
pub(super) const LEVEL: &str = "unset NCCL_NET_GDR_LEVEL; if GPU and NIC are below different switches, PXB, PHB or SYS allow more";
pub(super) const VERBS: &str = "install libibverbs (rdma-core) in the image that the job runs in";
pub(super) const EFA: &str = "check that EFA devices are attached and passed into the container (/dev/infiniband), and `fi_info -p efa`";
pub(super) const OFI: &str =
    "check that the instance type has GPUDirect RDMA, and take a libfabric built for this CUDA";
pub(super) const NO_DEVICE: &str = "check `ibv_devinfo` where the job runs; in a container pass /dev/infiniband in and raise the memlock limit; check NCCL_IB_HCA";
pub(super) const SOCKET: &str = "make RDMA devices visible to the job: `ibv_devinfo` inside it, NCCL_IB_DISABLE and NCCL_NET unset, the net plugin loadable";
pub(super) const TOO_OLD: &str =
    "use NCCL 2.23 or later, or DMA-BUF (open GPU kernel modules, kernel 5.12 or later)";
pub(super) const NO_PATH: &str = "load nvidia-peermem, or use the open GPU kernel modules with a kernel that has DMA-BUF for RDMA: `gdr-agent facts` on the node shows which";
pub(super) const FAR: &str = "let each rank use the NIC next to its GPU (`gdr-agent topology`); if the node has none, NCCL_NET_GDR_LEVEL=PHB or SYS allows the longer way";
pub(super) const REGISTRATION: &str =
    "check nvidia-peermem or DMA-BUF on the node (`gdr-agent facts`), the memlock limit, and BAR1";
pub(super) const TOPOLOGY: &str =
    "let the topology file match the NICs' names, or unset NCCL_TOPO_FILE";
pub(super) const IOMMU: &str = "boot with iommu=pt: `gdr-agent plan` on the node shows the change";
pub(super) const ACS: &str =
    "look at ACS and the IOMMU on the node: `gdr-agent acs show`, `gdr-agent plan`";
pub(super) const FABRIC: &str =
    "look at the peer that the line names, its own log, and the fabric between the two";
pub(super) const READ: &str = "NCCL_NET_GDR_READ=1 makes sends use it too; measure both: NCCL before 2.20 leaves it off without NVLink";
pub(super) const PARTIAL: &str = "the tables name ranks and devices without it: compare their NICs' distance and driver with the others";
pub(super) const DEBUG: &str =
    "run the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH";
pub(super) const CHANNELS: &str = "run the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH and keep the log until after the first collective: NCCL connects only then";
pub(super) const SUBSYS: &str =
    "run the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH";

/// The name of an `ibv_wc_status`.
pub(super) const fn status(status: u32) -> &'static str {
    match status {
        1 => "LOC_LEN_ERR",
        2 => "LOC_QP_OP_ERR",
        4 => "LOC_PROT_ERR",
        5 => "WR_FLUSH_ERR",
        6 => "MW_BIND_ERR",
        7 => "BAD_RESP_ERR",
        8 => "LOC_ACCESS_ERR",
        9 => "REM_INV_REQ_ERR",
        10 => "REM_ACCESS_ERR",
        11 => "REM_OP_ERR",
        12 => "RETRY_EXC_ERR",
        13 => "RNR_RETRY_EXC_ERR",
        21 => "GENERAL_ERR",
        _ => "",
    }
}
