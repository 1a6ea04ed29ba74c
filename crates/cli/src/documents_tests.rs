//! The command lines in documents and in the help have words that the command knows.
//!
//! `tests/documents.rs` runs those that can run. Here every one is read as the command reads it: also those in running text and in tables, those that
//! need another machine, and those that take an hour.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;

use snippets::{examples, fences, pages, spans};

#[path = "../tests/documents/snippets.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other test needs more of it")]
mod snippets;

/// What documents write for what a reader has, and a value of that kind.
const PLACES: [(&str, &str); 14] = [
    ("URL", "http://10.9.0.1/"),
    ("HOST:PORT", "10.9.0.1:9000"),
    ("PORT", "9000"),
    ("FILE", "file"),
    ("FILE.html", "file.html"),
    ("IN", "in.tlog"),
    ("OUT", "out.qlog"),
    ("PATH", "path"),
    ("DIRECTORY", "directory"),
    ("ENGINE", "ray"),
    ("PROGRAM", "true"),
    ("PAPER/FIGURE", "ltcp/fig5"),
    ("NAME", "nice"),
    ("COMMAND", "lab"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The simple commands of a line of shell, each as its words. Quotes hold words together; redirections are left out.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote, mut skip) = (None::<String>, None::<char>, false);
    let end = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>, skip: &mut bool| {
        if let Some(word) = word.take()
            && !std::mem::take(skip)
        {
            commands.last_mut().expect("there is one").push(word);
        }
    };
    for sign in line.chars() {
        match (quote, sign) {
            (Some(open), _) if sign == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(sign),
            (None, '\'' | '"') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, ';' | '|' | '&') => {
                end(&mut word, &mut commands, &mut skip);
                commands.push(Vec::new());
            }
            (None, '<' | '>') => {
                end(&mut word, &mut commands, &mut skip);
                skip = true;
            }
            (None, '#') if word.is_none() => break,
            (None, _) if sign.is_whitespace() => end(&mut word, &mut commands, &mut skip),
            (None, _) => word.get_or_insert_default().push(sign),
        }
    }
    end(&mut word, &mut commands, &mut skip);
    commands
}

/// The words behind `transom` of a simple command that is one of ours, with values in the place of names for them.
fn ours(words: &[String]) -> Option<Vec<String>> {
    let is_setting = |word: &&String| {
        word.split_once('=').is_some_and(|(name, _)| {
            name.chars().all(|sign| sign.is_ascii_uppercase() || sign == '_')
        })
    };
    let mut words: Vec<String> =
        words.iter().skip_while(|word| is_setting(word) || *word == "sudo").cloned().collect();
    let beginning = words.iter().map(String::as_str).take(4).collect::<Vec<_>>();
    if beginning == ["cargo", "run", "--release", "--"] {
        words.drain(..3);
        words[0] = "transom".to_owned();
    }
    if words.first()? != "transom" {
        return None;
    }
    let end = words.iter().position(|word| word == "…").unwrap_or(words.len());
    words.truncate(end);
    for word in &mut words {
        if let Some((_, value)) = PLACES.iter().find(|(name, _)| name == word) {
            (*value).clone_into(word);
        }
    }
    Some(words)
}

/// How a page has a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// As a reader would type it.
    Whole,
    /// In a block that does not run here: values may be names of what the page has the reader make.
    NotRun,
    /// In a sentence: it may leave out what it needs.
    Mention,
}

/// The reason why the command does not take a line.
fn refused(line: &str, kind: Kind) -> Option<String> {
    for words in commands(line).iter().filter_map(|words| ours(words)) {
        let Err(error) = super::Cli::command().try_get_matches_from(&words) else { continue };
        let only_incomplete = matches!(
            error.kind(),
            ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                | ErrorKind::InvalidValue
                | ErrorKind::TooFewValues
        );
        let fine = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let only_a_value = error.kind() == ErrorKind::ValueValidation;
        if !(fine
            || kind == Kind::Mention && only_incomplete
            || kind == Kind::NotRun && only_a_value)
        {
            return Some(error.to_string());
        }
    }
    None
}

#[test]
fn the_command_lines_of_the_documents_have_words_that_exist() {
    let mut wrong = Vec::new();
    let (mut lines, mut mentions) = (0, 0);
    for page in pages(&root()) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let mut check = |number: usize, line: &str, kind: Kind| {
            if let Some(error) = refused(line, kind) {
                wrong.push(format!("{}:{number}: {line}\n{error}", page.display()));
            }
        };
        for fence in fences(&text)
            .iter()
            .filter(|fence| ["sh", "console"].contains(&fence.language.as_str()))
        {
            let kind = if fence.reason().is_some() { Kind::NotRun } else { Kind::Whole };
            for (number, line) in fence.commands() {
                // What is shown below a command of the tutorial is no command.
                let command = if fence.language == "console" {
                    line.strip_prefix("$ ")
                } else {
                    Some(&*line)
                };
                if let Some(command) = command {
                    lines += 1;
                    check(number, command, kind);
                }
            }
        }
        for (number, span) in spans(&text) {
            mentions += usize::from(span.starts_with("transom "));
            check(number, &span, Kind::Mention);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines > 40 && mentions > 60, "{lines} lines and {mentions} mentions");
}

#[test]
fn the_examples_of_the_help_have_words_that_exist() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    let mut waiting = vec![super::Cli::command()];
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().cloned());
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in examples(&help) {
            seen += 1;
            if let Some(error) = refused(&line, Kind::Whole) {
                wrong.push(format!("transom {} --help: {line}\n{error}", command.get_name()));
            }
        }
        // A line that is too long is broken, and its end is taken for a command.
        for line in help.lines().filter(|line| line.chars().count() > 100) {
            wrong.push(format!(
                "transom {} --help: longer than 100 signs: {line}",
                command.get_name()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100, "{seen} examples");
}

#[test]
fn a_word_that_does_not_exist_is_seen() {
    assert_eq!(
        refused("TRANSOM_STATUS=1 sudo transom lab run x.toml -o 'a b' > out", Kind::Whole),
        None
    );
    assert!(refused("transom lab rnu x.toml", Kind::Mention).is_some(), "a command");
    assert!(
        refused("true && transom lab run x.toml --sedes 2", Kind::Mention).is_some(),
        "an option"
    );
    assert!(refused("transom lab run", Kind::Whole).is_some(), "something is missing");
    assert_eq!(refused("transom lab run", Kind::Mention), None, "a mention");
    assert_eq!(commands("a 'b c' | d >e; f # g"), [vec!["a", "b c"], vec!["d"], vec!["f"]]);
}
