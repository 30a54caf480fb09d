//! Drop-ins, and where values came from.

use gdr_policy::{AcsScope, Coordinator, IommuMode, Origin, load};

use crate::{SAMPLE, source};

fn file(file: &str, line: usize, column: usize) -> Origin {
    Origin::File {
        file: file.to_owned(),
        line,
        column,
    }
}

#[test]
fn the_last_file_wins_per_key() {
    let sources = [
        source(
            "policy.toml",
            "version = 1\n[kernel]\niommu = \"off\"\nset = [\"a\", \"b\"]\n",
        ),
        source(
            "10.toml",
            "\n  kernel.iommu = \"keep\"\nacs = { scope = \"all\" }\n",
        ),
        source(
            "20.toml",
            "[kernel]\nset = [\"c\"]\n[acs]\nscope = \"bridges\"\n",
        ),
    ];
    let loaded = load(&sources).unwrap();
    assert_eq!(loaded.policy.kernel.iommu, IommuMode::Keep);
    assert_eq!(loaded.policy.kernel.set, ["c".parse().unwrap()]);
    assert_eq!(loaded.policy.acs.scope, AcsScope::Bridges);
    assert_eq!(loaded.origins.get("version"), file("policy.toml", 1, 1));
    assert_eq!(loaded.origins.get("kernel.iommu"), file("10.toml", 2, 10));
    assert_eq!(loaded.origins.get("kernel.set"), file("20.toml", 2, 1));
    assert_eq!(loaded.origins.get("acs.scope"), file("20.toml", 4, 1));
    assert_eq!(loaded.origins.get("acs.method"), Origin::Default);

    let reversed = [sources[0].clone(), sources[2].clone(), sources[1].clone()];
    assert_eq!(load(&reversed).unwrap().policy.acs.scope, AcsScope::All);
}

#[test]
fn an_optional_table_may_come_in_pieces() {
    let sources = [
        source(
            "policy.toml",
            "version = 1\nreboot.coordinator = \"fleetlock\"\n",
        ),
        source("10.toml", "[reboot.fleetlock]\ngroup = \"gpu\"\n"),
        source(
            "20.toml",
            "[reboot.fleetlock]\nurl = \"https://lock.example/\"\n",
        ),
    ];
    let reboot = load(&sources).unwrap().policy.reboot;
    assert_eq!(reboot.coordinator, Coordinator::Fleetlock);
    let fleetlock = reboot.fleetlock.unwrap();
    assert_eq!(
        (fleetlock.url.as_str(), fleetlock.group.as_str()),
        ("https://lock.example/", "gpu")
    );

    let without_group = [sources[0].clone(), sources[2].clone()];
    let fleetlock = load(&without_group)
        .unwrap()
        .policy
        .reboot
        .fleetlock
        .unwrap();
    assert_eq!(fleetlock.group.as_str(), "default");
    assert!(load(&sources[..2]).is_err());
}

#[test]
fn an_error_in_an_earlier_file_is_not_mended_by_a_later_one() {
    let sources = [
        source("policy.toml", "version = 1\nkernel.iommu = \"on\"\n"),
        source("10.toml", "kernel.iommu = \"off\"\n"),
    ];
    assert_eq!(load(&sources).unwrap_err().0.len(), 1);
}

#[test]
fn a_conflict_between_files_is_shown_where_it_arose() {
    let sources = [
        source("policy.toml", "version = 1\nkernel.remove = [\"quiet\"]\n"),
        source("10.toml", "kernel.set = [\"quiet\"]\n"),
    ];
    let found = load(&sources).unwrap_err();
    assert_eq!(
        (found.0[0].file.as_str(), found.0[0].line),
        ("policy.toml", 2)
    );
    assert_eq!(found.0.len(), 1);
}

#[test]
fn every_key_has_an_origin() {
    let reboot = "respect_inhibitors = true\ndelay = \"10m\"\nmessage = \"maintenance\"\n";
    let more = "group = \"gpu\"\nca = \"/etc/ca.pem\"\nfailed = \"hold\"\n\n[reboot.gates]\ngpu = \"ignore\"\n\
        windows = [\"Sat 10:00-12:00\"]\ntime_zone = \"+02:00\"\nstop_file = \"/run/stop\"\n\
        stop_url = \"https://ops.example/stop\"\nhook_limit = \"90s\"\n";
    let sample = SAMPLE
        .replace("group = \"gpu\"\n", more)
        .replace("respect_inhibitors = true\n", reboot);
    let loaded = crate::load(&sample).unwrap();
    let keys: Vec<&str> = loaded.origins.iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), 36);
    for (key, origin) in loaded.origins.iter() {
        let Origin::File { line, column, .. } = origin else {
            panic!("{key} has no place")
        };
        let name = key.rsplit('.').next().unwrap();
        let text = sample.lines().nth(line - 1).unwrap();
        assert_eq!(
            text.get(column - 1..column - 1 + name.len()),
            Some(name),
            "{key}"
        );
    }
    let bare = crate::load("version = 1").unwrap().origins;
    assert_eq!(bare.iter().count(), 36);
    assert_eq!(
        bare.iter()
            .filter(|(_, origin)| **origin != Origin::Default)
            .count(),
        1
    );
}
