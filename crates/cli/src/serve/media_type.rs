//! Media types by file name.

/// The type of a file with this name; bytes without meaning if the extension says nothing.
pub(super) fn of(name: &[u8]) -> &'static str {
    let dot = name.iter().rposition(|&byte| byte == b'.').filter(|&at| at > 0);
    let extension = dot.and_then(|at| name.get(at + 1..)).unwrap_or_default();
    let extension = String::from_utf8_lossy(extension).to_ascii_lowercase();
    match extension.as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "txt" | "md" | "rs" | "toml" | "c" | "h" | "log" | "py" | "sh" => {
            "text/plain; charset=utf-8"
        }
        "csv" => "text/csv; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "wasm" => "application/wasm",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "zst" => "application/zstd",
        "tar" => "application/x-tar",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "mp3" => "audio/mpeg",
        "ogg" => "audio/ogg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "pcap" | "pcapng" => "application/vnd.tcpdump.pcap",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn the_extension_decides() {
        assert_eq!(of(b"index.HTML"), "text/html; charset=utf-8");
        assert_eq!(of(b"a.tar.gz"), "application/gzip");
        for name in [&b"README"[..], b".html", b"a.", b"a.unknown", b"", b"\xff.\xff"] {
            assert_eq!(of(name), "application/octet-stream");
        }
    }
}
