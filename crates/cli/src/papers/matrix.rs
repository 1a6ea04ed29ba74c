//! Which units of the composition can be together: a matrix of all pairs, made by composing them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use transom_tcp::compose::{ComposeError, Unit, compose_classic};

/// What came of the pairs of words of two units.
#[derive(Clone, Default)]
struct Cell {
    works: usize,
    refused: Vec<usize>,
}

/// The matrix and the reasons, in Markdown.
pub(super) fn matrix() -> String {
    let mut reasons: Vec<String> = Vec::new();
    let mut examples: BTreeMap<usize, (String, usize)> = BTreeMap::new();
    let mut cells: Vec<Vec<Cell>> = Vec::new();
    let (mut works, mut refused) = (0, 0);
    for (row, first) in Unit::ALL.into_iter().enumerate() {
        let mut line = Vec::new();
        for second in Unit::ALL.into_iter().take(row + 1) {
            let mut cell = Cell::default();
            for (text, error) in pairs(first, second) {
                let Some(error) = error else {
                    cell.works += 1;
                    continue;
                };
                let known = reasons.iter().position(|one| *one == error);
                let number = known.unwrap_or_else(|| {
                    reasons.push(error);
                    reasons.len() - 1
                });
                if !cell.refused.contains(&number) {
                    cell.refused.push(number);
                }
                examples.entry(number).or_insert((text, 0)).1 += 1;
                refused += 1;
            }
            works += cell.works;
            line.push(cell);
        }
        cells.push(line);
    }
    let mut text = format!(
        "\n## The matrix\n\nEach word of a unit with each word of another makes {} pairs: {works} work, {refused} are refused. A cell has the number of pairs \
         that work, and in brackets the reasons for which others are refused. A unit with itself has no pairs: it is chosen once, except where words add up.\n\n",
        works + refused
    );
    let heads: Vec<String> = (1..=Unit::ALL.len()).map(|number| number.to_string()).collect();
    let _ = writeln!(text, "| unit | {} |", heads.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(heads.len()));
    for ((number, unit), line) in (1..).zip(Unit::ALL).zip(&cells) {
        let filled = line.iter().map(|cell| match (cell.works, &cell.refused[..]) {
            (0, []) => "–".to_owned(),
            (works, []) => works.to_string(),
            (works, refused) => {
                let all: Vec<String> = refused.iter().map(|one| letter(*one)).collect();
                format!("{works} ({})", all.join(""))
            }
        });
        let empty = std::iter::repeat_n(String::new(), heads.len() - line.len());
        let row: Vec<String> = filled.chain(empty).collect();
        let _ = writeln!(text, "| {number} {} | {} |", unit, row.join(" | "));
    }
    let _ = write!(text, "\n| reason | the refusal | pairs | such as |\n|---|---|--:|---|\n");
    for (number, reason) in reasons.iter().enumerate() {
        let (example, count) = examples.get(&number).cloned().unwrap_or_default();
        let reason = reason.replace('|', "\\|");
        let _ = writeln!(text, "| {} | {reason} | {count} | `{example}` |", letter(number));
    }
    text
}

/// The texts of all pairs of words of two units, each with the reason if it is refused.
fn pairs(first: Unit, second: Unit) -> Vec<(String, Option<String>)> {
    let (one, other): (Vec<&str>, Vec<&str>) = (first.words().collect(), second.words().collect());
    let mut pairs = Vec::new();
    for (place, word) in one.iter().enumerate() {
        // Of one unit, each pair once.
        let least = if first == second { place + 1 } else { 0 };
        for also in other.iter().skip(least) {
            if first == second && first.none().is_none() {
                continue;
            }
            let text = format!("{also} + {word}");
            match compose_classic(&text) {
                Ok(_) => pairs.push((text, None)),
                Err(ComposeError::Twice { .. }) => {}
                Err(error) => pairs.push((text, Some(error.to_string()))),
            }
        }
    }
    pairs
}

/// Reasons are a, b, c, …, z, aa, ab, …
fn letter(number: usize) -> String {
    let letters = "abcdefghijklmnopqrstuvwxyz";
    let one = |n: usize| letters.chars().nth(n % 26).unwrap_or('a');
    match number / 26 {
        0 => one(number).to_string(),
        more => format!("{}{}", one(more - 1), one(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_pairs_work_and_refusals_have_reasons() {
        let text = matrix();
        assert!(text.contains("SACK option"), "{text}");
        assert_eq!(letter(27), "ab");
    }
}
