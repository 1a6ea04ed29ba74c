//! The page as a browser would take it: what is in it, what is not, and how large it is.

use serde_json::Value;

use super::*;

fn page(data: &ReportData) -> String {
    page::render(data)
}

/// A report with one chart of the given curve.
fn with_curve(name: &str, points: Vec<(f64, f64)>) -> ReportData {
    let chart = Chart::new("Chart", "value", "KiB").series(name, Style::Line, Hue::Blue, points);
    ReportData {
        title: "Title".into(),
        sections: vec![Section {
            title: "Section".into(),
            charts: vec![chart],
            ..Section::default()
        }],
        ..ReportData::default()
    }
}

/// The chart data embedded in a page.
fn embedded(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"charts\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

/// Fails unless each element that is opened is closed in its turn. Contents of `style` and `script` are
/// text, as in HTML.
fn assert_well_formed(page: &str) {
    let mut open = Vec::new();
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').expect("a tag that does not end");
        rest = after;
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed out of turn");
        } else if !["!DOCTYPE", "meta"].contains(&name) {
            open.push(name);
            if name == "script" || name == "style" {
                let end = rest.find(&format!("</{name}")).expect("a script that does not end");
                rest = &rest[end..];
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "never closed");
}

#[test]
fn the_page_contains_what_it_was_given() {
    let mut data = with_curve("cwnd", vec![(0.0, 14.0), (0.25, 28.5)]);
    data.lead = "A lead".into();
    data.columns = vec!["up".into(), "down".into()];
    data.summary = vec![
        Row::new("Rate", ["9.5 Mb/s", "9.4 Mb/s"]),
        Row::new("Hashes equal", ["yes"]).verdict(true),
        Row::new("In time", ["no"]).verdict(false),
    ];
    data.notes = vec!["Mind the gap".into()];
    data.command = "transom demo --loss 1%".into();
    let page = page(&data);
    for part in [
        "<title>Title</title>",
        "<h1>Title</h1>",
        "A lead",
        "<th scope=\"col\">down</th>",
        "<td colspan=\"1\">9.4 Mb/s</td>",
        "<td colspan=\"2\">yes <span class=\"pass\">passed</span></td>",
        "<span class=\"fail\">failed</span>",
        "<h2>Section</h2>",
        "<li>Mind the gap</li>",
        "<code>transom demo --loss 1%</code>",
        "Copyright (c) 2022 Leon Sorokin",
        "var uPlot=function(",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    let chart = &embedded(&page)[0]["charts"][0];
    assert_eq!((&chart["label"], &chart["unit"]), (&"value".into(), &"KiB".into()));
    let curve = &chart["curves"][0];
    assert_eq!(curve["name"], "cwnd");
    assert_eq!(curve["x"], serde_json::json!([0, 250_000]));
    assert_eq!(curve["y"], serde_json::json!([14, 28.5]));
    assert_well_formed(&page);
}

#[test]
fn an_empty_report_is_a_page() {
    let page = page(&ReportData::default());
    assert_well_formed(&page);
    assert!(!page.contains("<section>") && !page.contains("<table"));
}

#[test]
fn the_page_loads_nothing() {
    let page = page(&test_sample::sample());
    for forbidden in ["http://", "https://", "src=", "href=", "@import", "url("] {
        let found = page.find(forbidden).map(|at| page[at..].chars().take(80).collect::<String>());
        assert_eq!(found, None, "{forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn hostile_text_stays_text() {
    let evil = "</script><script>alert('1')</script><img onerror=\"x\"> & <!--";
    let mut data = with_curve(evil, vec![(0.0, 1.0)]);
    data.title = evil.into();
    data.lead = evil.into();
    data.columns = vec![evil.into()];
    data.summary = vec![Row::new(evil, [evil])];
    data.notes = vec![evil.into()];
    data.command = evil.into();
    data.command_note = evil.into();
    data.verdict = Some(Verdict { passed: false, text: evil.into() });
    let mut picture = Svg::new(10.0, 10.0);
    picture.text("name", (1.0, 1.0), Anchor::Start, evil);
    let drawing =
        Drawing { title: evil.into(), caption: evil.into(), alternative: evil.into(), picture };
    let mut table = Table::new(evil, &[evil]);
    table.caption = evil.into();
    table.rows.push(vec![Cell::from(evil).link(evil)]);
    data.blocks = vec![Block::Drawing(drawing), Block::Table(table)];
    data.sections[0].title = evil.into();
    data.sections[0].charts[0].title = evil.into();
    data.sections[0].charts[0].caption = evil.into();
    data.sections[0].charts[0].label = evil.into();
    let page = page(&data);
    assert_well_formed(&page);
    assert!(!page.contains("<img") && !page.contains("<script>alert") && !page.contains("<!--"));
    // Data comes back as it was.
    assert_eq!(embedded(&page)[0]["charts"][0]["curves"][0]["name"], evil);
}

#[test]
fn tables_have_heads_links_and_verdicts() {
    let mut table = Table::new("Numbers", &["flow", "rate#"]);
    table.rows.push(vec![Cell::from("bulk").hue(Some(Hue::Pink)), "9.5".into()]);
    table
        .rows
        .push(vec![Cell::from("run 1").link("a/report.html"), Cell::default().verdict(false)]);
    let data = ReportData { blocks: vec![Block::Table(table)], ..ReportData::default() };
    let page = page(&data);
    assert_well_formed(&page);
    for part in [
        "<h2>Numbers</h2>",
        "<th scope=\"col\">flow</th><th scope=\"col\" class=\"number\">rate</th>",
        "<th scope=\"row\"><span class=\"chip b-pink\"></span>bulk</th><td class=\"number\">9.5</td>",
        "<a href=\"a/report.html\">run 1</a>",
        "<span class=\"fail\">failed</span>",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn a_chart_says_in_words_what_it_shows() {
    let chart = Chart::new("Goodput", "goodput", "Mbit/s")
        .series("bulk", Style::Line, Hue::Blue, vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 4.0)])
        .series("none", Style::Line, Hue::Red, vec![])
        .markers("drop", Shape::Cross, Hue::Red, vec![(0.0, 1.0)]);
    assert_eq!(chart.alt_text(), "Goodput. bulk from 1 to 4 Mbit/s, on average 2.5; drop: 1.");
    assert!(!chart.is_empty() && Chart::new("", "", "").is_empty());
}

/// A report with a chart over each kind of axis, and a drawing.
#[cfg(feature = "png")]
fn pictured() -> ReportData {
    let chart = |points: Vec<(f64, f64)>| {
        let spread = points.iter().map(|(_, y)| (y - 1.0, y + 1.0)).collect();
        Chart::new("Chart", "value", "ms")
            .series("a", Style::Line, Hue::Blue, points.clone())
            .spread(spread)
            .series("b", Style::Dashed, Hue::Orange, points.clone())
            .series("c", Style::Dots, Hue::Green, points.clone())
            .markers("d", Shape::Cross, Hue::Red, points.clone())
            .markers("e", Shape::Triangle, Hue::Pink, points.clone())
            .markers("f", Shape::Ring, Hue::Grey, points)
    };
    let section = |title: &str, across, points| Section {
        title: title.into(),
        across,
        charts: vec![chart(points)],
    };
    let label = || String::from("delay (ms)");
    let mut picture = Svg::new(200.0, 100.0);
    picture.text("name", (10.0, 50.0), Anchor::Start, "→ größer");
    let drawing = Drawing {
        title: "Network".into(),
        caption: String::new(),
        alternative: String::new(),
        picture,
    };
    ReportData {
        blocks: vec![Block::Drawing(drawing)],
        sections: vec![
            section(
                "Time",
                HorizontalAxis::Time,
                vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, 2.0)],
            ),
            section(
                "Number",
                HorizontalAxis::Number { label: label(), logarithmic: true },
                vec![(1.0, 1.0), (10.0, 2.0), (100.0, 4.0)],
            ),
            section(
                "Names",
                HorizontalAxis::Names { label: label(), names: vec!["codel".into(), "pie".into()] },
                vec![(0.0, 1.0), (1.0, 2.0)],
            ),
            section("Nothing", HorizontalAxis::Time, vec![]),
        ],
        ..ReportData::default()
    }
}

#[test]
#[cfg(feature = "png")]
fn pictures_are_png_files_and_the_same_every_time() {
    let data = pictured();
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let written = directories.each_ref().map(|one| pictures(one.path(), &data).unwrap());
    let names: Vec<&str> =
        written[0].iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "network.png",
            "time-chart.png",
            "number-chart.png",
            "names-chart.png",
            "nothing-chart.png"
        ]
    );
    for (one, other) in written[0].iter().zip(&written[1]) {
        let bytes = std::fs::read(one).unwrap();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
        assert!(bytes == std::fs::read(other).unwrap(), "{}", one.display());
    }
    // Twice the size of the drawing: IHDR has width and height (PNG specification, section 11.2.2).
    let network = std::fs::read(&written[0][0]).unwrap();
    assert_eq!(&network[16..24], [0, 0, 1, 144, 0, 0, 0, 200]);
}

#[test]
#[cfg(feature = "png")]
fn letters_are_drawn_with_the_fonts_that_the_program_has() {
    let with = |text: &str| {
        let mut svg = Svg::new(100.0, 30.0);
        svg.text("name", (10.0, 20.0), Anchor::Start, text);
        png::png(&svg).unwrap()
    };
    // A font without these letters would draw nothing, or the same box for each.
    let all: Vec<Vec<u8>> = ["", "→", "…", "×", "ß", "μ", "±"].map(with).into();
    for (number, one) in all.iter().enumerate() {
        assert!(all.iter().skip(number + 1).all(|other| other != one), "{number}");
    }
}

#[test]
fn a_followed_run_gives_the_same_page() {
    let data = with_curve("cwnd", vec![(0.0, 14.0), (0.25, 28.5)]);
    let message: Value = serde_json::from_str(&message(&data, "half", false, 100)).unwrap();
    let page = page(&data);
    for part in ["above", "plots", "below"] {
        assert!(page.contains(message[part].as_str().unwrap()), "{part}");
    }
    assert_eq!(message["sections"], embedded(&page));
    assert_eq!((&message["state"], &message["done"]), (&"half".into(), &false.into()));
    let live = live_page("<Title>", "/events");
    assert_well_formed(&live);
    assert!(live.contains("connect-src 'self'") && live.contains("data-events=\"/events\""));
}

#[test]
fn a_long_run_makes_a_page_that_is_not_large() {
    let points: Vec<(f64, f64)> = (0..500_000u32)
        .map(|i| (f64::from(i) * 1.37e-4, f64::from(i * 7919 % 104_729) * 0.731))
        .collect();
    let chart = Chart::new("Chart", "value", "KiB")
        .series("a", Style::Line, Hue::Blue, points.clone())
        .series("b", Style::Step, Hue::Orange, points.clone())
        .series("c", Style::Dots, Hue::Green, points);
    let section = Section { title: "Section".into(), charts: vec![chart; 5], ..Section::default() };
    let data = ReportData { sections: vec![section; 2], ..ReportData::default() };
    let page = page(&data);
    // Thirty full curves: more than a demo has.
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    let curve = &embedded(&page)[0]["charts"][0]["curves"][0];
    let kept = curve["x"].as_array().unwrap().len();
    assert!((1000..=decimate::MOST_POINTS).contains(&kept), "{kept} points");
    assert_eq!(curve["total"], 500_000);
}

#[test]
fn the_page_is_written_where_it_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.html");
    write(&path, &with_curve("a", vec![])).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page(&with_curve("a", vec![])));
    assert!(write(&directory.path().join("none/report.html"), &ReportData::default()).is_err());
}

/// Writes a page to look at: `cargo test -p transom-report sample_page -- --ignored`.
#[test]
#[ignore = "writes target/transom-report-sample.html, to look at"]
fn sample_page() {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    std::fs::create_dir_all(&target).unwrap();
    let path = target.join("transom-report-sample.html");
    write(&path, &test_sample::sample()).unwrap();
    eprintln!("wrote {}", path.display());
}

/// A small picture, as pages of a repository have it: bars over names, heights that are factors, and marks that are whole at the edge.
#[test]
fn pictures_have_sizes_bars_and_logarithmic_heights() {
    let mut chart = Chart::new("A title", "cost", "ns")
        .series("ours", Style::Bars, Hue::Blue, vec![(0.0, 1.0), (1.0, 1000.0)])
        .series("formula", Style::Formula, Hue::Grey, vec![(0.0, 10.0), (1.0, 10.0)])
        .markers("theirs", Shape::Cross, Hue::Red, vec![(0.0, 100.0)]);
    chart.logarithmic = true;
    chart.size = (640.0, 320.0);
    let names = vec!["one".into(), "other".into()];
    let across = HorizontalAxis::Names { label: "which".into(), names };
    let section = Section { title: String::new(), across, charts: vec![chart.clone()] };
    let svg = plot(&section, &chart).to_string();
    assert!(svg.contains("width=\"640\" height=\"320\""), "{svg}");
    // Two bars, and one in the legend.
    assert_eq!(svg.matches("<rect class=\"dot f-blue\"").count(), 3);
    for tick in [">1<", ">10<", ">100<", ">1000<"] {
        assert!(svg.contains(tick), "{tick}: {svg}");
    }
    assert!(svg.contains("<path class=\"curve dashed s-grey\" d=\"M"));
    // The white ground of the mark, and the mark, each of two lines.
    assert_eq!(svg.matches("class=\"curve halo\"").count(), 2);
    let (clipped, whole) = svg.split_once("</g>").unwrap();
    assert!(!clipped.contains("s-red\"") && whole.contains("curve s-red"));
    assert_eq!(svg, plot(&section, &chart).to_string());
}

/// Between the marks of an axis there is room, or they read as one number.
#[test]
fn marks_of_an_axis_do_not_touch() {
    let points: Vec<(f64, f64)> =
        [10.0, 500.0, 1000.0, 2500.0, 5000.0, 1e5, 1e6].map(|flows| (flows, 1.0)).to_vec();
    let mut chart =
        Chart::new("A title", "cost", "ns").series("ours", Style::Dots, Hue::Blue, points);
    chart.size = (640.0, 320.0);
    let across = HorizontalAxis::Number { label: "flows".into(), logarithmic: true };
    let section = Section { title: String::new(), across, charts: vec![chart.clone()] };
    let svg = plot(&section, &chart).to_string();
    let mut marks: Vec<(f64, String)> = Vec::new();
    for text in svg.split("<text class=\"small muted\" x=\"").skip(1) {
        let (x, rest) = text.split_once('"').unwrap();
        let (attributes, rest) = rest.split_once('>').unwrap();
        let label = rest.split('<').next().unwrap();
        if attributes.contains("middle") && label.parse::<f64>().is_ok() {
            marks.push((x.parse().unwrap(), label.to_owned()));
        }
    }
    assert!(marks.len() > 4, "{svg}");
    for pair in marks.windows(2) {
        let width = |label: &str| label.len() as f64 * 11.0 * 0.62;
        let gap = pair[1].0 - pair[0].0 - (width(&pair[0].1) + width(&pair[1].1)) / 2.0;
        assert!(gap > 5.0, "{pair:?}");
    }
}
