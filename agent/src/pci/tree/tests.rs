use super::*;
use crate::pci::ConfigBytes;

fn bdf(text: &str) -> Bdf {
    text.parse().unwrap()
}

/// A bridge's first 64 bytes: nothing but header type and bus numbers.
fn bridge_config(primary: u8, secondary: u8, subordinate: u8) -> ConfigBytes {
    let mut bytes = vec![0; 64];
    bytes[0..4].copy_from_slice(&[0x22, 0x10, 0x30, 0xc0]);
    bytes[10..12].copy_from_slice(&[0x04, 0x06]);
    bytes[14] = 1;
    bytes[24..27].copy_from_slice(&[primary, secondary, subordinate]);
    ConfigBytes::whole(&bytes)
}

fn plain_bridge(at: &str, secondary: u8, subordinate: u8) -> RawFunction {
    let mut function = RawFunction::bare(bdf(at));
    function.class = Some(0x06_0400);
    function.config = bridge_config(bdf(at).bus, secondary, subordinate);
    function
}

fn with_path(at: &str, path: &str) -> RawFunction {
    let mut function = RawFunction::bare(bdf(at));
    function.sysfs_path = Some(path.to_owned());
    function
}

fn ancestors(tree: &Tree<'_>, at: &str) -> Vec<String> {
    let id = tree.find(bdf(at)).unwrap();
    tree.upward(id)
        .skip(1)
        .map(|(_, node)| node.bdf.to_string())
        .collect()
}

#[test]
fn sysfs_paths_name_ancestors_and_host() {
    let functions = [
        with_path(
            "0000:17:00.0",
            "devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0",
        ),
        with_path("0000:15:01.0", "devices/pci0000:15/0000:15:01.0"),
    ];
    let tree = Tree::build(&functions);
    assert_eq!(
        ancestors(&tree, "0000:17:00.0"),
        ["0000:16:00.0", "0000:15:01.0"]
    );
    let node = tree.node(tree.find(bdf("0000:17:00.0")).unwrap()).unwrap();
    assert_eq!(
        (node.host, node.depth),
        (
            Host {
                domain: 0,
                bus: 0x15
            },
            2
        )
    );
    // 16:00.0 is not listed: it is there, and nothing about it is known.
    let missing = tree.node(tree.find(bdf("0000:16:00.0")).unwrap()).unwrap();
    assert!(missing.function.is_none());
    assert!(matches!(missing.decoded.acs, Found::Unknown(_)));
    assert_eq!(
        (missing.role, missing.role_inferred),
        (Role::UpstreamPort, true)
    );
}

#[test]
fn a_host_bridge_behind_a_function_starts_anew() {
    let path = "devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0";
    let functions = [with_path("10000:e1:00.0", path)];
    let tree = Tree::build(&functions);
    assert_eq!(ancestors(&tree, "10000:e1:00.0"), ["10000:e0:06.0"]);
    let node = tree.node(tree.find(bdf("10000:e1:00.0")).unwrap()).unwrap();
    assert_eq!(node.host.to_string(), "pci10000:e0");
}

#[test]
fn without_a_host_component_the_first_function_gives_the_root_bus() {
    let functions = [with_path(
        "0004:01:00.0",
        "devices/platform/soc/0004:00:00.0/0004:01:00.0",
    )];
    let tree = Tree::build(&functions);
    let node = tree.node(tree.find(bdf("0004:01:00.0")).unwrap()).unwrap();
    assert_eq!(node.host, Host { domain: 4, bus: 0 });
}

#[test]
fn bus_numbers_stand_in_for_paths() {
    let functions = [
        plain_bridge("0000:00:01.0", 0x01, 0x04),
        plain_bridge("0000:01:00.0", 0x02, 0x04),
        plain_bridge("0000:02:00.0", 0x03, 0x03),
        RawFunction::bare(bdf("0000:03:00.0")),
        RawFunction::bare(bdf("0001:03:00.0")),
        RawFunction::bare(bdf("0000:80:00.0")),
    ];
    let tree = Tree::build(&functions);
    assert_eq!(
        ancestors(&tree, "0000:03:00.0"),
        ["0000:02:00.0", "0000:01:00.0", "0000:00:01.0"]
    );
    let role = |at: &str| tree.node(tree.find(bdf(at)).unwrap()).unwrap().role;
    assert_eq!(role("0000:00:01.0"), Role::RootPort);
    assert_eq!(role("0000:01:00.0"), Role::UpstreamPort);
    assert_eq!(role("0000:02:00.0"), Role::DownstreamPort);
    assert_eq!(role("0000:03:00.0"), Role::Endpoint);
    let host = |at: &str| {
        tree.node(tree.find(bdf(at)).unwrap())
            .unwrap()
            .host
            .to_string()
    };
    assert_eq!(host("0000:03:00.0"), "pci0000:00");
    assert_eq!(host("0001:03:00.0"), "pci0001:03");
    assert_eq!(host("0000:80:00.0"), "pci0000:80");
}

#[test]
fn a_missing_port_leaves_a_gap() {
    let functions = [
        plain_bridge("0000:00:01.0", 0x01, 0x04),
        RawFunction::bare(bdf("0000:03:00.0")),
    ];
    let tree = Tree::build(&functions);
    assert_eq!(ancestors(&tree, "0000:03:00.0"), ["0000:00:01.0"]);
    let node = tree.node(tree.find(bdf("0000:03:00.0")).unwrap()).unwrap();
    assert!(node.gap.as_deref().unwrap().contains("secondary bus 03"));
}

#[test]
fn a_virtual_function_hangs_where_its_physical_function_does() {
    let mut vf = RawFunction::bare(bdf("0000:02:10.0"));
    vf.physfn = Some(bdf("0000:01:00.0"));
    let functions = [
        plain_bridge("0000:00:01.0", 0x01, 0x02),
        RawFunction::bare(bdf("0000:01:00.0")),
        vf,
    ];
    let tree = Tree::build(&functions);
    let node = tree.node(tree.find(bdf("0000:02:10.0")).unwrap()).unwrap();
    assert_eq!(ancestors(&tree, "0000:02:10.0"), ["0000:00:01.0"]);
    assert_eq!(node.gap, None);
}

#[test]
fn nonsense_neither_loops_nor_panics() {
    // Bridges whose buses lead back up, to themselves, or nowhere.
    let functions = [
        plain_bridge("0000:05:00.0", 0x03, 0x09),
        plain_bridge("0000:03:00.0", 0x05, 0x05),
        plain_bridge("0000:06:00.0", 0x06, 0x06),
        plain_bridge("0000:07:00.0", 0x08, 0x02),
    ];
    assert_eq!(Tree::build(&functions).nodes().count(), 4);

    // Paths that name each other as ancestors.
    let functions = [
        with_path(
            "0000:01:00.0",
            "devices/pci0000:00/0000:02:00.0/0000:01:00.0",
        ),
        with_path(
            "0000:02:00.0",
            "devices/pci0000:00/0000:01:00.0/0000:02:00.0",
        ),
        with_path(
            "0000:03:00.0",
            "devices/pci0000:00/0000:01:00.0/0000:03:00.0",
        ),
        with_path(
            "0000:04:00.0",
            "devices/pci0000:00/0000:04:00.0/0000:04:00.0",
        ),
    ];
    let tree = Tree::build(&functions);
    let gaps = tree.nodes().filter(|(_, node)| node.gap.is_some()).count();
    assert_eq!(gaps, 2, "each loop is cut once");
    for (id, _) in tree.nodes() {
        assert!(tree.upward(id).count() <= 4);
    }
}

#[test]
fn paths_that_do_not_end_at_the_function_are_not_believed() {
    let functions = [with_path("0000:01:00.0", "devices/pci0000:00/0000:09:00.0")];
    let tree = Tree::build(&functions);
    assert_eq!(tree.nodes().count(), 1);
}
