//! gdr-agent(8) and a page for each verb.

use clap::Command;
use clap_mangen::Man;

use crate::roff;

/// File names and pages. `date` is the day that the pages bear, as 2026-11-30.
///
/// # Errors
/// A page cannot be rendered.
pub fn pages(command: &Command, date: &str) -> std::io::Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    add(command, command.get_name(), date, &mut pages)?;
    Ok(pages)
}

fn add(
    command: &Command,
    name: &str,
    date: &str,
    pages: &mut Vec<(String, String)>,
) -> std::io::Result<()> {
    let main = name == "gdr-agent";
    // clap_mangen takes the page's name from the command, and its synopsis from `bin_name`.
    let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let renamed = command.clone().name(leaked);
    let man = Man::new(renamed)
        .title(name.to_uppercase())
        .section("8")
        .date(date)
        .source(concat!("gdr-agent ", env!("CARGO_PKG_VERSION")))
        .manual("gdr-agent");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    // clap_mangen breaks the line around an empty one, which those who check pages call useless.
    let mut page = String::from_utf8_lossy(&page).replace("\n.br\n\n.br\n", "\n.sp\n");
    if let Some(help) = command.get_after_help() {
        page.push_str(&more(&help.to_string()));
    }
    if main {
        page.push_str(&files());
    }
    let mut others: Vec<String> = command
        .get_subcommands()
        .map(|c| format!("{name}-{}", c.get_name()))
        .collect();
    if !main {
        others.insert(0, "gdr-agent".to_owned());
    }
    page.push_str(&see_also(&others));
    pages.push((format!("{name}.8"), page));
    for verb in command.get_subcommands() {
        add(verb, &format!("{name}-{}", verb.get_name()), date, pages)?;
    }
    Ok(())
}

/// What follows a command's help: paragraphs, of which some have a heading of their own.
fn more(help: &str) -> String {
    let mut out = String::new();
    for paragraph in help.split("\n\n") {
        let section = if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
            roff::section("EXAMPLES", &roff::verbatim(examples))
        } else if let Some(codes) = paragraph.strip_prefix("Exit codes:") {
            let joined = codes.split_whitespace().collect::<Vec<_>>().join(" ");
            roff::section("EXIT STATUS", &roff::text(&joined))
        } else {
            roff::section("NOTES", &roff::verbatim(paragraph))
        };
        out.push_str(&section);
    }
    out
}

fn files() -> String {
    let list = [
        (
            "/etc/gdr-agent/policy.toml",
            "The policy, see gdr-agent-policy(5).",
        ),
        (
            "/etc/gdr-agent/policy.d/*.toml",
            "Drop-ins, read after it in the order of their names.",
        ),
        (
            "/var/lib/gdr-agent",
            "The journal with the old content of every file that was changed, and the policy that every boot keeps.",
        ),
        (
            "/run/gdr-agent/metrics.prom",
            "Metrics for node_exporter's textfile collector.",
        ),
        ("/usr/share/gdr-agent/profiles", "Policies to start from."),
        (
            "/usr/share/gdr-agent/prometheus, /usr/share/gdr-agent/grafana",
            "Alerts and a dashboard for those metrics.",
        ),
    ];
    let body: String = list
        .iter()
        .map(|(path, what)| roff::tagged(path, what))
        .collect();
    roff::section("FILES", &body)
}

fn see_also(pages: &[String]) -> String {
    let mut all: Vec<String> = pages
        .iter()
        .map(|page| format!("\\fB{}\\fR(8)", roff::text(page)))
        .collect();
    all.push("\\fBgdr\\-agent\\-policy\\fR(5)".to_owned());
    roff::section("SEE ALSO", &all.join(",\n"))
}
