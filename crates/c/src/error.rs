//! Words for errors of which a number says too little.

use std::cell::RefCell;
use std::io;
use transom_sockets::Errno;

thread_local! {
    /// Why this thread's last call failed, where a number says too little.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sets this thread's message: why its last call failed.
pub(crate) fn set_message(message: impl Into<String>) {
    MESSAGE.set(message.into());
}

/// This thread's last message.
pub(crate) fn last_message() -> String {
    MESSAGE.with_borrow(String::clone)
}

/// The number of an error, whose text becomes this thread's message.
pub(crate) fn errno_with_message(error: io::Error) -> Errno {
    set_message(error.to_string());
    error.into()
}
