//! What the documentation says is true: its policies are valid, its commands run and print what is shown, its
//! links lead somewhere, and the tests that it names exist.
//!
//! A block that shows commands says in a comment above it what becomes of them:
//!
//! - `<!-- node: KIND SETUP... -->`: they run on a new sample node, whose policy is the last whole one that the
//!   section shows; `same` instead of a kind goes on with the node of the block before. [`nodes`] has both words.
//! - `<!-- run by: NAME -->`: the test or the script of this name runs them.
//! - `<!-- not run: REASON -->`: nothing does, and why.
//!
//! On a node the agent's commands run, and `reboot`, with what is shown compared; all others are made up for by setups,
//! and a line of the comment says `others: WHY`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test looks at the machine from outside"
)]

mod blocks;
mod compare;
mod inline;
mod links;
mod named;
mod nodes;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

use blocks::{Block, Fate};
use nodes::Stage;

fn repository() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    path.unwrap().to_path_buf()
}

/// The pages for users: name from the repository, and text.
fn pages() -> Vec<(String, String)> {
    let root = repository();
    let mut paths = vec![root.join("README.md")];
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    paths.extend(docs.map(|entry| entry.unwrap().path()));
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    paths.sort();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    paths
        .iter()
        .map(|path| (name(path), std::fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn every_command_block_says_what_runs_it() {
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        for block in blocks::of(&page, &text) {
            if let Err(why) = block.fate() {
                wrong.push(format!("{}: {why}", block.at()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_runs_a_block_elsewhere_exists() {
    let sources = named::sources();
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        for block in blocks::of(&page, &text) {
            if let Ok(Fate::RunBy(name)) = block.fate()
                && !repository().join(&name).is_file()
                && !named::is_test(&sources, &name)
            {
                wrong.push(format!("{}: {name} is no file and no test", block.at()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_print_what_is_shown() {
    let mut wrong = Vec::new();
    let mut ran = 0;
    for (page, text) in pages() {
        let mut stage: Option<Stage> = None;
        for block in blocks::of(&page, &text) {
            let Ok(Fate::Node { kind, setups }) = block.fate() else {
                continue;
            };
            if kind != "same" {
                stage = Some(Stage::new(&kind, block.policy.as_deref()));
            }
            let stage = stage
                .as_mut()
                .unwrap_or_else(|| panic!("{}: no node before it", block.at()));
            for setup in &setups {
                stage.set_up(setup);
            }
            for command in block.commands() {
                ran += 1;
                let said = stage.run(&command.line);
                if let Err(why) = compare::check(&command.shown, &said) {
                    wrong.push(format!(
                        "{}: $ {}\n{why}\n--- said\n{said}",
                        block.at(),
                        command.line
                    ));
                }
            }
        }
    }
    assert!(ran > 30, "only {ran} commands were run");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_policy_that_is_shown_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        for block in blocks::of(&page, &text).iter().filter(|b| b.lang == "toml") {
            let policy = dir.path().join("policy.toml");
            let drop_ins = dir.path().join("policy.d");
            std::fs::create_dir_all(&drop_ins).unwrap();
            let whole = Block::is_whole(&block.text);
            let (base, more) = match whole {
                true => (block.text.as_str(), ""),
                false => ("version = 1\n", block.text.as_str()),
            };
            std::fs::write(&policy, base).unwrap();
            std::fs::write(drop_ins.join("50-shown.toml"), more).unwrap();
            let output = std::process::Command::new(support::binary())
                .args(["--format", "json", "policy", "check"])
                .arg(&policy)
                .output()
                .unwrap();
            let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let warnings = said["files"][0]["warnings"].as_array().unwrap();
            // That a file in a temporary directory is not root's is no fault of the page.
            let own = |w: &&serde_json::Value| !w.as_str().unwrap().contains("`apply` will refuse");
            let warned: Vec<_> = warnings.iter().filter(own).collect();
            if said["valid"] != true || !warned.is_empty() {
                wrong.push(format!("{}: {said:#}", block.at()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_recipe_that_names_a_profile_is_that_profile() {
    let dir = tempfile::tempdir().unwrap();
    let digest = |path: &Path| {
        let output = std::process::Command::new(support::binary())
            .args(["--format", "json", "policy", "check"])
            .arg(path)
            .output()
            .unwrap();
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        said["files"][0]["digest"].as_str().unwrap().to_owned()
    };
    let mut seen = std::collections::BTreeSet::new();
    for (page, text) in pages() {
        for block in blocks::of(&page, &text) {
            let Some(name) = block.note("profile:") else {
                continue;
            };
            let shown = dir.path().join("policy.toml");
            std::fs::write(&shown, &block.text).unwrap();
            let ships = repository().join(format!("policy/profiles/{name}.toml"));
            assert_eq!(digest(&shown), digest(&ships), "{}", block.at());
            seen.insert(format!("{name}.toml"));
        }
    }
    let ships = std::fs::read_dir(repository().join("policy/profiles")).unwrap();
    for entry in ships {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(seen.contains(&name), "no recipe shows {name}");
    }
}

#[test]
fn links_lead_to_files_and_headings() {
    let wrong = links::broken(&repository());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_in_the_text_have_the_verbs_and_options_of_the_program() {
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        wrong.extend(inline::unknown(&page, &text));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_threat_model_names_tests_that_exist_or_says_that_there_is_none() {
    let text = std::fs::read_to_string(repository().join("docs/threat-model.md")).unwrap();
    let wrong = named::wrong_rows(&text, &named::sources());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
