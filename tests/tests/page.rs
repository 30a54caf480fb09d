//! The report of `doctor` as a page: what stands where, and what a browser makes of it at the width of a telephone and of a
//! desk, light and dark. The pages lie in `target/tmp/report` afterwards, to be looked at.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use gdr_tests::node::NodeSpec;
use serde_json::Value;
use support::{Node, binary};

fn page(node: &Node, more: &[&str]) -> String {
    let output = Command::new(binary())
        .args(["--format", "html", "--root", ".", "doctor"])
        .args(more)
        .current_dir(node.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A log of many ranks, every third without GPUDirect RDMA on one of its HCAs.
fn log(ranks: usize) -> String {
    let mut text = String::from("n0:1:1 [0] NCCL INFO NCCL version 2.26.2+cuda12.8\n");
    for rank in 0..ranks {
        let host = format!("gpu-node-{:03}", rank / 8);
        for channel in 0..8 {
            let gdr = if rank % 3 == 0 && channel % 8 == rank % 8 {
                ""
            } else {
                "/GDRDMA"
            };
            text.push_str(&format!(
                "{host}:{}:{} [{}] NCCL INFO Channel {channel:02}/0 : {rank}[{}] -> {}[0] [send] via NET/IB/{channel}{gdr}\n",
                1000 + rank,
                2000 + rank,
                rank % 8,
                rank % 8,
                (rank + 8) % ranks,
            ));
        }
    }
    text
}

fn healthy() -> Node {
    let node = Node::new(&NodeSpec {
        cmdline: "console=tty0 intel_iommu=on iommu=pt".into(),
        ..NodeSpec::default()
    });
    assert!(node.run(&["acs", "clear"]).status.success());
    node
}

const HOSTILE: &str = "n1:1:2 [0] NCCL INFO <script>alert(1)</script><img src=https://example.com/x onerror=x> \
    \u{1b}]0;x\u{7}\u{202e}\u{2066} NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 '<b>mlx5_0'\n\
    n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n\
    n1:1:2 [0] NCCL WARN NET/IB : No device found. </details></main><script>\n";

/// Hosts, HCAs, networks and settings with markup in their names.
const NAMES: &str = "EVIL:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'EVIL'
EVIL:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/EVIL/0
EVIL:1:2 [0] NCCL INFO NCCL_EVIL set by environment to EVIL.
EVIL:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId EVIL - Init COMPLETE
EVIL:1:2 [0] NCCL WARN NET/IB : Got completion from peer EVIL with status=12 opcode=0 len=0 vendor err 129 (Send) hca EVIL
";

/// Every page that is looked at, by name.
fn pages() -> Vec<(&'static str, String)> {
    let mut pages = vec![
        ("healthy", page(&healthy(), &[])),
        ("acs", page(&Node::new(&NodeSpec::default()), &[])),
    ];
    for (name, text) in [
        ("ranks-64", log(64)),
        ("ranks-1536", log(1536)),
        ("hostile", HOSTILE.to_owned()),
    ] {
        let node = Node::new(&NodeSpec::default());
        node.write("job.log", text.as_bytes());
        node.write("proc/4242.log", b"");
        pages.push((name, page(&node, &["--nccl-log", "job.log"])));
    }
    let node = Node::new(&NodeSpec::default());
    let evil = "\"\'><script>x<script><img src=y onerror=z>";
    let (job, perftest) = (format!("{evil}.log"), format!("{evil}.txt"));
    node.write(&job, NAMES.replace("EVIL", evil).as_bytes());
    node.write(
        &perftest,
        format!("initializing CUDA\n Device : {evil}\nCouldn't allocate MR {evil}\n").as_bytes(),
    );
    node.write(
        "etc/os-release",
        format!("ID=debian\nPRETTY_NAME='{evil}'\n").as_bytes(),
    );
    node.write(
        "etc/nccl.conf",
        format!("NCCL_IB_HCA={evil}\nNCCL_{evil}=1\n").as_bytes(),
    );
    node.write(
        "proc/sys/kernel/osrelease",
        format!("6.1-{evil}\n").as_bytes(),
    );
    let text = page(&node, &["--nccl-log", &job, "--perftest", &perftest]);
    assert!(text.contains("&lt;script&gt;"), "the names are on the page");
    pages.push(("names", text));
    let dir = directory();
    for (name, text) in &pages {
        std::fs::write(dir.join(format!("{name}.html")), text).unwrap();
    }
    pages
}

fn directory() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn nothing_is_loaded_and_nothing_of_outside_is_obeyed() {
    for (name, text) in pages() {
        assert!(text.contains("default-src 'none'"), "{name}");
        let lower = text.to_lowercase();
        for bad in [
            "<script",
            "<img",
            "<iframe",
            "<link",
            "<object",
            "<embed",
            "@import",
            "url(http",
            "src=\"",
            " onerror=\"",
            "javascript:",
        ] {
            assert!(!lower.contains(bad), "{name}: {bad}");
        }
        for (at, _) in lower.match_indices("href=\"") {
            assert!(
                lower[at..].starts_with("href=\"#"),
                "{name}: {}",
                &text[at..at + 60]
            );
        }
        let visible = |c: char| c == '\n' || !c.is_control();
        assert!(text.chars().all(visible), "{name}");
        assert!(!text.contains(['\u{202e}', '\u{2066}', '\u{1b}']), "{name}");
    }
    let all = pages();
    let (_, hostile) = all.iter().find(|(name, _)| *name == "hostile").unwrap();
    assert!(
        hostile.contains("&lt;script&gt;"),
        "the line is shown all the same"
    );
    assert!(
        hostile.contains("\\u{202e}"),
        "and what turns it is spelled out"
    );
}

#[test]
fn what_to_do_comes_before_everything_else() {
    let text = page(&Node::new(&NodeSpec::default()), &[]);
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} is not there"))
    };
    let order = [
        at("<h1>"),
        at("class=\"verdict bad\""),
        at("<h2>What to do"),
        at("acs.redirect"),
        at("<h2>Paths between"),
        at("<h2>Every answer"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    let node = healthy();
    let json: Value =
        serde_json::from_slice(&node.run(&["--format", "json", "doctor"]).stdout).unwrap();
    let healthy = page(&node, &[]);
    assert!(healthy.contains("class=\"verdict good\""));
    // every check is there
    let rows = healthy.matches("<tr><td class=").count();
    assert_eq!(rows, json["checks"].as_array().unwrap().len());
}

#[test]
fn thousands_of_ranks_are_rows_of_hosts() {
    let rows = |ranks: usize| {
        let node = healthy();
        node.write("job.log", log(ranks).as_bytes());
        let text = page(&node, &["--nccl-log", "job.log"]);
        let table = text
            .split("class=\"heat\"")
            .nth(1)
            .unwrap()
            .split("</table>")
            .next()
            .unwrap()
            .to_owned();
        (
            table.matches("<th scope=\"row\">").count(),
            table,
            text.len(),
        )
    };
    let (few, table, _) = rows(64);
    assert_eq!(few, 64);
    // rank 0 has its one record of HCA 0 without; rank 1 has all with
    assert!(
        table.contains("<td class=\"bad\">0/1 !</td>")
            && table.contains("<td class=\"good\">1/1</td>"),
        "{table}"
    );
    let (hosts, table, _) = rows(1024);
    assert_eq!(hosts, 128);
    assert!(table.contains("1024 ranks: each row is a host"), "{table}");
    let (most, table, size) = rows(4096);
    assert_eq!(most, 128);
    assert!(
        table.contains("Of 512 rows these are the 128 with the most"),
        "{table}"
    );
    assert!(size < 2 << 20, "{size} bytes");
}

/// Looks at the page from inside. The copy that it is put into has no policy against scripts.
const PROBE: &str = r#"<pre id="probe"></pre><script>
const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
const over = (a, b) => [0,1,2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
const ground = e => { let stack = []; for (; e; e = e.parentElement) stack.push(parse(getComputedStyle(e).backgroundColor));
  return stack.reverse().reduce((under, c) => over(c, under), matchMedia('(prefers-color-scheme:dark)').matches ? [0,0,0,1] : [255,255,255,1]); };
const lum = c => { const f = v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
  return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
const folded = [...document.querySelectorAll('details')];
const closed = folded.filter(d => !d.open).length;
folded.forEach(d => d.open = true);
const low = []; let texts = 0;
for (const e of document.querySelectorAll('main *')) {
  if (e.closest('svg')) continue;
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
  texts++;
  const r = ratio(parse(getComputedStyle(e).color), ground(e));
  if (r < 4.5) low.push([e.tagName, e.className, e.textContent.slice(0, 30), r.toFixed(2)]);
}
const heads = [...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1]);
const rules = [...document.styleSheets].flatMap(s => [...s.cssRules]);
document.getElementById('probe').textContent = 'PROBE' + JSON.stringify({
  width: document.documentElement.clientWidth, scroll: document.documentElement.scrollWidth, closed, folded: folded.length,
  low, texts, heads, dark: matchMedia('(prefers-color-scheme:dark)').matches, page: getComputedStyle(document.body).backgroundColor,
  loaded: performance.getEntriesByType('resource').map(r => r.name),
  small: [...document.querySelectorAll('summary')].filter(s => s.getBoundingClientRect().height < 24).length,
  print: rules.filter(r => r.media && r.media.mediaText === 'print').map(r => r.cssText).join('\n'),
}) + 'EBORP';
</script>"#;

fn chromium() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            Command::new(name)
                .arg("--version")
                .output()
                .is_ok_and(|o| o.status.success())
        });
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "chromium is missing, and in CI every test runs"
        );
        println!("SKIPPED: chromium is missing (apt-get install chromium)");
    }
    found
}

fn browser(program: &str, profile: &Path, more: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command
        .args([
            "120",
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(more);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn in_a_browser() {
    let Some(program) = chromium() else { return };
    let dir = directory();
    for (name, text) in pages() {
        let policy = text.find("<meta http-equiv").unwrap();
        let end = policy + text[policy..].find('>').unwrap() + 1;
        let copy = format!("{}{}", &text[..policy], &text[end..])
            .replace("</body>", &format!("{PROBE}</body>"));
        let file = dir.join(format!("{name}-probe.html"));
        std::fs::write(&file, copy).unwrap();
        let url = format!("file://{}", file.display());
        // Chromium's window is 500 pixels wide at least; a frame is as narrow as it is told to be.
        let frame = dir.join(format!("{name}-frame.html"));
        for (width, dark) in [(390, false), (1280, false), (1280, true)] {
            std::fs::write(&frame, format!("<!DOCTYPE html><style>body{{margin:0}}</style><iframe style=\"border:0\" width=\"{width}\" height=\"800\" src=\"{url}\"></iframe><script>onload=()=>setTimeout(()=>document.body.append(frames[0].document.getElementById('probe').textContent),50)</script>")).unwrap();
            let profile = tempfile::tempdir().unwrap();
            let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
            let at = format!("file://{}", frame.display());
            let dom = browser(
                program,
                profile.path(),
                &[
                    &scheme,
                    "--window-size=1400,900",
                    "--allow-file-access-from-files",
                    "--virtual-time-budget=5000",
                    "--dump-dom",
                    &at,
                ],
            );
            let found = dom
                .split("PROBE")
                .nth(1)
                .and_then(|rest| rest.split("EBORP").next());
            let found = found.unwrap_or_else(|| panic!("{name} {width}: no answer in {dom}"));
            let found = found
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&");
            let seen: Value = serde_json::from_str(&found).unwrap();
            let what = format!("{name} {width} dark {dark}: {seen:#}");
            assert_eq!(seen["width"], width, "{what}");
            assert!(
                seen["scroll"].as_u64() <= Some(width),
                "it scrolls sideways: {what}"
            );
            assert_eq!(seen["dark"], dark, "{what}");
            let ground = if dark {
                "rgb(13, 17, 23)"
            } else {
                "rgb(255, 255, 255)"
            };
            assert_eq!(seen["page"], ground, "{what}");
            assert_eq!(
                seen["low"],
                Value::Array(Vec::new()),
                "too little contrast: {what}"
            );
            assert!(seen["texts"].as_u64() > Some(30), "{what}");
            assert_eq!(seen["loaded"], Value::Array(Vec::new()), "{what}");
            assert!(
                seen["folded"].as_u64() > Some(5) && seen["closed"] == seen["folded"],
                "{what}"
            );
            assert_eq!(seen["small"], 0, "too small for a finger: {what}");
            assert!(
                seen["print"].as_str().unwrap().contains("details-content"),
                "{what}"
            );
            let heads: Vec<u64> = seen["heads"]
                .as_array()
                .unwrap()
                .iter()
                .map(|h| h.as_u64().unwrap())
                .collect();
            assert_eq!(heads.iter().filter(|h| **h == 1).count(), 1, "{what}");
            assert!(
                heads[0] == 1 && heads.windows(2).all(|two| two[1] <= two[0] + 1),
                "{what}"
            );
        }
    }
}

/// What is folded on the screen is on paper all the same.
#[test]
fn paper_has_what_is_folded() {
    let Some(program) = chromium() else { return };
    let file = directory().join("acs.html");
    pages();
    let pdf = directory().join("acs.pdf");
    let profile = tempfile::tempdir().unwrap();
    let to = format!("--print-to-pdf={}", pdf.display());
    browser(
        program,
        profile.path(),
        &[
            &to,
            "--no-pdf-header-footer",
            &format!("file://{}", file.display()),
        ],
    );
    let full = std::fs::metadata(&pdf).unwrap().len();
    // The same page without what is folded.
    let text = std::fs::read_to_string(&file).unwrap();
    let less: String = text
        .split("<details>")
        .enumerate()
        .map(|(at, part)| match at {
            0 => part.to_owned(),
            _ => part.split_once("</details>").unwrap().1.to_owned(),
        })
        .collect();
    let short = directory().join("acs-short.html");
    std::fs::write(&short, less).unwrap();
    let short_pdf = directory().join("acs-short.pdf");
    let to = format!("--print-to-pdf={}", short_pdf.display());
    browser(
        program,
        profile.path(),
        &[
            &to,
            "--no-pdf-header-footer",
            &format!("file://{}", short.display()),
        ],
    );
    let pages_of = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.matches("/Type /Page\n").count()
    };
    let (long, short) = (pages_of(&pdf), pages_of(&short_pdf));
    assert!(
        long > short + 1,
        "{long} pages with what is folded, {short} without; {full} bytes"
    );
}
