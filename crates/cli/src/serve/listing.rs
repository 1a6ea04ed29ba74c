//! The page that shows a directory.

use transom_report::escape;

use super::files::Entry;
use crate::units::Bytes;

/// The page for a directory at the given path segments.
pub(super) fn page(segments: &[Vec<u8>], entries: &[Entry]) -> String {
    let mut title = String::from("/");
    for segment in segments {
        title.push_str(&escape(&String::from_utf8_lossy(segment)));
        title.push('/');
    }
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>body{{font-family:sans-serif;margin:2em}}td{{padding:.1em 1em .1em 0}}\
         td+td{{text-align:right}}</style>\n<h1>{title}</h1>\n<table>\n"
    );
    if !segments.is_empty() {
        page.push_str("<tr><td><a href=\"../\">../</a><td>\n");
    }
    for entry in entries {
        let slash = if entry.is_file { "" } else { "/" };
        let name = escape(&String::from_utf8_lossy(&entry.name));
        let size = if entry.is_file { Bytes(entry.length).to_string() } else { String::new() };
        // The dot keeps a colon in the first segment from being taken for a scheme (RFC 3986, section 4.2).
        let link = format!("./{}{slash}", percent_encode(&entry.name));
        page.push_str(&format!("<tr><td><a href=\"{link}\">{name}{slash}</a><td>{size}\n"));
    }
    page.push_str("</table>\n");
    page
}

/// A name as a path segment: all but unreserved characters encoded (RFC 3986, section 2.3).
pub(super) fn percent_encode(name: &[u8]) -> String {
    let mut encoded = String::with_capacity(name.len());
    for &byte in name {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        let entries = [Entry {
            is_file: true,
            name: b"\"><script>alert('1')</script>&:%\xff".to_vec(),
            length: 2048,
        }];
        let page = page(&[b"<b>".to_vec()], &entries);
        assert!(!page.contains("<script>") && !page.contains("<b>"));
        assert!(page.contains("/&lt;b&gt;/"));
        assert!(page.contains(
            "href=\"./%22%3E%3Cscript%3Ealert%28%271%27%29%3C%2Fscript%3E%26%3A%25%FF\""
        ));
        assert!(page.contains("2.00 KiB") && page.contains("\"../\""));
    }
}
