//! `transom completions` and `transom man`: files for a shell and for `man`, generated from the command line's own definition.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::features::Feature;

/// Print the completions of a shell
///
/// Needs a build with the feature `packaging`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom completions bash > /etc/bash_completion.d/transom
  transom completions zsh > ~/.zfunc/_transom
  transom completions fish > ~/.config/fish/completions/transom.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell: bash, zsh, fish, elvish or powershell
    shell: String,
}

/// Write the manual pages of all commands into a directory
///
/// Needs a build with the feature `packaging`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Example:
  transom man --out man && man -l man/transom-serve.1")]
pub(crate) struct ManArgs {
    /// The directory; it is made if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn completions(
    args: &CompletionsArgs,
    command: clap::Command,
) -> anyhow::Result<ExitCode> {
    Feature::Packaging.need()?;
    generated::completions(&args.shell, command)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &ManArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    Feature::Packaging.need()?;
    generated::man(&args.out, command)?;
    Ok(ExitCode::SUCCESS)
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
            let shells: Vec<String> =
                Shell::value_variants().iter().map(Shell::to_string).collect();
            anyhow!("no completions for {shell:?}; there are some for {}", shells.join(", "))
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
        Err(Feature::Packaging.missing())
    }

    pub(super) fn man(_: &Path, _: clap::Command) -> anyhow::Result<()> {
        Err(Feature::Packaging.missing())
    }
}
