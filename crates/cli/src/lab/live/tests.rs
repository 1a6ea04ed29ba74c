use super::*;

fn live(runs: usize) -> Arc<Live> {
    let run = |n: usize| (format!("run {n}"), PathBuf::from(format!("{n}/report.html")));
    Live::new("Title".into(), (0..runs).map(run).collect())
}

fn page(title: &str) -> ReportData {
    ReportData { title: title.into(), ..ReportData::default() }
}

fn title(live: &Live, run: usize) -> Option<String> {
    Some(live.run(run)?.picture.as_ref()?.data.title.clone())
}

#[test]
fn pictures_are_not_made_more_often_than_they_can_be_seen() {
    let live = live(1);
    let mut made = 0;
    for step in 0..1000 {
        live.reached(0, f64::from(step) / 1000.0, || {
            made += 1;
            (page("now"), "state".into())
        });
    }
    // A thousand steps take no time, and a slow machine may see a few.
    assert!((1..200).contains(&made), "{made}");
    assert_eq!(live.run(0).unwrap().stage, Stage::Running(0.999));
    assert_eq!(title(&live, 0).as_deref(), Some("now"));
}

#[test]
fn only_the_newest_picture_counts_and_the_last_one_stays() {
    let live = live(2);
    #[cfg(feature = "web")]
    let mut changes = live.subscribe();
    live.reached(0, 0.1, || (page("first"), String::new()));
    live.done(0, Some(true), Some(page("last")));
    // However many changes there were, whoever waits for one sees one.
    #[cfg(feature = "web")]
    {
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        assert!(!changes.has_changed().unwrap());
    }
    assert_eq!(title(&live, 0).as_deref(), Some("last"));
    let picture = live.run(0).unwrap().picture.unwrap();
    assert!(picture.done && picture.message().contains("\"done\":true"));
    // A chart is turned into a message only once.
    assert!(Arc::ptr_eq(&picture.message(), &picture.message()));
    assert_eq!(live.run(1).unwrap().stage, Stage::Waiting);
    assert!(live.run(2).is_none());
}

#[test]
fn a_long_sweep_keeps_few_pictures() {
    let live = live(100);
    for run in 0..100 {
        live.done(run, Some(run % 2 == 0), Some(page("page")));
    }
    let kept = (0..100).filter(|run| live.run(*run).unwrap().picture.is_some()).count();
    assert_eq!(kept, KEPT);
}

#[test]
fn the_overview_has_what_goes_on_and_what_failed_first() {
    let live = live(4);
    live.done(0, Some(true), None);
    live.done(1, Some(false), None);
    live.reached(3, 0.42, || (page(""), String::new()));
    let (data, words) = live.overview();
    assert_eq!(words, "2 of 4 runs are done, in 1 of them bands fail.");
    let Block::Table(table) = &data.blocks[0] else { panic!("no table") };
    let first: Vec<&str> = table.rows.iter().map(|row| row[0].text.as_str()).collect();
    assert_eq!(first, ["run 3", "run 1", "run 0", "run 2"]);
    assert_eq!(table.rows[0][1].text, "42 %");
    assert_eq!(table.rows[1][0].link.as_deref(), Some("run/1"));
    assert_eq!(table.rows[3][0].link, None);
}
