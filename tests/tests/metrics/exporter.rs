//! The real node_exporter takes the file, on loopback.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gdr_tests::node::Reboot;

use crate::node;

struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .ok()?;
    stream
        .write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.contains("node_textfile_scrape_error").then_some(text)
}

#[test]
fn node_exporter_takes_the_file() {
    let node = node();
    std::fs::create_dir(node.path().join("run/gdr-agent")).unwrap();
    node.reboot(Reboot::default());
    let wrote = node.run(&["metrics", "--textfile", "/run/gdr-agent/metrics.prom"]);
    assert!(wrote.status.success(), "{wrote:?}");
    // Somebody else may take the port before it does; then there is another one.
    for _ in 0..5 {
        let port = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let started = Command::new("prometheus-node-exporter")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(["--collector.disable-defaults", "--collector.textfile"])
            .arg(format!(
                "--collector.textfile.directory={}",
                node.path().join("run/gdr-agent").display()
            ))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut exporter = match started {
            Ok(child) => Exporter(child),
            Err(e) => {
                assert!(std::env::var_os("CI").is_none(), "node_exporter: {e}");
                println!(
                    "SKIPPED: node_exporter cannot be started ({e}); install the package prometheus-node-exporter"
                );
                return;
            }
        };
        let end = Instant::now() + Duration::from_secs(30);
        let text = loop {
            if let Some(text) = get(port) {
                break Some(text);
            }
            if Instant::now() > end || exporter.0.try_wait().unwrap().is_some() {
                break None;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let Some(text) = text else { continue };
        assert!(text.contains("\nnode_textfile_scrape_error 0\n"), "{text}");
        assert!(
            text.contains("node_textfile_mtime_seconds{file=\""),
            "{text}"
        );
        let own = String::from_utf8(node.read("run/gdr-agent/metrics.prom")).unwrap();
        let samples = own.lines().filter(|line| !line.starts_with('#'));
        let mut seen = 0;
        for sample in samples {
            let (name, value) = sample.rsplit_once(' ').unwrap();
            // It sorts the labels, and prints large values its own way.
            let start = name.split('{').next().unwrap();
            let same = text.lines().any(|line| {
                line.starts_with(start)
                    && name
                        .trim_start_matches(start)
                        .trim_matches(['{', '}'])
                        .split("\",")
                        .all(|label| line.contains(label.trim_end_matches('"')))
                    && line
                        .rsplit_once(' ')
                        .is_some_and(|(_, v)| v.parse::<f64>().ok() == value.parse::<f64>().ok())
            });
            assert!(same, "{sample}\n{text}");
            seen += 1;
        }
        assert!(seen > 30, "{own}");
        return;
    }
    panic!("node_exporter does not answer");
}
