//! gdr-agent-policy(5), from the descriptions in the policy's JSON schema.

use crate::policy_keys::{self, Key};
use crate::roff;

/// The page. `date` is the day that it bears.
pub fn page(date: &str) -> String {
    let mut out = format!(
        ".TH GDR\\-AGENT\\-POLICY 5 {date} \"gdr-agent {}\" gdr\\-agent\n",
        env!("CARGO_PKG_VERSION")
    );
    out.push_str(&roff::section(
        "NAME",
        "gdr\\-agent\\-policy \\- what a GPU node should be",
    ));
    out.push_str(&roff::section(
        "SYNOPSIS",
        "/etc/gdr\\-agent/policy.toml\n.br\n/etc/gdr\\-agent/policy.d/*.toml",
    ));
    out.push_str(&roff::section(
        "DESCRIPTION",
        &roff::text(&INTRODUCTION.replace('`', "")),
    ));
    for table in policy_keys::tables() {
        let mut body = String::new();
        let heading = match table.name.as_str() {
            "" => "TOP LEVEL".to_owned(),
            name => {
                body.push_str(&roff::text(&table.what));
                body.push('\n');
                format!("[{}]", roff::text(name))
            }
        };
        for key in &table.keys {
            body.push_str(&entry(key));
        }
        out.push_str(&roff::section(&heading, &body));
    }
    out.push_str(&roff::section(
        "EXAMPLE",
        &roff::verbatim(gdr_policy::starter()),
    ));
    out.push_str(&roff::section(
        "SEE ALSO",
        "\\fBgdr\\-agent\\fR(8),\n\\fBgdr\\-agent\\-policy\\fR(8)",
    ));
    out
}

/// What holds of the whole file.
pub const INTRODUCTION: &str = "\
A TOML file with a few tables. The files in `policy.d` are read after `policy.toml`, in the order of their names, and a later value wins.
Everything but `version` has a default. A key that is not known is an error, and so is a value that could not be written safely into a boot file.
A policy does nothing by lying there: `gdr-agent apply` puts it in force.";

fn entry(key: &Key) -> String {
    let mut body = format!("{}\nType: {}.", key.what, key.kind);
    body.push_str(&match &key.default {
        Some(default) => format!("\nDefault: {default}."),
        None if key.required => "\nIt has to be there.".to_owned(),
        None => "\nDefault: not set.".to_owned(),
    });
    body.push_str(&format!(
        "\nSince {}. Example: {} = {}",
        key.since, key.name, key.example
    ));
    let mut out = roff::tagged(&key.name, &body);
    for (word, what) in &key.words {
        out.push_str(&format!(
            ".RS\n.TP\n\\fB{}\\fR\n{}\n.RE\n",
            roff::text(word),
            roff::text(what)
        ));
    }
    out
}
