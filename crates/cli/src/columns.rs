//! Lines with aligned columns.

/// On which side of a column its cells are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    /// For numbers.
    Right,
}

/// Lays out lines of cells, the first of which are the headings. Columns without a heading and without cells are left out.
pub(crate) fn lay_out<const N: usize>(sides: [Side; N], lines: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: &[String; N]| {
        let mut text = String::new();
        for ((cell, side), width) in cells.iter().zip(sides).zip(widths) {
            if width == 0 {
                continue;
            }
            if !text.is_empty() {
                text.push_str("  ");
            }
            text += &match side {
                Side::Left => format!("{cell:<width$}"),
                Side::Right => format!("{cell:>width$}"),
            };
        }
        text.trim_end().to_owned()
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let lines = [["name", "size", ""], ["ä", "1000", ""], ["longer", "7", ""]];
        let lines = lines.map(|line| line.map(String::from));
        let expected = ["name    size", "ä       1000", "longer     7"];
        assert_eq!(lay_out([Side::Left, Side::Right, Side::Left], &lines), expected);
    }
}
