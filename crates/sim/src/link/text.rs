//! The small syntax of link options: `name(first, second)` and lists that respect parentheses.

use transom_router::quantity;

/// Splits `name(a, b)` into `name` and its trimmed arguments.
pub(super) fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, inside) = quantity::call(text)?;
    Some((name, list(inside?)))
}

pub(super) use transom_router::quantity::list;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_respect_parentheses() {
        assert_eq!(list("a=1, b=f(2, 3),c"), ["a=1", "b=f(2, 3)", "c"]);
        assert_eq!(call(" f( 2 ,3 )"), Some(("f", vec!["2", "3"])));
        assert_eq!(call("f(2"), None);
        assert_eq!(call("f"), None);
    }
}
