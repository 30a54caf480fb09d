//! Topology and ACS decisions as text for people.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::clear::{AcsPlan, Action};
use super::topology::{Bridge, Device, Path, Topology};
use super::tree::Role;
use super::{Bdf, Link, acs};
use crate::plain::counted;

/// Styles for the text; [`Styles::default`] is plain.
#[derive(Debug, Clone, Copy, Default)]
pub struct Styles {
    /// Headings.
    pub head: Style,
    /// What keeps GPUDirect from being direct.
    pub bad: Style,
    /// What is as it should be.
    pub good: Style,
    /// What is not known or refused.
    pub warn: Style,
    /// What matters less.
    pub dim: Style,
}

impl Styles {
    /// Styles for a terminal.
    #[must_use]
    pub fn coloured() -> Self {
        let colour = |colour: AnsiColor| colour.on_default();
        Self {
            head: Style::new().bold(),
            bad: colour(AnsiColor::Red).bold(),
            good: colour(AnsiColor::Green),
            warn: colour(AnsiColor::Yellow),
            dim: Style::new().dimmed(),
        }
    }
}

fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The tree of everything above a GPU or NIC, then the matrix of paths.
#[must_use]
pub fn topology(topology: &Topology, styles: Styles) -> String {
    let mut text = String::new();
    if topology.gpus.is_empty() && topology.nics.is_empty() {
        text.push_str("No GPU and no NIC match the selectors.\n");
        return text;
    }
    tree(&mut text, topology, styles);
    matrix(&mut text, topology, styles);
    text
}

/// One line of the tree.
enum Item<'a> {
    Bridge(&'a Bridge),
    Device(&'a Device, &'static str),
}

impl Item<'_> {
    fn place(&self) -> (Bdf, Option<Bdf>, &str) {
        match self {
            Item::Bridge(bridge) => (bridge.bdf, bridge.parent, &bridge.host),
            Item::Device(device, _) => (device.bdf, device.parent, &device.host),
        }
    }

    fn line(&self, styles: Styles) -> String {
        match self {
            Item::Bridge(bridge) => format!(
                "{} {}{}{}",
                bridge.bdf,
                paint(styles.dim, bridge.role.words()),
                link(&bridge.link),
                port_acs(bridge, styles)
            ),
            Item::Device(device, sort) => format!(
                "{} {} {}{}{}",
                device.bdf,
                paint(styles.head, sort),
                device.id,
                link(&device.link),
                device
                    .driver
                    .as_ref()
                    .map_or_else(String::new, |driver| format!("  {driver}"))
            ),
        }
    }
}

fn port_acs(bridge: &Bridge, styles: Styles) -> String {
    if bridge.on_paths == 0 && !bridge.role.redirects_peers() {
        return String::new();
    }
    match (&bridge.acs, &bridge.acs_unknown) {
        (Some(acs), _) => {
            let names = format!("ACS {}", acs::short_names(acs.ctl));
            let style = match (acs.redirect, bridge.on_paths) {
                (false, _) => styles.good,
                (true, 0) => styles.dim,
                (true, _) => styles.bad,
            };
            let word = if acs.redirect { " redirects" } else { "" };
            format!("  {}", paint(style, &format!("{names}{word}")))
        }
        (None, Some(why)) => format!("  {}", paint(styles.warn, &format!("ACS unknown: {why}"))),
        (None, None) => format!("  {}", paint(styles.dim, "no ACS")),
    }
}

fn link(link: &Link) -> String {
    let speed = link
        .current_speed
        .as_deref()
        .map(|speed| speed.trim_end_matches(" PCIe"));
    match (speed, link.current_width) {
        (Some(speed), Some(width)) if width > 0 => {
            let narrower = link.max_width.is_some_and(|max| max < 255 && width < max);
            let of = if narrower {
                format!(" of x{}", link.max_width.unwrap_or(0))
            } else {
                String::new()
            };
            format!("  {speed} x{width}{of}")
        }
        _ => String::new(),
    }
}

fn tree(text: &mut String, topology: &Topology, styles: Styles) {
    let gpus = topology
        .gpus
        .iter()
        .map(|device| Item::Device(device, "GPU"));
    let nics = topology
        .nics
        .iter()
        .map(|device| Item::Device(device, "NIC"));
    let bridges = topology
        .bridges
        .iter()
        .filter(|bridge| bridge.devices_below > 0 && bridge.role != Role::Endpoint)
        .map(Item::Bridge);
    let mut hosts: BTreeMap<&str, Vec<Bdf>> = BTreeMap::new();
    let mut children: BTreeMap<Bdf, Vec<Bdf>> = BTreeMap::new();
    let items: BTreeMap<Bdf, Item<'_>> = gpus
        .chain(nics)
        .chain(bridges)
        .map(|item| (item.place().0, item))
        .collect();
    for item in items.values() {
        let (bdf, parent, host) = item.place();
        match parent.filter(|parent| items.contains_key(parent)) {
            Some(parent) => children.entry(parent).or_default().push(bdf),
            None => hosts.entry(host).or_default().push(bdf),
        }
    }
    for (host, roots) in hosts {
        let nodes: HashSet<i32> = topology
            .gpus
            .iter()
            .chain(&topology.nics)
            .filter(|device| device.host == host)
            .filter_map(|device| device.numa_node)
            .collect();
        let mut nodes: Vec<String> = nodes.iter().map(i32::to_string).collect();
        nodes.sort_unstable();
        let numa = if nodes.is_empty() {
            String::new()
        } else {
            format!("  NUMA node {}", nodes.join(", "))
        };
        let _ = writeln!(text, "{}{numa}", paint(styles.head, host));
        // An explicit stack: the depth of a damaged tree is not ours to trust.
        let mut stack: Vec<(Bdf, String, bool)> = Vec::new();
        push(&mut stack, &roots, "");
        while let Some((bdf, indent, last)) = stack.pop() {
            let Some(item) = items.get(&bdf) else {
                continue;
            };
            let elbow = if last { "└─" } else { "├─" };
            let _ = writeln!(text, "{indent}{elbow} {}", item.line(styles));
            if let Some(below) = children.get(&bdf) {
                let bar = if last { "   " } else { "│  " };
                push(&mut stack, below, &format!("{indent}{bar}"));
            }
        }
    }
}

fn push(stack: &mut Vec<(Bdf, String, bool)>, siblings: &[Bdf], indent: &str) {
    for (from_last, bdf) in siblings.iter().rev().enumerate() {
        stack.push((*bdf, indent.to_owned(), from_last == 0));
    }
}

fn matrix(text: &mut String, topology: &Topology, styles: Styles) {
    if topology.paths.is_empty() {
        let _ = writeln!(text, "\nNo GPU-NIC paths.");
        return;
    }
    let gpu_width = topology
        .gpus
        .iter()
        .map(|g| g.bdf.to_string().len())
        .max()
        .unwrap_or(0);
    let _ = write!(text, "\n{:gpu_width$}", "");
    for nic in &topology.nics {
        let _ = write!(text, "  {}", nic.bdf);
    }
    text.push('\n');
    let mut cells: BTreeMap<(Bdf, Bdf), &Path> = BTreeMap::new();
    for path in &topology.paths {
        cells.insert((path.gpu, path.nic), path);
    }
    for gpu in &topology.gpus {
        let _ = write!(text, "{:gpu_width$}", gpu.bdf);
        for nic in &topology.nics {
            let width = nic.bdf.to_string().len();
            let Some(path) = cells.get(&(gpu.bdf, nic.bdf)) else {
                continue;
            };
            let (mark, style) = match path.redirected {
                Some(true) => ("!", styles.bad),
                Some(false) => ("", styles.good),
                None => ("?", styles.warn),
            };
            let cell = format!("{:width$}", format!("{}{mark}", path.kind));
            let _ = write!(text, "  {}", paint(style, &cell));
        }
        text.push('\n');
    }
    let count = |state: Option<bool>| {
        topology
            .paths
            .iter()
            .filter(|path| path.redirected == state)
            .count()
    };
    let _ = writeln!(
        text,
        "\n{}: {} direct, {} redirected by ACS (!), {} unknown (?)",
        counted(topology.paths.len(), "path"),
        count(Some(false)),
        count(Some(true)),
        count(None)
    );
}

/// The ports with their ACS and what is or would be done, aligned. Refusals and notes are the
/// caller's to print.
#[must_use]
pub fn acs_table(plan: &AcsPlan, topology: &Topology, styles: Styles) -> String {
    let mut rows: Vec<[String; 4]> = vec![["PORT", "ACS", "STATE", "WHY"].map(str::to_owned)];
    let mut looks = vec![styles.head];
    for port in &plan.ports {
        let control = match (port.ctl, topology.bridge(port.bdf)) {
            (Some(ctl), _) => format!("{ctl:04x} {}", acs::short_names(ctl)),
            (None, Some(bridge)) if bridge.acs_unknown.is_some() => "?".to_owned(),
            _ => "-".to_owned(),
        };
        let redirects = port.ctl.is_some_and(acs::redirects);
        let (state, look) = match port.action {
            Action::Clear => ("redirects", styles.bad),
            Action::AlreadyClear if redirects => ("kept by the policy's mask", styles.warn),
            Action::AlreadyClear => ("direct", styles.good),
            Action::NoCapability => ("no ACS", styles.good),
            Action::Unknown => ("unknown", styles.warn),
            Action::OffPath => ("off path", styles.dim),
            Action::Refused => ("redirects, refused", styles.bad),
            Action::LeftAlone => ("redirects, left alone", styles.warn),
        };
        rows.push([
            port.bdf.to_string(),
            control,
            state.to_owned(),
            port.reason.clone(),
        ]);
        looks.push(look);
    }
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(String::len)
            .max()
            .unwrap_or(0)
    };
    let (first, second, third) = (width(0), width(1), width(2));
    let mut text = String::new();
    for ([port, control, state, why], look) in rows.iter().zip(looks) {
        let line = format!("{port:first$}  {control:second$}  {state:third$}  {why}");
        let _ = writeln!(text, "{}", paint(look, line.trim_end()));
    }
    text
}
