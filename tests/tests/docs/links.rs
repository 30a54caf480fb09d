//! Links between the pages of the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every link that leads nowhere.
pub fn broken(root: &Path) -> Vec<String> {
    let mut pages = Vec::new();
    find(root, &mut pages);
    assert!(pages.len() > 15, "{pages:?}");
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    let mut wrong = Vec::new();
    for page in &pages {
        for (line, target) in links(&text(page)) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let to = match file {
                "" => page.clone(),
                _ => page.parent().unwrap().join(file),
            };
            let name = page.strip_prefix(root).unwrap().display();
            if !to.exists() {
                wrong.push(format!("{name}:{line}: {target}: there is no such file"));
            } else if !anchor.is_empty() && !anchors(&text(&to)).iter().any(|a| a == anchor) {
                wrong.push(format!("{name}:{line}: {target}: there is no such heading"));
            }
        }
    }
    wrong
}

fn find(dir: &Path, to: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !["target", "shared"].contains(&&*name) {
            find(&path, to);
        } else if name.ends_with(".md") {
            to.push(path);
        }
    }
}

/// Lines outside of fences.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (at, line) in prose(text) {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, behind)) = after.split_once(')') else {
                break;
            };
            out.push((at + 1, target.to_owned()));
            rest = behind;
        }
    }
    out
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
            let slug: String = title.chars().filter(kept).collect();
            let slug = slug.replace(' ', "-");
            let times = seen.entry(slug.clone()).or_default();
            *times += 1;
            match *times {
                1 => slug,
                more => format!("{slug}-{}", more - 1),
            }
        })
        .collect()
}

#[test]
fn headings_have_the_anchors_that_github_gives_them() {
    let page = "# `[reboot.gates]`\n## A b\n```\n# no\n```\n## A b\n";
    assert_eq!(anchors(page), ["rebootgates", "a-b", "a-b-1"]);
    assert_eq!(
        links("[a](b#c) and [d](e)"),
        [(1, "b#c".into()), (1, "e".into())]
    );
}
