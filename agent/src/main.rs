//! The `gdr-agent` binary.

fn main() -> std::process::ExitCode {
    gdr_agent::cli::main()
}
