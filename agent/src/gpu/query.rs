//! `nvidia-smi -q`, as text and as XML (`-x`), brought to one form: paths and values.

use std::collections::HashMap;

use crate::plain::{clean, shown};

/// GPUs and values of each that are kept.
const GPUS: usize = 256;
const VALUES: usize = 4096;

/// What is said of the machine, and of each GPU.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) machine: HashMap<String, String>,
    pub(super) gpus: Vec<(String, HashMap<String, String>)>,
}

fn put(values: &mut HashMap<String, String>, path: String, value: &str) {
    if values.len() < VALUES {
        values.entry(path).or_insert_with(|| shown(value));
    }
}

/// From XML: `<gpu id="00000000:01:00.0"><bar1_memory_usage><total>65536 MiB</total>`. Paths are the names of the elements.
pub(super) fn xml(text: &str) -> Result<Query, String> {
    let options = roxmltree::ParsingOptions {
        // the document names its DTD, which is not looked at
        allow_dtd: true,
        nodes_limit: 1 << 20,
        ..roxmltree::ParsingOptions::default()
    };
    let document =
        roxmltree::Document::parse_with_options(text, options).map_err(|e| e.to_string())?;
    let root = document.root_element();
    if root.tag_name().name() != "nvidia_smi_log" {
        return Err(format!(
            "it is no nvidia_smi_log but `{}`",
            shown(root.tag_name().name())
        ));
    }
    let mut query = Query::default();
    for child in root.children().filter(roxmltree::Node::is_element) {
        if child.tag_name().name() != "gpu" {
            put(
                &mut query.machine,
                child.tag_name().name().to_owned(),
                child.text().unwrap_or_default(),
            );
            continue;
        }
        let mut values = HashMap::new();
        for node in child
            .descendants()
            .filter(roxmltree::Node::is_element)
            .skip(1)
            .take(VALUES)
        {
            if node.children().any(|n| n.is_element()) {
                continue;
            }
            // values lie four elements deep at most; what is deeper are processes and MIG devices
            let mut names: Vec<&str> = node
                .ancestors()
                .take(5)
                .take_while(|n| *n != child)
                .map(|n| n.tag_name().name())
                .collect();
            names.reverse();
            if names.len() < 5 {
                put(
                    &mut values,
                    names.join("/"),
                    node.text().unwrap_or_default(),
                );
            }
        }
        if query.gpus.len() < GPUS {
            query
                .gpus
                .push((shown(child.attribute("id").unwrap_or_default()), values));
        }
    }
    Ok(query)
}

/// From text: the depth of a line is its indentation, `BAR1 Memory Usage` a heading, `Total : 65536 MiB` a value.
pub(super) fn text(bytes: &[u8]) -> Query {
    let mut query = Query::default();
    // indentation and name of the headings above
    let mut above: Vec<(usize, String)> = Vec::new();
    for line in bytes.split(|b| *b == b'\n') {
        let line = clean(line);
        let name = line.trim_start();
        let indent = line.len() - name.len();
        if name.is_empty() {
            continue;
        }
        if indent == 0 {
            above.clear();
            if let Some(id) = name
                .strip_prefix("GPU ")
                .filter(|id| id.contains(':') && id.contains('.'))
            {
                if query.gpus.len() < GPUS {
                    query.gpus.push((shown(id), HashMap::new()));
                }
                continue;
            }
        }
        while above.last().is_some_and(|(depth, _)| *depth >= indent) {
            above.pop();
        }
        let (name, value) = match name.split_once(" :").or_else(|| name.split_once(':')) {
            Some((name, value)) => (name.trim_end(), Some(value.trim())),
            None => (name, None),
        };
        let Some(value) = value else {
            if above.len() < 8 {
                above.push((indent, shown(name)));
            }
            continue;
        };
        let mut path: Vec<&str> = above.iter().map(|(_, name)| name.as_str()).collect();
        path.push(name);
        let path = path.join("/");
        match query.gpus.last_mut() {
            Some((_, values)) if indent > 0 => put(values, path, value),
            Some(_) => {}
            None => put(&mut query.machine, path, value),
        }
    }
    query
}
