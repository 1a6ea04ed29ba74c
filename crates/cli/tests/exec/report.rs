//! The page of `--report`.

use super::{available, directory, inside};

#[test]
fn a_page_shows_what_the_program_did() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let script = "python3 -m http.server 8000 --bind 0.0.0.0 >/dev/null 2>&1 & listening 8000
        $TRANSOM exec --report page.html -- curl -sS -o copy -o copy2 http://10.9.0.1:8000/big http://10.9.0.1:8000/small
        # The page can also be written when there was nothing to see.
        $TRANSOM exec --report empty.html -- true
        $TRANSOM exec --report nowhere/page.html -- true; echo $?";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "1\n", "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot write nowhere/page.html"), "{}", ended.stderr);
    let page = std::fs::read_to_string(path.join("page.html")).unwrap();
    // Connections, their ends, what they carried, and the windows.
    for part in ["10.9.0.1:8000", "10.9.0.2:", "Windows of the sender", "Round-trip time", "cubic"]
    {
        assert!(page.contains(part), "{part} is missing");
    }
    let received: u64 =
        cells(&page).into_iter().filter_map(|cell| cell.parse().ok()).max().unwrap();
    assert!(received > 20_000_000, "the file and the answer's head: {received}");
    let empty = std::fs::read_to_string(path.join("empty.html")).unwrap();
    assert!(empty.contains("Connections by Transom") && !empty.contains("10.9.0.1:8000"));
}

/// What stands in the fields of the tables.
fn cells(page: &str) -> Vec<&str> {
    let fields = page.split("<td").skip(1);
    fields.filter_map(|field| field.split('>').nth(1)?.split('<').next()).collect()
}
