//! The tests of the crate that need no program of their own.
