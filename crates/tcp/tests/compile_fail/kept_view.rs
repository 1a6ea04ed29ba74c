//! A view is valid during the call only: an extension that kept it would read a connection that goes on without it.

use transom_tcp::extension::{Ack, View};
use transom_tcp::time::Instant;

pub struct Keeps<'a> {
    view: Option<View<'a>>,
    acks: Vec<&'a Ack>,
    now: Instant,
}

pub fn on_wake<'a>(keeper: &mut Keeps<'a>, view: &View<'_>) {
    keeper.view = Some(*view); //~ lifetime
    keeper.acks.extend(view.acks()); //~ lifetime
    keeper.now = view.now();
    // Nor would it be an extension, which goes to other threads with its connection.
    fn goes_to_another_thread(_: impl Send) {}
    goes_to_another_thread(*view); //~ E0277
    goes_to_another_thread(view.now());
}
