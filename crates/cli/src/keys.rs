//! The keys of the views in the terminal.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

/// The key that is pressed within this time. There is none if the time passes, or something else happens.
pub(crate) fn pressed(wait: Duration) -> io::Result<Option<(KeyCode, KeyModifiers)>> {
    if !event::poll(wait)? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some((key.code, key.modifiers)),
        _ => None,
    })
}
