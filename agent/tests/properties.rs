//! What must hold for any bytes, on pieces of each format in any order and on cut and mixed real files. The fuzz targets
//! run the same checks without a bound.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests read files and panic"
)]

mod checks;

use std::path::PathBuf;

use proptest::prelude::*;

const LOG: &[&str] = &[
    "h-1:7:9 [0] NCCL INFO ",
    "Channel 00/0 : 0[0] -> 8[0] [send] ",
    "via NET/",
    "via P2P/",
    "via SHM/",
    "via direct ",
    "IB/0",
    "/GDRDMA",
    "/Shared",
    "(1)",
    "COLLNET/",
    "NCCL version 2.",
    "L version 2.1",
    "26.2+cuda12",
    "\n",
    "\r\n",
    "nccl==2.20.5",
    "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",
    "(distance 8 > 5)",
    "GPU Direct RDMA Enabled for GPU 0 / HCA 0 ",
    "Using network IB",
    "Socket",
    "NET/IB : Using [0]mlx5_0:1/IB; OOB",
    " nNodes 2",
    "MNNVL 1",
    "\x1b[2J",
    "\u{202e}",
    "Got completion ",
    "status=12",
    "NCCL_IB_DISABLE set by environment to 1",
    "GDRDMA not enabled",
    "DMA-BUF is available",
    "1",
    "é",
];
const PERFTEST: &[&str] = &[
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n",
    " 65536      5000  92.42   92.40   0.176230\n",
    "RDMA_Write BW Test\n",
    " Device : mlx5_0\n",
    "{\"results\": {",
    "\"MsgSize\": 65536, ",
    "\"BW_average\": 1e308, ",
    "}}",
    "\n",
    "1e999",
    "-1",
    "Couldn't allocate MR\n",
    "\x1b[1m",
    "\u{202e}",
    "Using DMA-BUF\n",
    "--use_cuda=<N>",
    "--report_gbits",
    "é",
    " Dual-port : OFF\n",
];
const SMI: &[&str] = &[
    "<?xml version=\"1.0\"?>",
    "<nvidia_smi_log>",
    "</nvidia_smi_log>",
    "<gpu id=\"00000000:01:00.0\">",
    "</gpu>",
    "<bar1_memory_usage><total>1 MiB</total></bar1_memory_usage>",
    "<product_name>",
    "</product_name>",
    "H100\u{202e}",
    "GPU 00000000:04:00.0\n",
    "    FB Memory Usage\n",
    "        Total : 11172 MiB\n",
    "Driver Version : 384.59\n",
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n",
    "GPU0\t X \tNV1\tPIX\t0-3\t0\n",
    "GPU1\tNV1\t X \tSYS\t0-3\tN/A\n",
    "NIC0\tPIX\tSYS\t X \n",
    "NIC0: mlx5_0\n",
    "\x1b[4m",
    "\n",
    "é",
    "    Product Name : \x07x\n",
    "Unknown Error",
    "[N/A]",
    "&#x1b;",
    "&lt;",
];
const ENV: &[&str] = &[
    "NCCL_IB_DISABLE=",
    "NCCL_NET_GDR_LEVEL=",
    "NCCL_IB_HCA=^=mlx5_0:1,",
    "NCCL_XYZ=1",
    "export ",
    "#",
    "\n",
    "\r\n",
    "\0",
    "SYS",
    "1",
    "-0x7f",
    "\x1b[2J",
    "\u{202e}",
    " ",
    "=",
    "é",
    "9999999999999999999999",
    "NCCL_NET=Socket",
];
const PACKAGES: &[&str] = &[
    "Inst ",
    "Remv ",
    "x",
    " [1.0-1] ",
    "(2:1.0~rc1-1 repo [amd64])",
    "\n",
    "Installing:\n",
    "Removing:\n",
    " x  x86_64  1.0-1  repo  1 M\n",
    "replacing ",
    "Transaction Summary\n",
    "x\t0\t1.0\t1.el9\n",
    "<stream>",
    "</stream>",
    "<install-summary><to-remove>",
    "<solvable name=\"x\" edition=\"1\"/>",
    "</to-remove></install-summary>",
    "<message type=\"error\">",
    "</message>",
    "  Version table:\n",
    " *** 1.0 500\n",
    "     1.1 100\n",
    "Package: x\n",
    "Version: 1.0\n",
    "Status: install ok installed\n",
    "Depends: y (= 1.0)\n",
    "\x1b[2J",
    "\u{202e}",
    "E: ",
    "Problem: ",
    "^",
    "~",
    "é",
    "\t",
    "&#10;",
];
const POLICY: &[&str] = &[
    "version = 1\n",
    "[acs]\n",
    "scope = \"all\"\n",
    "[cmdline]\n",
    "[reboot]\n",
    "coordinator = \"logind\"\n",
    "\"",
    "'",
    "\n",
    "[",
    "]",
    "=",
    ",",
    "0x1",
    "-1",
    "\u{202e}",
    "\u{7f}",
    "é",
    "# \n",
    "[[",
    "]]",
    "true",
    "\"\"\"",
    "{ ",
    " }",
    ".",
    "\\u0000",
    "\r",
    "[trial]\n",
    "bake = \"commit\"\n",
];
const RECORD: &[&str] = &[
    "{",
    "}",
    "\"format\":",
    "1",
    "2",
    ",",
    "\"seq\":",
    "\"txn\":",
    "\"work\":",
    "null",
    "[",
    "]",
    "\"\\u001b\"",
    "\"\u{202e}\"",
    "é",
    "gdr-agent-journal crc32c=00000000 len=00000000\n",
    "99999999999999999999",
];
const REPLY: &[&str] = &[
    "\u{0}\u{0}",
    "\u{1}",
    "{\"kind\": \"",
    "failed_lock",
    "\", \"value\": \"",
    "\"}",
    "\\u001b[2J",
    "\u{202e}",
    "<html>",
    "\x1b",
    "é",
    "\n",
    "x",
];

/// Pieces of a format in any order, and a few bytes of anything.
fn mixed(pieces: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => prop::sample::select(pieces).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Capabilities that point at each other, in an image of any size.
fn space() -> impl Strategy<Value = Vec<u8>> {
    let head = Just(
        [
            0x86, 0x80, 0x34, 0x12, 0, 0, 0x10, 0, 0, 0, 4, 6, 0, 0, 1, 0,
        ]
        .to_vec(),
    );
    let words = prop::collection::vec(
        prop_oneof![
            Just(0_u32),
            (0_u32..0x20, 0_u32..64).prop_map(|(id, next)| next << 22 | 1 << 16 | id),
            any::<u32>()
        ],
        0..1021,
    );
    (head, words).prop_map(|(head, words)| {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        head.into_iter().chain(words).collect()
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn logs(data in mixed(LOG)) { checks::nccl_log(&data); }

    #[test]
    fn outputs_of_perftest(data in mixed(PERFTEST)) { checks::perftest(&data); }

    #[test]
    fn outputs_of_nvidia_smi(data in mixed(SMI)) { checks::nvidia_smi(&data); }

    #[test]
    fn environments(data in mixed(ENV)) { checks::nccl_env(&data); }

    #[test]
    fn archives(data in bytes()) { checks::capture(&data); }

    #[test]
    fn outputs_of_package_managers(data in mixed(PACKAGES)) { checks::packages(&data); }

    #[test]
    fn policies(data in mixed(POLICY)) { checks::policy(&data); }

    #[test]
    fn configuration_spaces(data in space()) { checks::pci_config(&data); }

    #[test]
    fn records(data in mixed(RECORD)) { checks::journal(&data); }

    #[test]
    fn answers_of_a_lock_server(data in mixed(REPLY)) { checks::fleetlock(&data); }

    #[test]
    fn modules(data in bytes()) { checks::kernel_modules(&data); }
}

/// The real files as they are, cut at some places, and with a piece taken out.
fn real(kind: &str, most: usize, check: fn(&[u8])) {
    let Some(root) = std::env::var_os("GDR_CORPUS") else {
        assert!(std::env::var_os("CI").is_none(), "GDR_CORPUS is not set");
        println!("SKIPPED: GDR_CORPUS is not set, {kind} is not tested");
        return;
    };
    let folder = PathBuf::from(root).join(kind);
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let mut data = std::fs::read(entry.unwrap().path()).unwrap();
        data.truncate(most);
        check(&data);
        for part in 1..8 {
            let at = data.len() * part / 8;
            check(&data[..at]);
            check(&[&data[..at], &data[(at + 7).min(data.len())..]].concat());
        }
        count += 1;
    }
    assert!(count > 0, "{kind} is empty");
}

#[test]
fn the_checks_hold_on_the_corpus() {
    real("nccl-logs", 32 << 10, checks::nccl_log);
    real("perftest", 32 << 10, checks::perftest);
    real("nvidia-smi-q", 32 << 10, checks::nvidia_smi);
    real("nvidia-smi-topo", 32 << 10, checks::nvidia_smi);
    real("pci-config", 4096, checks::pci_config);
}
