//! The `transom` command.

mod demo;
mod report;

use clap::Parser;

#[derive(Parser)]
#[command(version, about)]
enum Command {
    /// Send a file to the kernel's TCP and back, and look at how it went
    Demo(demo::Args),
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Demo(args) => demo::run(&args),
    }
}
