//! The tests of the crate, in one program.

mod arguments;
mod c_programs;
mod header;
mod install;
mod ported;
mod status;
mod support;
