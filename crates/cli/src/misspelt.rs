//! A subcommand that is misspelt: which one was meant.
//!
//! Clap compares words so that two letters in the wrong order, as in `rnu`, are far apart. People swap letters more often than anything else.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words with more changes than this are other words.
const FARTHEST: usize = 2;

/// Adds the name that was probably meant to an error about a subcommand, if clap has found none.
pub(crate) fn explained(
    mut error: clap::Error,
    command: &Command,
    words: &[OsString],
) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if error.kind() != ErrorKind::InvalidSubcommand
        || error.get(ContextKind::SuggestedSubcommand).is_some()
    {
        return error;
    }
    // The command whose subcommand it would be: as far as the words before it are known.
    let known = words.iter().skip(1).take_while(|before| **before != **word);
    let mut around = command;
    for name in known.filter_map(|name| name.to_str()) {
        around = around.find_subcommand(name).unwrap_or(around);
    }
    if let Some(meant) = nearest(word, around) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant]));
    }
    error
}

fn nearest(word: &str, around: &Command) -> Option<String> {
    let shown = around.get_subcommands().filter(|command| !command.is_hide_set());
    let distance = |name: &str| strsim::damerau_levenshtein(word, name);
    let nearest = shown.map(Command::get_name).min_by_key(|name| distance(name))?;
    (distance(nearest) <= FARTHEST.min(nearest.len() / 2)).then(|| nearest.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn said(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let command = crate::Cli::command();
        let error = command.clone().try_get_matches_from(&words).unwrap_err();
        explained(error, &command, &words).to_string()
    }

    #[test]
    fn letters_in_another_order_are_found() {
        for (line, meant) in [
            ("transom lab rnu x", "run"),
            ("transom labb run x", "lab"),
            ("transom router rnu", "run"),
            ("transom dmeo", "demo"),
        ] {
            let said = said(line);
            assert!(said.contains(&format!("'{meant}'")), "{line}: {said}");
        }
        assert!(!said("transom frobnicate").contains("tip: a similar"), "nothing is near");
    }
}
