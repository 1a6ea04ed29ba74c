//! `transom completions` and `transom man`: files for a shell and for `man`, generated from the command line's own definition.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::features::Feature;
use crate::output;

/// Print the completions of a shell
///
/// Needs a build with the feature `packaging`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom completions bash > ~/.local/share/bash-completion/completions/transom
  transom completions zsh > ~/.zfunc/_transom
  transom completions fish > ~/.config/fish/completions/transom.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell: bash, zsh, fish, elvish or powershell
    shell: String,
}

/// Write the manual pages of all commands
///
/// Needs a build with the feature `packaging`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom man --out man && man -l man/transom-serve.1
  transom man --markdown > commands.md
      the help of every command on one page")]
pub(crate) struct ManArgs {
    /// Write a page for each command into this directory; it is made if it does not exist
    #[arg(long, value_name = "DIR", required_unless_present = "markdown")]
    out: Option<PathBuf>,

    /// Print one page in Markdown
    #[arg(long, conflicts_with = "out")]
    markdown: bool,
}

pub(crate) fn completions(
    args: &CompletionsArgs,
    command: clap::Command,
) -> anyhow::Result<ExitCode> {
    Feature::PACKAGING.need()?;
    generated::completions(&args.shell, command)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &ManArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    Feature::PACKAGING.need()?;
    match &args.out {
        Some(directory) => generated::man(directory, command)?,
        None => output::line(markdown(command).trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The help of every command, with a heading for each.
fn markdown(mut command: clap::Command) -> String {
    command.build();
    let mut page = String::from(
        "# Commands\n\n`transom man --markdown` writes this page from the command line's own help.\n",
    );
    add_help(&mut page, &mut command, 2);
    page
}

fn add_help(page: &mut String, command: &mut clap::Command, level: usize) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let marks = "#".repeat(level.min(4));
    *page += &format!("\n{marks} {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    for inner in command.get_subcommands_mut().filter(|inner| !inner.is_hide_set()) {
        if inner.get_name() != "help" {
            add_help(page, inner, level + 1);
        }
    }
}

#[cfg(feature = "packaging")]
mod generated {
    use std::fs;
    use std::path::Path;

    use anyhow::{Context as _, anyhow};
    use clap::ValueEnum as _;
    use clap_complete::Shell;

    use crate::output;

    pub(super) fn completions(shell: &str, mut command: clap::Command) -> anyhow::Result<()> {
        let shell = Shell::from_str(shell, true).map_err(|_| {
            let shells = output::listed(Shell::value_variants(), "");
            anyhow!("no completions for {shell:?}; there are some for {shells}")
        })?;
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "transom", &mut script);
        output::line(String::from_utf8_lossy(&script).trim_end())
    }

    pub(super) fn man(directory: &Path, command: clap::Command) -> anyhow::Result<()> {
        let failed = || format!("cannot write manual pages to {}", directory.display());
        fs::create_dir_all(directory).with_context(failed)?;
        clap_mangen::generate_to(command, directory).with_context(failed)
    }
}

#[cfg(not(feature = "packaging"))]
mod generated {
    use std::path::Path;

    use crate::features::Feature;

    pub(super) fn completions(_: &str, _: clap::Command) -> anyhow::Result<()> {
        Err(Feature::PACKAGING.missing())
    }

    pub(super) fn man(_: &Path, _: clap::Command) -> anyhow::Result<()> {
        Err(Feature::PACKAGING.missing())
    }
}
