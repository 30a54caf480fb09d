//! Manual pages and completions, judged by the programs that read them.

use std::path::Path;
use std::process::Command;

use crate::common::{both, can_install, ok, xtask};

fn generated() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    ok(xtask().arg("generate").arg(dir.path()));
    dir
}

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.sort();
    all
}

#[test]
fn manual_pages_are_without_a_warning_and_name_no_hidden_verb() {
    if !can_install(&["man", "mandoc"]) {
        return;
    }
    let dir = generated();
    let pages = files(&dir.path().join("man"));
    for verb in [
        "gdr-agent",
        "gdr-agent-apply",
        "gdr-agent-acs-clear",
        "gdr-agent-nccl-log",
    ] {
        let name = format!("{verb}.8");
        assert!(pages.iter().any(|page| page.ends_with(&name)), "{name}");
    }
    assert!(
        !pages
            .iter()
            .any(|page| page.to_string_lossy().contains("agent-boot"))
    );
    for page in &pages {
        let man = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l"])
            .arg(page)
            .env("MANROFFSEQ", "")
            .env("MANWIDTH", "80")
            .output()
            .unwrap();
        assert!(
            man.status.success() && man.stderr.is_empty(),
            "{}",
            both(&man)
        );
        assert!(man.stdout.len() > 300, "{}", page.display());
        let lint = Command::new("mandoc")
            .args(["-Tlint", "-Wwarning"])
            .arg(page)
            .output()
            .unwrap();
        assert!(
            lint.status.success() && lint.stdout.is_empty(),
            "{}",
            both(&lint)
        );
    }
}

#[test]
fn the_policy_page_has_every_key_that_the_starter_has() {
    let dir = generated();
    let page = std::fs::read_to_string(dir.path().join("man/gdr-agent-policy.5")).unwrap();
    let (keys, example) = page.split_once(".SH EXAMPLE").unwrap();
    let starter = gdr_policy::starter();
    assert!(example.lines().count() >= starter.lines().count());
    for line in starter.lines() {
        let line = line.trim_start_matches("# ").replace('-', "\\-");
        if let Some(table) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            assert!(keys.contains(&format!(".SH [{table}]\n")), "{table}");
        } else if let Some((key, _)) = line.split_once(" = ")
            && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        {
            assert!(keys.contains(&format!("\\fB{key}\\fR\n")), "{key}");
        }
    }
}

#[test]
fn completions_load_in_their_shells_and_offer_verbs_that_people_call() {
    if !can_install(&["bash", "zsh", "fish"]) {
        return;
    }
    let dir = generated();
    let script = |shell: &str| dir.path().join("completions").join(shell);
    for shell in ["bash", "zsh", "fish"] {
        let text = std::fs::read_to_string(script(shell)).unwrap();
        for hidden in ["thaw-guard", "uninstall", "peermem-off"] {
            assert!(!text.contains(hidden), "{shell}: {hidden}");
        }
    }
    ok(Command::new("zsh").arg("-n").arg(script("zsh")));
    let ask = format!(
        "source {}; COMP_WORDS=(gdr-agent ro); COMP_CWORD=1; set -- $(complete -p gdr-agent); while [ \"$1\" != -F ]; do shift; done; \"$2\" gdr-agent ro gdr-agent; echo \"${{COMPREPLY[@]}}\"",
        script("bash").display()
    );
    assert_eq!(
        ok(Command::new("bash").args(["-c", &ask])).trim(),
        "rollback"
    );
    let ask = format!(
        "source {}; complete -C 'gdr-agent ro'",
        script("fish").display()
    );
    let said = ok(Command::new("fish")
        .args(["-c", &ask])
        .env("HOME", dir.path()));
    assert!(said.starts_with("rollback"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
