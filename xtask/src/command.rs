//! The command line that people see: the agent's own, without what only units call.

use clap::Command;

/// The whole command line; hidden verbs are left out.
pub fn visible() -> Command {
    let mut command = copy(&gdr_agent::cli::command());
    command.build();
    command
}

fn copy(from: &Command) -> Command {
    // clap takes names for as long as the program runs, which here is not long.
    let name: &'static str = Box::leak(from.get_name().to_owned().into_boxed_str());
    let mut to = Command::new(name)
        .disable_help_subcommand(true)
        .subcommand_required(from.is_subcommand_required_set())
        .args(
            from.get_arguments()
                .filter(|arg| !arg.is_hide_set())
                .cloned(),
        )
        .subcommands(
            from.get_subcommands()
                .filter(|c| !c.is_hide_set())
                .map(copy),
        );
    if let Some(about) = from.get_about() {
        to = to.about(about.clone());
    }
    if let Some(help) = from.get_after_help() {
        to = to.after_help(help.clone());
    }
    if from.get_version().is_some() {
        to = to.version(env!("CARGO_PKG_VERSION"));
    }
    to
}
