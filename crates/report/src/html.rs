//! Text in HTML.

/// `write!` to a string, which cannot fail.
macro_rules! put {
    ($page:expr, $($piece:tt)*) => {
        let _ = write!($page, $($piece)*);
    };
}
pub(crate) use put;

/// Text in HTML, between tags and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
