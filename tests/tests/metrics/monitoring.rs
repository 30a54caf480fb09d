//! The alerts and the dashboard speak of metrics, states and labels that are really there, and in PromQL.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gdr_tests::node::Reboot;
use regex::Regex;
use serde_json::Value;

use crate::node;

pub fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../packaging")
        .join(name)
}

/// None, with a word about it, where promtool is not installed; in CI it has to be.
fn promtool(args: &[&str], input: &str) -> Option<String> {
    use std::io::Write as _;
    let started = Command::new("promtool")
        .args(args)
        .current_dir(packaging("prometheus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(e) => {
            assert!(std::env::var_os("CI").is_none(), "promtool: {e}");
            println!("SKIPPED: promtool cannot be started ({e}); install the package prometheus");
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    // What asks for no input may end before it is written.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "promtool {args:?}\n{said}");
    Some(said)
}

/// What a node prints on which everything there is has happened.
fn printed() -> String {
    let node = node();
    node.reboot(Reboot::default());
    String::from_utf8(node.run(&["metrics"]).stdout).unwrap()
}

fn found(text: &str, pattern: &str) -> BTreeSet<String> {
    let found = Regex::new(pattern).unwrap();
    found
        .captures_iter(text)
        .map(|each| each[1].to_owned())
        .collect()
}

/// The families, the labels and the states of the real output.
struct Real {
    families: BTreeSet<String>,
    labels: BTreeSet<String>,
    states: BTreeSet<String>,
}

fn real() -> Real {
    let text = printed();
    let mut labels = found(&text, r#"[{,]([a-z_]+)=""#);
    // Whoever scrapes adds these; the last two come with a wait, which this node has not.
    labels.extend(["job", "instance", "file", "kind"].map(str::to_owned));
    Real {
        families: found(&text, r"(?m)^# TYPE ([a-z_]+) "),
        labels,
        states: found(&text, r#"transaction_state\{state="([A-Z_]+)"\}"#),
    }
}

/// Whatever an expression names has to exist.
fn exists(expression: &str, real: &Real) {
    for name in found(expression, r"\b(gdr_agent_[a-z_]+)") {
        assert!(real.families.contains(&name), "{name} in {expression}");
    }
    for label in found(expression, r#"\b([a-z_]+)(?:=~|!~|!=|=)""#) {
        assert!(real.labels.contains(&label), "{label} in {expression}");
    }
    for list in found(expression, r#"\(([a-z_, ]+)\) (?:\(|gdr_|time|up|unless)"#) {
        for label in list.split(", ").filter(|l| !l.starts_with("gdr_agent")) {
            assert!(real.labels.contains(label), "{label} in {expression}");
        }
    }
    for states in found(expression, r#"state=~?"([A-Z_|]+)""#) {
        for state in states.split('|') {
            assert!(real.states.contains(state), "{state} in {expression}");
        }
    }
}

#[test]
fn prometheus_finds_nothing_to_say_about_the_output() {
    let Some(said) = promtool(&["check", "metrics"], &printed()) else {
        return;
    };
    assert_eq!(said.trim(), "");
}

#[test]
fn every_alert_is_tried() {
    let Some(said) = promtool(&["check", "rules", "gdr-agent.rules.yml"], "") else {
        return;
    };
    let rules = std::fs::read_to_string(packaging("prometheus/gdr-agent.rules.yml")).unwrap();
    let alerts = found(&rules, r"(?m)^ +- alert: (\w+)$");
    assert!(said.contains(&format!("{} rules", alerts.len())), "{said}");
    let tests = std::fs::read_to_string(packaging("prometheus/gdr-agent.rules.test.yml")).unwrap();
    let quiet = found(&tests, r"alertname: (\w+), exp_alerts: \[\]");
    let firing = found(
        &tests,
        r"(?m)^ +alertname: (\w+)\n +exp_alerts:\n +- exp_labels",
    );
    // One that fires at once for a state has nothing before it.
    assert_eq!(firing, alerts, "each has to fire in a test");
    assert_eq!(quiet, alerts, "each has to keep quiet in a test");
    promtool(&["test", "rules", "gdr-agent.rules.test.yml"], "");
}

#[test]
fn the_alerts_are_about_what_is_there() {
    let real = real();
    assert_eq!(real.states.len(), 12);
    let rules = std::fs::read_to_string(packaging("prometheus/gdr-agent.rules.yml")).unwrap();
    let expressions = Regex::new(r"(?m)^ {8}expr: (?:>-\n)?((?:.*\n)(?: {10}.*\n)*)").unwrap();
    let mut seen = 0;
    for each in expressions.captures_iter(&rules) {
        exists(&each[1], &real);
        seen += 1;
    }
    assert_eq!(seen, rules.matches("- alert: ").count());
}

fn dashboard() -> Value {
    let text = std::fs::read_to_string(packaging("grafana/gdr-agent.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn texts<'v>(value: &'v Value, key: &str) -> Vec<&'v str> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, inner)| match inner.as_str() {
                Some(text) if name == key => vec![text],
                _ => texts(inner, key),
            })
            .collect(),
        Value::Array(list) => list.iter().flat_map(|inner| texts(inner, key)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_dashboard_asks_for_what_is_there_in_promql() {
    let (real, dashboard) = (real(), dashboard());
    let expressions = texts(&dashboard["panels"], "expr");
    assert!(expressions.len() >= 15);
    let mut rules = String::from("groups:\n  - name: dashboard\n    rules:\n");
    for (number, expression) in expressions.iter().enumerate() {
        exists(expression, &real);
        let filled = expression
            .replace("$job", "node")
            .replace("$instance", ".*");
        assert!(!filled.contains('$'), "an unknown variable: {expression}");
        let quoted = serde_json::to_string(&filled).unwrap();
        rules.push_str(&format!(
            "      - record: panel:{number}\n        expr: {quoted}\n"
        ));
    }
    for query in texts(&dashboard["templating"], "definition") {
        exists(query, &real);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yml");
    std::fs::write(&path, rules).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()], "");
}

/// What Grafana wants of a dashboard's JSON model, and what makes one portable.
#[test]
fn the_dashboard_is_one_that_grafana_imports_anywhere() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36);
    assert_eq!(dashboard["id"], Value::Null, "an id is one server's own");
    assert_eq!(dashboard["uid"], "gdr-agent");
    assert!(dashboard["title"].as_str().is_some_and(|t| !t.is_empty()));
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!(
        (
            &variables[0]["type"],
            &variables[0]["query"],
            &variables[0]["name"]
        ),
        (
            &"datasource".into(),
            &"prometheus".into(),
            &"datasource".into()
        )
    );
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    let mut places: Vec<[u64; 4]> = Vec::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        assert!(
            panel["description"].as_str().is_some_and(|d| !d.is_empty()),
            "{title}"
        );
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            assert_eq!(target["refId"], "A", "{title}");
        }
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|k| panel["gridPos"][k].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{title}");
        for [ox, oy, ow, oh] in &places {
            let apart = x + w <= *ox || ox + ow <= x || y + h <= *oy || oy + oh <= y;
            assert!(apart, "{title} lies on another panel");
        }
        places.push([x, y, w, h]);
    }
}

/// The page has a row for each family, and no other.
#[test]
fn the_page_explains_every_metric() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(
        found(&page, r"(?m)^\| `(gdr_agent_[a-z_]+)"),
        real().families
    );
    let rules = std::fs::read_to_string(packaging("prometheus/gdr-agent.rules.yml")).unwrap();
    assert_eq!(
        found(&page, r"(?m)^\| `(GdrAgent\w+)`"),
        found(&rules, r"(?m)^ +- alert: (\w+)$")
    );
}
