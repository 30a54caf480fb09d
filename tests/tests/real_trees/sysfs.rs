//! Copies of `/sys` from real machines, as hwloc's own tests keep them.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use crate::support::Node;

    /// Unpacks an archive and returns the directory in it that holds `sys`.
    fn unpack(archive: &Path, to: &Path) -> PathBuf {
        let status = Command::new("tar")
            .arg("xjf")
            .arg(archive)
            .arg("-C")
            .arg(to)
            .status();
        assert!(
            status.unwrap().success(),
            "{}: tar or bzip2",
            archive.display()
        );
        let mut dirs = std::fs::read_dir(to)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        dirs.find(|dir| dir.join("sys").is_dir()).unwrap()
    }

    fn attribute(root: &Path, bdf: &str, name: &str) -> Option<String> {
        let path = root.join("sys/bus/pci/devices").join(bdf).join(name);
        std::fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    }

    fn functions(root: &Path) -> BTreeSet<String> {
        let Ok(dir) = std::fs::read_dir(root.join("sys/bus/pci/devices")) else {
            return BTreeSet::new();
        };
        dir.map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// A policy whose GPUs are the display controllers and whose NICs are all other devices.
    fn policy(root: &Path) -> String {
        let classes = functions(root);
        let classes = classes
            .iter()
            .filter_map(|bdf| attribute(root, bdf, "class"));
        let mut classes: BTreeSet<String> = classes.map(|class| class[2..6].to_owned()).collect();
        // A list may not be empty.
        classes.insert("0207".into());
        let nics = classes
            .iter()
            .filter(|class| *class != "0604" && *class != "0300");
        let nics: Vec<String> = nics.map(|class| format!("\"*:*/{class}\"")).collect();
        format!(
            "version = 1\n[devices]\ngpu = [\"*:*/0300\"]\nnic = [{}]\n",
            nics.join(", ")
        )
    }

    #[test]
    fn every_collected_tree_is_read_as_it_is() {
        let Some(folder) = crate::corpus("hwloc") else {
            return;
        };
        let mut archives: Vec<PathBuf> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        archives.retain(|path| path.extension().is_some_and(|end| end == "bz2"));
        archives.sort();
        let (mut all, mut links, mut wide) = (0, 0, 0);
        for archive in &archives {
            let dir = tempfile::tempdir().unwrap();
            let root = unpack(archive, dir.path());
            let file = dir.path().join("policy.toml");
            std::fs::write(&file, policy(&root)).unwrap();
            let options = ["--policy", file.to_str().unwrap()];
            let node = Node::at(root.clone());
            node.json(&["facts"], 0);
            node.json(&[&options[..], &["acs", "show"]].concat(), 0);
            for format in ["text", "svg", "html"] {
                let said = node.run(&[&options[..], &["--format", format, "topology"]].concat());
                assert!(
                    said.status.success(),
                    "{}: {format}: {said:?}",
                    archive.display()
                );
            }
            let topology = node.json(&[&options[..], &["topology"]].concat(), 0);
            let mut found = BTreeMap::new();
            for list in ["gpus", "nics", "bridges"] {
                for device in topology[list].as_array().unwrap() {
                    found.insert(
                        device["bdf"].as_str().unwrap().to_owned(),
                        (list, device.clone()),
                    );
                }
            }
            for bdf in functions(&root) {
                let ids = attribute(&root, &bdf, "vendor").zip(attribute(&root, &bdf, "device"));
                // Some copies hold the class only, which says too little to be selected.
                let Some((vendor, device)) = ids else {
                    continue;
                };
                let Some((list, seen)) = found.get(&bdf) else {
                    panic!("{bdf} is in no list")
                };
                let id = format!("{}:{}", &vendor[2..], &device[2..]);
                assert_eq!(seen["id"], id, "{}: {bdf}", archive.display());
                all += 1;
                wide += usize::from(bdf.split(':').next().unwrap().len() > 4);
                if *list == "bridges" {
                    // Without a readable capability the answer is unknown, never "no ACS".
                    assert!(
                        seen["acs_unknown"].is_string(),
                        "{}: {seen}",
                        archive.display()
                    );
                } else {
                    let node = attribute(&root, &bdf, "numa_node")
                        .and_then(|text| text.parse::<i64>().ok());
                    assert_eq!(
                        seen["numa_node"].as_i64(),
                        node.filter(|node| *node >= 0),
                        "{bdf}"
                    );
                }
                if let Some(width) = attribute(&root, &bdf, "current_link_width") {
                    let speed = attribute(&root, &bdf, "current_link_speed").unwrap();
                    assert_eq!(seen["link"]["current_speed"], speed, "{bdf}");
                    assert_eq!(
                        seen["link"]["current_width"].as_u64(),
                        width.parse().ok(),
                        "{bdf}"
                    );
                    let best =
                        attribute(&root, &bdf, "max_link_width").and_then(|text| text.parse().ok());
                    assert_eq!(seen["link"]["max_width"].as_u64(), best, "{bdf}");
                    links += 1;
                }
            }
        }
        println!(
            "{} trees: {all} functions, {links} links, {wide} in domains above ffff",
            archives.len()
        );
        assert!(
            archives.len() >= 5 && all > 100 && links >= 30 && wide >= 1,
            "{all} {links} {wide}"
        );
    }
}
