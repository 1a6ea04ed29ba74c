//! What is remembered, and what counts for nothing.

use std::os::unix::fs::symlink;

use super::*;

fn scenario(more: &str, form: Option<&str>) -> Scenario {
    let text = format!(
        "[scenario]\nname = \"test\"\nduration = \"1s\"\n[hosts.a]\n[hosts.b]\n\
         [[links]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"1ms\"\n\
         [[flows]]\nname = \"flow\"\nfrom = \"a\"\nto = \"b\"\nkind = \"bulk\"\n\
         [forms.quick.scenario]\nduration = \"2s\"\n{more}"
    );
    Scenario::read("test.toml", &text, None, form).unwrap_or_else(|errors| panic!("{errors}"))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn all_that_decides_what_runs_makes_another_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let of = |more, form| Identity::of(&scenario(more, form), std::slice::from_ref(&program));
    assert_eq!(of("", None), Identity(None), "a program that is not there");
    fs::write(&program, "one").unwrap();
    let first = of("", None);
    assert!(first.0.is_some());
    assert_eq!(first, of("", None));
    assert_ne!(first, of("# changed", None));
    assert_ne!(first, of("", Some("quick")));
    fs::write(&program, "another").unwrap();
    assert_ne!(first, of("", None));
}

#[test]
fn it_is_kept_where_only_the_user_may_look() {
    let directory = tempfile::tempdir().unwrap();
    let known = Known { directory: directory.path().join("state/transom") };
    let identity = Identity::of(&scenario("", None), &[]);
    assert!(!known.has(&identity));
    known.add(&identity, Path::new("test.toml")).unwrap();
    known.add(&identity, Path::new("test.toml")).unwrap();
    assert!(known.has(&identity));
    assert!(!known.has(&Identity::of(&scenario("# changed", None), &[])));
    assert!(!known.has(&Identity(None)));
    assert!(known.add(&Identity(None), Path::new("test.toml")).is_err());
    let entry = known.place().join(identity.0.as_ref().unwrap());
    assert_eq!((mode(&known.directory), mode(&known.place()), mode(&entry)), (0o700, 0o700, 0o600));
}

#[test]
fn programs_that_others_can_write_count_for_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let known = Known { directory: directory.path().join("transom") };
    let identity = Identity::of(&scenario("", None), &[]);
    known.add(&identity, Path::new("test.toml")).unwrap();
    let entry = known.place().join(identity.0.as_ref().unwrap());
    for path in [known.directory.clone(), known.place(), entry.clone()] {
        let before = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!known.has(&identity), "{}", path.display());
        fs::set_permissions(&path, before).unwrap();
        assert!(known.has(&identity));
    }
    // Nor what only leads to a file.
    fs::rename(&entry, directory.path().join("elsewhere")).unwrap();
    symlink(directory.path().join("elsewhere"), &entry).unwrap();
    assert!(!known.has(&identity));
}
