use gdr_agent::package::outputs;
use gdr_agent::package::{parse_status, version};

/// Package managers' output: whatever is shown of it commands no terminal, and versions have one order.
pub fn packages(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for change in outputs::changes(&text) {
        super::shown(&change.to_string());
    }
    for problem in outputs::problems(&text) {
        super::shown(&problem.message);
    }
    let mut versions = outputs::versions(&text, "x");
    for package in parse_status(&text) {
        assert!(!package.name.is_empty());
        versions.push(package.version);
    }
    versions.truncate(12);
    for order in [version::dpkg, version::rpm] {
        for a in &versions {
            assert!(order(a, a).is_eq());
            for b in &versions {
                assert_eq!(order(a, b), order(b, a).reverse(), "{a:?} {b:?}");
            }
        }
    }
}
