//! The kernel's own sockets in network namespaces, with extensions. The programs are this test program, started again.

mod leaving;
mod limits;
mod measures;
mod refusals;
mod support;
