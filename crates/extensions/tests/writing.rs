//! What `docs/extensions/writing.md` builds: compiled, and run.
#![allow(unreachable_pub)] // It is as it would stand in the crate.

#[path = "../../tcp/tests/common/mod.rs"]
mod common;
mod rounds;
#[path = "writing/shy.rs"]
mod shy;

/// What the page takes from the crate it adds to.
mod catalogue {
    pub use transom_extensions::Entry;
    use transom_tcp::arguments::Arguments;
    use transom_tcp::extension::{Extension, ExtensionChoice};

    pub fn choice(
        arguments: &Arguments<'_>,
        extension: impl Extension + Clone + Sync + 'static,
    ) -> ExtensionChoice {
        ExtensionChoice::new(arguments.choice(), move || Box::new(extension.clone()))
    }
}

use common::{Peer, Setup};
use rounds::round;
use transom_tcp::arguments::Arguments;

fn attach(peer: &mut Peer, text: &str) {
    let mut arguments = Arguments::read(text).unwrap();
    assert_eq!(arguments.choice(), shy::ENTRY.name);
    let choice = (shy::ENTRY.read)(&mut arguments).unwrap();
    arguments.finish().unwrap();
    peer.attach(choice.extension());
}

include!("writing/by_hand.rs");

/// It never asks for less than its floor: two round trips with a queue leave 10/2 = 5, and then two, not 2.5.
#[test]
fn shy_has_a_floor() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "shy(floor=4)");
    peer.write(250_000).drain();
    let windows = [100, 150, 150, 150].map(|rtt| round(&mut peer, rtt));
    assert_eq!(windows, [11, 5, 4, 4]);
}

#[test]
fn the_page_has_what_is_tested() {
    let page = include_str!("../../../docs/extensions/writing.md");
    let blocks: Vec<&str> = page
        .split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(block, _)| block))
        .collect();
    assert!(blocks.contains(&include_str!("writing/by_hand.rs")), "{blocks:#?}");
    let shy = include_str!("writing/shy.rs");
    let (extension, entry) = shy.split_once("/// How it is chosen by name.").unwrap();
    assert!(blocks.iter().any(|block| block.trim() == extension.trim()));
    assert!(blocks.iter().any(|block| {
        block.strip_prefix("/// How it is chosen by name.").is_some_and(|rest| rest == entry)
    }));
}
