//! Objects inside the program.

/// Bytes at an address that ELF structures can be read at.
///
/// ```
/// use transom_bpf::Aligned;
/// static OBJECT: &Aligned<[u8]> = &Aligned(*b"compiled");
/// assert_eq!(&OBJECT.0, b"compiled");
/// ```
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Aligned<T: ?Sized>(pub T);
