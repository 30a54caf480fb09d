//! The sample node as a picture: what stands in the documentation, and what clearing ACS makes of it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::path::Path;

use gdr_tests::node::NodeSpec;
use support::Node;

fn picture(node: &Node, format: &str) -> String {
    let output = node.run(&["topology", "--format", format]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Ports and paths of a class.
fn counts(picture: &str, class: &str) -> (usize, usize) {
    let count = |start: String| picture.matches(&start).count();
    let near = count(format!("<g class=\"cell near {class}\" data-about=\"0000:"));
    let far = count(format!("<g class=\"cell {class}\" data-about=\"0000:"));
    (count(format!("<g class=\"port {class}\"")), near + far)
}

#[test]
fn the_documentation_shows_what_the_agent_draws() {
    let drawn = picture(&Node::new(&NodeSpec::default()), "svg");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/topology-hgx8.svg");
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("topology-hgx8.svg");
    std::fs::write(&fresh, &drawn).unwrap();
    assert!(
        std::fs::read_to_string(&file).unwrap() == drawn,
        "the picture has changed: look at it, then cp {} docs/",
        fresh.display()
    );
}

#[test]
fn clearing_acs_turns_the_picture_green() {
    let node = Node::new(&NodeSpec::default());
    let before = picture(&node, "svg");
    assert_eq!(counts(&before, "bad"), (20, 64));
    assert_eq!(counts(&before, "good"), (0, 0));
    assert_eq!(node.run(&["acs", "clear"]).status.code(), Some(0));
    let after = picture(&node, "svg");
    assert_eq!(counts(&after, "bad"), (0, 0));
    assert_eq!(counts(&after, "good"), (20, 64));
    let page = picture(&node, "html");
    assert!(page.contains(&after), "the same picture inside the page");
    assert!(page.contains("Nothing: no port redirects"));
}

#[test]
fn a_kernel_that_does_not_reach_acs_gives_an_amber_picture() {
    let node = Node::new(&NodeSpec {
        config_len: 256,
        ..NodeSpec::default()
    });
    let drawn = picture(&node, "svg");
    assert_eq!(counts(&drawn, "unknown"), (20, 64));
    assert_eq!(counts(&drawn, "good"), (0, 0));
    assert!(picture(&node, "html").contains("which is not the same as fine"));
}

#[test]
fn a_node_without_nics_is_drawn_too() {
    let node = Node::new(&NodeSpec {
        nics: false,
        ..NodeSpec::default()
    });
    let drawn = picture(&node, "svg");
    assert!(drawn.contains("8 GPUs, 0 NICs: no GPU-NIC path."));
    assert_eq!(counts(&drawn, "bad"), (0, 0));
}
