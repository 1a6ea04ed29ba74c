//! The view on a terminal in memory.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

/// So many connections of one process; the one with the number n sends n bytes a second.
fn snapshot(connections: u64) -> Snapshot {
    let row = |n: u64| -> Row {
        serde_json::from_value(serde_json::json!({
            "key": format!("7.0.0.{n}"),
            "source": { "kind": "transom", "pid": 7, "name": "program" },
            "local": format!("10.0.{}.{}:443", n / 250, n % 250 + 1),
            "remote": "192.0.2.1:50000",
            "state": if n.is_multiple_of(2) { "established" } else { "close-wait" },
            "cwnd": 14_600,
            "send_rate": n,
            "limited_by": "cwnd",
            "layers": ["nice"],
            "limits": [{ "variable": "cwnd", "own": 14_600, "asked": "0..=2920", "used": 2920, "by": "nice" }],
        }))
        .unwrap()
    };
    Snapshot { rows: (0..connections).map(row).collect(), troubles: Vec::new() }
}

fn view() -> View {
    View::new(Filter::default(), "", Column::Send, false, std::sync::mpsc::channel().1)
}

fn screen(view: &mut View) -> String {
    let mut terminal = Terminal::new(TestBackend::new(180, 40)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().to_string()
}

fn write(view: &mut View, text: &str) {
    assert!(text.chars().all(|c| view.press(KeyCode::Char(c))));
}

/// Fluent means that a drawing makes the lines in sight, however many connections there are.
#[test]
fn of_ten_thousand_connections_a_screen_is_drawn() {
    let mut view = view();
    view.take(snapshot(10_000));
    let text = screen(&mut view);
    assert!(text.contains("10000 of 10000 connections"), "{text}");
    assert!(text.contains("9.76 KiB") && text.contains("2.85 KiB"), "{text}");
    assert_eq!(view.made, 37);
    for key in [KeyCode::End, KeyCode::Up, KeyCode::PageUp, KeyCode::Home, KeyCode::PageDown] {
        let before = view.made;
        view.press(key);
        screen(&mut view);
        assert_eq!(view.made - before, 37);
    }
    assert_eq!(view.line(), Some(37));
}

#[test]
fn a_filter_is_written_and_what_is_none_is_said() {
    let mut view = view();
    view.take(snapshot(10));
    view.press(KeyCode::Char('/'));
    write(&mut view, "state close-wait and");
    view.press(KeyCode::Enter);
    let text = screen(&mut view);
    assert!(text.contains("the filter ends too early"), "{text}");
    (0..4).for_each(|_| assert!(view.press(KeyCode::Backspace)));
    view.press(KeyCode::Enter);
    let text = screen(&mut view);
    assert!(text.contains("5 of 10 connections   state close-wait"), "{text}");
    assert!(!text.contains("established"), "{text}");
}

#[test]
fn the_chosen_connection_shows_its_course_and_its_extensions() {
    let mut view = view();
    view.take(snapshot(3));
    view.press(KeyCode::Down);
    view.press(KeyCode::Enter);
    (0..5).for_each(|_| view.take(snapshot(3)));
    let text = screen(&mut view);
    for part in [
        "cwnd: own 14600, asked 0..=2920, used 2920, decided by nice",
        "Rate (MB/s)",
        "Window (KiB)",
        "limited by cwnd",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(view.course.as_ref().unwrap().points().len(), 6);
    // It stays chosen where it moves, and when it is gone.
    view.press(KeyCode::Char('r'));
    assert_eq!(view.line(), Some(2));
    view.take(Snapshot::default());
    assert!(screen(&mut view).contains("This connection is gone."));
    assert!(view.press(KeyCode::Esc));
    assert!(!view.press(KeyCode::Esc));
}

#[test]
fn the_order_is_chosen_by_keys() {
    let mut view = view();
    view.take(snapshot(3));
    view.press(KeyCode::Char('>'));
    assert_eq!(view.sort, Column::Receive);
    (0..2).for_each(|_| assert!(view.press(KeyCode::Char('<'))));
    assert_eq!(view.sort, Column::State);
    assert!(screen(&mut view).contains("State ▼"));
    view.take(Snapshot { rows: Vec::new(), troubles: vec!["a".into(), "b".into()] });
    assert!(screen(&mut view).contains("a (and 1 more)"));
    for key in [KeyCode::Down, KeyCode::Enter, KeyCode::End, KeyCode::PageUp] {
        assert!(view.press(key));
    }
}
