//! Each piece of Rust in the documents compiles. Programs among them run elsewhere: they need networks.

include!(concat!(env!("OUT_DIR"), "/documents.rs"));

#[test]
fn the_documents_have_code_and_it_compiles() {
    const { assert!(COUNT > 20) };
}
