//! What a form changes, and what a claim and a level become.

use super::*;

fn in_form(more: &str, form: Option<&str>) -> Scenario {
    Scenario::read("test.toml", &minimal(more), None, form)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

const QUICK: &str = r#"
[sweep]
links.a-b.rate = ["10Mbit/s", "20Mbit/s"]
[[expect]]
measure = "goodput"
min = "9Mbit/s"
[forms.quick]
scenario.duration = "2s"
flows.bulk.start = "1s"
hosts.a.profile = { tcp = "nodelay" }
sweep.links.a-b.rate = ["1Mbit/s"]
[[forms.quick.expect]]
measure = "goodput"
min = "900kbit/s"
"#;

#[test]
fn a_form_says_what_is_different() {
    let full = in_form(QUICK, None);
    assert_eq!((full.points(), &full.form, &full.forms[..]), (2, &None, &["quick".to_owned()][..]));
    let one = full.point(0).unwrap().resolved;
    assert_eq!(one.scenario.duration.to_string(), "10s");
    assert_eq!(one.expect[0].min.unwrap().to_string(), "9Mbit/s");
    let quick = in_form(QUICK, Some("quick"));
    assert_eq!((quick.points(), quick.form.as_deref()), (1, Some("quick")));
    let one = quick.point(0).unwrap().resolved;
    assert_eq!(one.scenario.duration.to_string(), "2s");
    assert_eq!(one.flows[0].start.to_string(), "1s");
    assert_eq!(one.links[0].there.rate.unwrap().to_string(), "1Mbit/s");
    assert_eq!(one.expect.len(), 1);
    assert_eq!(one.expect[0].min.unwrap().to_string(), "900kbit/s");
    let a = one.hosts.values().next().unwrap();
    assert_eq!(a.profile.tcp, Some("nodelay".parse().unwrap()));
    // The rest stays as it was.
    assert_eq!(one.links[0].there.delay.as_millis(), 10);
}

#[test]
fn all_forms_are_checked_and_each_mistake_is_shown_where_it_is() {
    let wrong = |more: &str| refused(&minimal(more));
    let text = wrong("[forms.quick]\nscenario.duraton = \"2s\"");
    assert!(text.contains("did you mean `duration`?") && text.contains("duraton"), "{text}");
    assert!(
        wrong("[forms.quick]\nflows.bulky.start = \"1s\"").contains("there is no `flows.bulky")
    );
    assert!(wrong("[forms.quick]\nforms.other = {}").contains("has no [forms] of its own"));
    assert!(wrong("[forms]\nquick = 3").contains("a table"));
    let text = Scenario::read("t", &minimal("[forms.quick]"), None, Some("quik")).unwrap_err();
    assert!(text.to_string().contains("did you mean `quick`?"), "{text}");
}

#[test]
fn a_scenario_can_be_of_a_paper() {
    let more = "[paper]\nid = \"a/b\"\nsource = \"figure 1\"\nshows = \"this\"\ntakes = \"10s\"";
    let scenario = in_form(more, None);
    let paper = scenario.paper.unwrap();
    assert_eq!((paper.id.as_str(), paper.takes.to_string().as_str()), ("a/b", "10s"));
    assert!(refused(&minimal("[paper]\nid = \"a/b\"")).contains("source"));
}

#[test]
fn a_band_can_say_what_a_paper_says() {
    let band = |rest: &str| {
        minimal(&format!("[[expect]]\nmeasure = \"goodput\"\nmin = \"1Mbit/s\"\n{rest}"))
    };
    let text = band("column = \"goodput\"\nclaim = { says = \"fast\", number = \"9Mbit/s\" }");
    let one = resolved(&text).expect.remove(0);
    let claim = one.claim.unwrap();
    assert_eq!((claim.says.as_str(), one.column.as_deref()), ("fast", Some("goodput")));
    assert_eq!(claim.number, Some(Bound::Rate("9Mbit/s".parse().unwrap())));
    // It is kept in the canonical form, and changes no run.
    assert_eq!(resolved(&resolved(&text).to_toml()), resolved(&text));
    assert_eq!(resolved(&text).id(1, "1", false), resolved(&band("")).id(1, "1", false));
    // A column needs no bounds; a claim does.
    let column = minimal("[[expect]]\nmeasure = \"goodput\"\ncolumn = \"goodput\"");
    assert!(!resolved(&column).expect[0].expects());
    assert!(refused(&format!("{column}\nclaim = {{ says = \"fast\" }}")).contains("min` or `max"));
    assert!(refused(&band("claim = { says = \"fast\", number = 9 }")).contains("unit"));
}

#[test]
fn a_band_can_be_about_the_time_until_something_is_so() {
    let band = |rest: &str| minimal(&format!("[[expect]]\n{rest}"));
    let text = band("measure = \"cwnd\"\nflow = \"bulk\"\nreaches = \"50kB\"\nmax = \"2s\"");
    let one = resolved(&text).expect.remove(0);
    assert_eq!(one.unit(), Unit::Time);
    assert_eq!(one.quantity.reaches, Some(Bound::Size(Size(50_000))));
    assert_eq!((one.quantity.window, one.quantity.statistic), (None, Some(Statistic::Each)));
    assert_eq!(resolved(&resolved(&text).to_toml()), resolved(&text));
    let text = band("measure = \"utilisation\"\nlink = \"a-b\"\nstays-above = 0.9\nmax = \"2s\"");
    let one = resolved(&text).expect.remove(0);
    assert_eq!(one.quantity.window.unwrap().to_string(), "1s");
    for (wrong, why) in [
        ("measure = \"timeouts\"\nreaches = 3\nmax = \"1s\"", "no course"),
        ("measure = \"cwnd\"\nreaches = \"1s\"\nmax = \"1s\"", "size"),
        ("measure = \"cwnd\"\nreaches = \"1kB\"\nmax = \"1kB\"", "duration"),
        ("measure = \"cwnd\"\nreaches = \"1kB\"\nwindow = \"1s\"\nmax = \"1s\"", "window"),
        ("measure = \"cwnd\"\nreaches = \"1kB\"\nstays-above = \"1kB\"\nmax = \"1s\"", "either"),
        ("measure = \"goodput\"\nwindow = \"1s\"\nmax = \"1Mbit/s\"", "window"),
        ("measure = \"goodput\"\nreaches = \"1Mbit/s\"\nwindow = \"0s\"\nmax = \"1s\"", "window"),
        (
            "measure = \"rtt\"\nmax = 1\nrelative-to = { reaches = \"1s\", measure = \"cwnd\" }",
            "size",
        ),
    ] {
        let text = refused(&band(wrong));
        assert!(text.contains(why), "{wrong}\n{text}");
    }
}
