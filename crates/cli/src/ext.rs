//! `transom ext`: the extensions that connections can have.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;
use transom_extensions::{CATALOGUE, Entry, StackError, stack};

use crate::output;

/// List the extensions that connections can have, or describe one
///
/// An extension sees all variables of its connection, and can only make it less aggressive. Extensions stack: the connection stays within
/// the limits of all of them.
#[derive(clap::Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom ext list
      all of them
  transom ext describe nice
      what it does, with its parameters
  transom get --extension 'nice + rr' http://10.9.0.1/file
      a download with two of them
  transom send --extension 'rate-cap(rate=2MB)' FILE 10.9.0.1:9000
      no more than two megabytes in a second")]
pub(crate) enum Command {
    /// List them
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Describe one
    Describe {
        /// Its name
        name: String,
    },
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { json } => output::shown(json, &as_json(), list),
        Command::Describe { name } => {
            output::line(describe(&name)?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn as_json() -> serde_json::Value {
    let entries: Vec<_> = CATALOGUE
        .iter()
        .map(|entry| {
            let parameters: serde_json::Map<_, _> =
                entry.parameters.iter().map(|(name, what)| ((*name).into(), json!(what))).collect();
            json!({
                "name": entry.name,
                "summary": entry.summary,
                "source": entry.source,
                "parameters": parameters,
            })
        })
        .collect();
    json!(entries)
}

fn list() -> String {
    let width = CATALOGUE.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let lines =
        CATALOGUE.iter().map(|Entry { name, summary, .. }| format!("{name:width$}  {summary}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn describe(name: &str) -> anyhow::Result<String> {
    let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) else {
        return Err(StackError::Unknown { name: name.to_owned() }.into());
    };
    let Entry { name, source, summary, parameters, .. } = entry;
    let mut text = format!("{name}: {summary}\n\nSource: {source}\n");
    // One that needs a parameter cannot be made without.
    if let Some(extension) = stack(name).ok().and_then(|stack| Some(stack.first()?.extension())) {
        let (requires, wake_on) = (extension.requires(), extension.wake_on());
        let needs = requires.iter_names().map(|(name, _)| name);
        let wakes = wake_on.iter_names().map(|(name, _)| name);
        let _ = writeln!(text, "Needs: {}", output::listed(needs, "nothing"));
        let _ = writeln!(text, "Woken for: {}", output::listed(wakes, "nothing"));
    }
    text += "\nParameters:\n";
    let width = parameters.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, what) in *parameters {
        let _ = writeln!(text, "  {name:width$}  {what}");
    }
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_extension_is_listed_and_described() {
        assert_eq!(as_json().as_array().unwrap().len(), CATALOGUE.len());
        for entry in CATALOGUE {
            assert!(list().contains(entry.summary));
            let text = describe(entry.name).unwrap();
            assert!(entry.parameters.iter().all(|(name, _)| text.contains(name)), "{text}");
        }
        for (name, instead) in [
            ("nise", "did you mean `nice`?"),
            ("ratecap", "did you mean `rate-cap`?"),
            ("something", "there are vegas, nice, "),
        ] {
            let error = describe(name).unwrap_err().to_string();
            assert!(error.contains(&format!("called `{name}`; {instead}")), "{error}");
        }
    }
}
