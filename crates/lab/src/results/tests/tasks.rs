//! Tasks that each make some of the planned runs, while somebody oversees them.

use super::*;

/// Makes one run as a task does.
fn make(sweep: &Sweep, store: &Store, planned: &PlannedRun) {
    let variant = sweep.scenario.point(planned.point - 1).unwrap();
    let run = Run { plan: &sweep.plan, planned, variant: &variant };
    store.begin(planned).unwrap().finish(run, &sweep.seen(planned)).unwrap();
}

#[test]
fn tasks_make_what_one_process_makes() {
    let (alone, together) = (tempdir().unwrap(), tempdir().unwrap());
    let sweep = Sweep::new(SHARED, None);
    assert_eq!(sweep.run(&Store::create(alone.path()).unwrap()), 6);
    // It stays open for writing meanwhile.
    let overseer = Store::create(together.path()).unwrap();
    overseer.set_plan(&sweep.plan).unwrap();
    let workshop = together.path().join(".engine/unfinished");
    assert!(matches!(Store::create(together.path()), Err(StoreError::Busy(_))));
    std::thread::scope(|scope| {
        for part in 0..3 {
            let (sweep, workshop, directory) = (&sweep, &workshop, together.path());
            scope.spawn(move || {
                let store = Store::join(directory, workshop).unwrap();
                assert_eq!(store.plan().unwrap().as_ref(), Some(&sweep.plan));
                for planned in sweep.plan.own().skip(part).step_by(3) {
                    make(sweep, &store, planned);
                }
            });
        }
    });
    assert_eq!(fs::read_dir(&workshop).unwrap().count(), 0, "every run is in its place");
    fs::remove_dir_all(together.path().join(".engine")).unwrap();
    // The overseer finds all of them, and compares.
    assert_eq!(sweep.run(&overseer), 0);
    assert!(tree(alone.path()) == tree(together.path()));
}

#[test]
fn a_task_joins_what_was_planned() {
    let directory = tempdir().unwrap();
    let workshop = directory.path().join("workshop");
    let join = || Store::join(directory.path(), &workshop);
    assert!(matches!(join(), Err(StoreError::NoResults(_))));
    assert!(!workshop.exists());
    let sweep = Sweep::new(SHARED, None);
    let overseer = Store::create(directory.path()).unwrap();
    overseer.set_plan(&sweep.plan).unwrap();
    let task = join().unwrap();
    fs::remove_dir_all(&workshop).unwrap();
    fs::write(&workshop, "").unwrap();
    assert!(matches!(join(), Err(StoreError::Io { .. })), "the workshop is a file");
    fs::remove_file(&workshop).unwrap();
    fs::create_dir(&workshop).unwrap();
    // A task that gives up leaves nothing.
    let planned = sweep.plan.own().next().unwrap();
    let pending = task.begin(planned).unwrap();
    assert!(pending.directory().starts_with(&workshop));
    assert!(matches!(overseer.find(planned), Found::Missing));
    drop(pending);
    assert_eq!(fs::read_dir(&workshop).unwrap().count(), 0);
    // One that was killed leaves something in the workshop, which is no run and in nobody's way.
    let killed = workshop.join(format!(".unfinished-{}-1", planned.directory));
    fs::create_dir(&killed).unwrap();
    fs::write(killed.join("flows.csv"), "half of").unwrap();
    assert_eq!(overseer.runs().unwrap().len(), 0);
    make(&sweep, &task, planned);
    assert_eq!(overseer.runs().unwrap().len(), 1);
    // The same run may be made twice, on machines that do not hear of each other: it stays whole.
    let before = tree(&directory.path().join(&planned.directory));
    let variant = sweep.scenario.point(planned.point - 1).unwrap();
    let run = Run { plan: &sweep.plan, planned, variant: &variant };
    let again = task.begin(planned).unwrap().finish(run, &sweep.seen(planned));
    assert!(again.is_ok(), "{again:?}");
    assert!(tree(&directory.path().join(&planned.directory)) == before);
}
