use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn refusal<T: std::fmt::Debug>(outcome: io::Result<T>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    error.to_string()
}

/// A directory where everybody can write, and another one with a file.
fn places() -> (tempfile::TempDir, tempfile::TempDir) {
    let (shared, private) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(private.path().join("precious"), "precious").unwrap();
    fs::set_permissions(private.path().join("precious"), fs::Permissions::from_mode(0o600))
        .unwrap();
    (shared, private)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_file_of_our_own_is_made_for_us_alone_and_never_truncated() {
    let (shared, _private) = places();
    let path = shared.path().join("lock");
    open(&path).unwrap().write_all(b"kept").unwrap();
    assert_eq!(mode(&path), 0o600);
    drop(open(&path).unwrap());
    assert_eq!(read(&path).unwrap().unwrap(), b"kept");
    assert_eq!(read(&shared.path().join("none")).unwrap(), None);
}

#[test]
fn files_of_others_are_left_as_they_are() {
    let (shared, private) = places();
    let (path, precious) = (shared.path().join("name"), private.path().join("precious"));
    let untouched = |what: &str| {
        assert_eq!(fs::read(&precious).unwrap(), b"precious", "{what}");
        assert_eq!(mode(&precious), 0o600, "{what}");
    };
    symlink(&precious, &path).unwrap();
    for why in
        [refusal(open(&path)), refusal(read(&path)), refusal(output(&path)), refusal(append(&path))]
    {
        assert!(why.contains("is a link"), "{why}");
    }
    untouched("a link");
    fs::remove_file(&path).unwrap();
    fs::hard_link(&precious, &path).unwrap();
    for why in [refusal(open(&path)), refusal(read(&path)), refusal(output(&path))] {
        assert!(why.contains("another name"), "{why}");
    }
    untouched("another name");
    // The name then leads to a file of ours; the other one stays.
    replace(&path, b"ours").unwrap();
    untouched("replaced");
    assert_eq!(read(&path).unwrap().unwrap(), b"ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refusal(open(&path)).contains("0600"));
    fs::remove_file(&path).unwrap();
    // Nobody waits for a reader of a FIFO.
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    assert!(refusal(open(&path)).contains("no file"));
    assert!(refusal(read(&path)).contains("no file"));
    symlink(&precious, shared.path().join(format!("other.new-{}", std::process::id()))).unwrap();
    replace(&shared.path().join("other"), b"ours").unwrap();
    untouched("a link at the name for now");
}

#[test]
fn a_file_of_another_user_is_refused() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED: files of another user take root's rights");
        return;
    }
    let (shared, _private) = places();
    let path = shared.path().join("theirs");
    fs::write(&path, "theirs").unwrap();
    std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    for why in
        [refusal(open(&path)), refusal(read(&path)), refusal(output(&path)), refusal(append(&path))]
    {
        assert!(why.contains("another user"), "{why}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
    // In a directory of that user's it is no worse than what the user can do there.
    std::os::unix::fs::chown(shared.path(), Some(65_534), None).unwrap();
    output(&path).unwrap().write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn output_where_nobody_else_writes_goes_where_a_link_leads() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "old and long").unwrap();
    symlink(&file, &link).unwrap();
    output(&link).unwrap().write_all(b"new").unwrap();
    append(&link).unwrap().write_all(b" and more").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new and more");
    output(Path::new("/dev/null")).unwrap().write_all(b"x").unwrap();
}

#[test]
fn only_a_sockets_mode_is_set() {
    let (shared, private) = places();
    let (path, precious) = (shared.path().join("socket"), private.path().join("precious"));
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    set_socket_mode(&path, 0o640).unwrap();
    assert_eq!(mode(&path), 0o640);
    fs::remove_file(&path).unwrap();
    symlink(&precious, &path).unwrap();
    refusal(set_socket_mode(&path, 0o666));
    assert_eq!(mode(&precious), 0o600);
}
