//! The topology as SVG and HTML: complete, true, legible, and harmless whatever the machine is called.
//!
//! The pictures that the tests draw lie in `target/tmp/pictures` afterwards, to be looked at.

use crate::drawing::page::Picture;
use crate::drawing::servers::{Acs, Server};
use crate::support::layout::{GPU, Machine, NIC};
use crate::support::{Space, port, raw};
use gdr_agent::pci::picture::{html, svg};
use gdr_agent::pci::select::Selectors;
use gdr_agent::pci::topology::Topology;
use gdr_agent::pci::tree::Tree;
use gdr_agent::pci::{RawFunction, acs};
use proptest::prelude::*;

fn see(functions: &[RawFunction]) -> Topology {
    let selectors = Selectors {
        gpu: &|vendor, device, _| (vendor, device) == GPU,
        nic: &|vendor, device, _| (vendor, device) == NIC,
    };
    Topology::of(&Tree::build(functions), selectors)
}

/// Draws it, keeps it for people, and checks what holds for every picture.
fn drawn(name: &str, functions: &[RawFunction]) -> (Topology, String) {
    let topology = see(functions);
    let text = svg(&topology);
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(format!("{name}.svg")), &text).unwrap();
    std::fs::write(dir.join(format!("{name}.html")), html(&topology)).unwrap();
    complete_and_legible(&topology, &text);
    harmless(&text);
    harmless(&html(&topology));
    (topology, text)
}

fn complete_and_legible(topology: &Topology, text: &str) {
    let document = roxmltree::Document::parse(text).unwrap();
    let picture = Picture::of(&document);
    picture.assert_legible();
    for (sort, devices) in [("gpu", &topology.gpus), ("nic", &topology.nics)] {
        for device in devices {
            let drawn = picture.only(&device.bdf.to_string());
            assert!(drawn.is(sort), "{drawn:?}");
            assert!(drawn.text.contains(&device.bdf.to_string()), "{drawn:?}");
        }
    }
    for port in topology.bridges.iter().filter(|port| port.on_paths > 0) {
        let drawn = picture.only(&port.bdf.to_string());
        match (&port.acs, &port.acs_unknown) {
            (Some(acs), _) if acs.redirect => {
                assert!(drawn.is("bad") && drawn.text.contains('!'), "{drawn:?}");
                assert!(drawn.text.contains(&acs::short_names(acs.ctl)), "{drawn:?}");
                assert!(picture.description.contains(&port.bdf.to_string()));
            }
            (None, Some(_)) => {
                assert!(drawn.is("unknown") && !drawn.is("good"), "{drawn:?}");
                assert!(drawn.text.contains('?'), "{drawn:?}");
            }
            _ => assert!(drawn.is("good"), "{drawn:?}"),
        }
    }
    for path in &topology.paths {
        let drawn = picture.only(&format!("{} {}", path.gpu, path.nic));
        let (class, mark) = match path.redirected {
            Some(true) => ("bad", "!"),
            Some(false) => ("good", ""),
            None => ("unknown", "?"),
        };
        assert!(drawn.is(class), "{drawn:?}");
        assert_eq!(drawn.text, format!("{}{mark}", path.kind));
    }
    assert_eq!(text, svg(topology), "the same every time");
}

/// Nothing runs, nothing is fetched, whatever the text says.
fn harmless(text: &str) {
    let control = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(control));
    // the character that turns the direction of writing
    assert!(!text.contains('\u{202e}'));
    assert!(!text.contains("<script") && !text.contains("@import"));
    let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
    assert!(!text.replace(namespace, "").contains("http:"));
    let local = text.matches("url(#gdr-hatch)").count();
    assert_eq!(text.matches("url(").count(), local);
    let document = parsed(text);
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let known = "svg title desc style defs pattern rect path polyline text g html head meta body main figure \
                     h1 h2 p section dl div dt dd ul li table caption thead tbody tr th td code small strong br";
        let name = node.tag_name().name();
        assert!(known.split_whitespace().any(|one| one == name), "<{name}>");
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(
                !name.starts_with("on") && !["href", "src", "style"].contains(&name),
                "{name}"
            );
        }
    }
}

fn parsed(text: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(text, options).unwrap()
}

#[test]
fn eight_gpus_and_sixteen_nics_fit_on_one_page() {
    let server = Server::sixteen_nics();
    let (topology, text) = drawn("16-nics", &server.functions());
    assert_eq!((topology.gpus.len(), topology.nics.len()), (8, 16));
    assert_eq!(topology.paths.len(), 128);
    let document = roxmltree::Document::parse(&text).unwrap();
    // A4 landscape with margins of 9 mm is 1054 x 725 pixels of 3/4 point; the smallest text has 10.
    let (width, height) = Picture::of(&document).size;
    let scale = (1054.0 / width).min(725.0 / height);
    println!("{width} x {height}, scale {scale:.2}");
    assert!(10.0 * scale * 0.75 >= 5.5, "{width} x {height}");
}

#[test]
fn long_and_hostile_names_do_no_harm() {
    let mut server = Server::sixteen_nics();
    server.driver("0000:18:00.0", "</text><script>alert(1)</script>");
    server.driver(
        "0000:19:00.0",
        "a_driver_with_a_name_that_is_much_longer_than_any_other",
    );
    server.driver("0000:1a:00.0", "\u{202e}\u{1b}[31m\n\u{0}&amp;\"'");
    server.driver("0000:1b:00.0", "驱动程序");
    server.speed("0000:1a:00.0", "9\"/><script src=//x> and a long tail");
    server.speed("0000:1b:00.0", "Unknown");
    let (_, text) = drawn("hostile", &server.functions());
    assert!(text.contains("&lt;/text&gt;&lt;script&gt;"));
    assert!(
        text.contains("much_longer_than_any_other"),
        "in full where one points at it"
    );
    assert!(text.contains("? link"));
}

#[test]
fn what_cannot_be_read_is_amber_and_never_green() {
    let mut server = Server::sixteen_nics();
    server.acs_everywhere(Acs::Hidden);
    let (topology, text) = drawn("unknown-acs", &server.functions());
    assert!(topology.paths.iter().all(|path| path.redirected.is_none()));
    let document = roxmltree::Document::parse(&text).unwrap();
    let drawn_ones = Picture::of(&document).drawn;
    let green = drawn_ones
        .iter()
        .filter(|drawn| drawn.is("good") && !drawn.about.is_empty());
    assert_eq!(green.count(), 0);
    let page = html(&topology);
    assert!(page.contains("which is not the same as fine"));
    assert!(!page.contains("<td class=\"good\""));
}

#[test]
fn a_gap_in_the_tree_is_drawn_as_one() {
    let mut server = Server::sixteen_nics();
    server.forget("0000:16:00.0");
    let (topology, text) = drawn("gap", &server.functions());
    assert!(
        topology.gpus.iter().any(|gpu| gpu.gap.is_some())
            || topology.bridges.iter().any(|b| b.gap.is_some())
    );
    assert!(text.contains("? ports unknown"));
    let json = serde_json::to_string(&topology).unwrap();
    assert!(!json.contains("\"gap\""), "JSON stays as it was");
}

#[test]
fn narrow_links_and_several_switches() {
    let mut server = Server::cascaded();
    server.narrow("0000:19:00.0", 8);
    server.acs("0000:17:00.0", Acs::Control(0));
    server.acs("0000:17:01.0", Acs::None);
    let (topology, text) = drawn("cascaded", &server.functions());
    assert!(
        topology
            .paths
            .iter()
            .any(|path| path.kind.to_string() == "PXB")
    );
    for said in ["x8 of 16", "ACS all off", "no ACS"] {
        assert!(text.contains(said), "{said}");
    }
}

/// Functions of one device pass their own ACS: then the devices themselves are what redirects.
#[test]
fn a_device_that_redirects_between_its_functions_is_red() {
    let endpoint = |function, id: (u16, u16), class| {
        let bdf = gdr_agent::pci::Bdf::new(0, 0x18, 0, function);
        let space = Space::new(id.0, id.1, class, port::ENDPOINT).multi_function();
        raw(bdf, None, &space.acs(0x5f, 0x1d).bytes())
    };
    let functions = [endpoint(0, GPU, 0x03_0200), endpoint(1, NIC, 0x02_0700)];
    let (topology, text) = drawn("one-device", &functions);
    assert_eq!(topology.paths[0].redirected, Some(true));
    assert!(text.contains("<g class=\"gpu bad\" data-about=\"0000:18:00.0\">"));
    assert!(text.contains("<g class=\"nic bad\" data-about=\"0000:18:00.1\">"));
}

#[test]
fn nothing_to_draw_is_said() {
    let (_, text) = drawn("nothing", &[]);
    assert!(text.contains("No GPU and no NIC match the selectors."));
    let mut server = Server::sixteen_nics();
    server.numa_unknown();
    server.forget_nics();
    let (topology, text) = drawn("no-nic", &server.functions());
    assert!(text.contains("8 GPUs, 0 NICs: no GPU-NIC path."));
    assert!(text.contains("NUMA node unknown"));
    assert!(html(&topology).contains("no GPU-NIC path to judge"));
}

#[test]
fn the_page_holds_the_picture_and_the_same_facts_as_tables() {
    let server = Server::sixteen_nics();
    let topology = see(&server.functions());
    let page = html(&topology);
    assert!(page.contains(&svg(&topology)), "the same SVG");
    let document = parsed(&page);
    let tables: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("table"))
        .collect();
    assert_eq!(tables.len(), 3);
    let cells = |node: &roxmltree::Node<'_, '_>| {
        node.descendants().filter(|n| n.has_tag_name("td")).count()
    };
    assert_eq!(cells(&tables[0]), 128 + 1, "each path, and the corner");
    let headed = tables[0]
        .descendants()
        .filter(|n| n.has_tag_name("th") && n.attribute("scope").is_some());
    assert_eq!(headed.count(), 8 + 16);
    for (gpu, row) in topology.gpus.iter().zip(rows(tables[1])) {
        let codes: Vec<&str> = row
            .descendants()
            .filter(|n| n.has_tag_name("code"))
            .filter_map(|n| n.text())
            .collect();
        for named in gpu.nearest.iter().chain([&gpu.bdf]) {
            assert!(codes.contains(&named.to_string().as_str()), "{codes:?}");
        }
    }
    for said in [
        "gdr-agent acs clear",
        "scope = &quot;paths&quot;",
        "0000:17:00.0 switch downstream port",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

/// The rows of a table's body.
fn rows<'a, 'd>(table: roxmltree::Node<'a, 'd>) -> impl Iterator<Item = roxmltree::Node<'a, 'd>> {
    let body = table.children().find(|n| n.has_tag_name("tbody")).unwrap();
    body.children().filter(roxmltree::Node::is_element)
}

#[test]
fn ports_that_must_keep_their_acs_are_told_apart() {
    let mut server = Server::sixteen_nics();
    server.driver("0000:19:00.0", "vfio-pci");
    let page = html(&see(&server.functions()));
    assert!(page.contains("their ACS is to stay as it is"));
    assert!(page.contains("0000:17:01.0: handed to a virtual machine: 0000:19:00.0"));
}

#[test]
fn the_order_of_the_functions_does_not_matter() {
    let mut functions = Server::sixteen_nics().functions();
    let first = svg(&see(&functions));
    functions.reverse();
    assert_eq!(first, svg(&see(&functions)));
}

#[test]
fn other_commands_refuse_pictures() {
    let root = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_gdr-agent"))
            .arg("--root")
            .arg(root.path())
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    for format in ["svg", "html"] {
        let (code, out, errors) = run(&["facts", "--format", format]);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        let said = match format {
            "svg" => "`--format svg` is a picture, and only `topology` has one",
            _ => "`--format html` is a page, and only `topology` and `doctor` have one",
        };
        assert!(errors.contains(said), "{errors}");
        let (code, out, errors) = run(&["topology", "--format", format]);
        assert_eq!(code, Some(0), "{errors}");
        assert!(out.contains("No GPU and no NIC match the selectors."));
    }
    let (_, help, _) = run(&["topology", "--help"]);
    assert!(help.contains("--format svg"), "{help}");
    let (_, help, _) = run(&["facts", "--help"]);
    assert!(!help.contains("svg"), "{help}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_machine_can_be_drawn(
        choices in proptest::collection::vec(any::<u8>(), 0..300),
        missing in any::<bool>(),
        drivers in proptest::collection::vec(proptest::option::of(".{0,40}"), 4),
    ) {
        let mut functions = Machine::random(&choices, missing).functions();
        for (function, driver) in functions.iter_mut().zip(drivers.iter().cycle()) {
            function.driver.clone_from(driver);
            function.link.current_speed.clone_from(driver);
            function.link.current_width = driver.as_ref().map(|d| d.len() as u32);
        }
        let topology = see(&functions);
        complete_and_legible(&topology, &svg(&topology));
        harmless(&svg(&topology));
        harmless(&html(&topology));
    }
}
