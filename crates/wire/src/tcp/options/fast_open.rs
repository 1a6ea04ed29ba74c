//! The fast open option (RFC 7413): a cookie of variable length, kept in place.

/// The fast open option (RFC 7413 4.1.1): a cookie, or the request for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FastOpen {
    // Bytes beyond `len` stay zero, so that the derived comparison is right.
    cookie: [u8; FastOpen::MAX_COOKIE_LEN],
    len: u8,
}

impl FastOpen {
    /// The longest cookie in bytes.
    const MAX_COOKIE_LEN: usize = 16;

    /// The request for a cookie: an option without one.
    pub const REQUEST: FastOpen = FastOpen { cookie: [0; Self::MAX_COOKIE_LEN], len: 0 };

    /// A cookie of 4 to 16 bytes and even length, or the request for one if it is empty; `None` for
    /// any other length.
    pub fn new(cookie: &[u8]) -> Option<Self> {
        let len = cookie.len();
        if len != 0 && (len < 4 || len % 2 == 1) {
            return None;
        }
        let mut option = Self::REQUEST;
        option.cookie.get_mut(..len)?.copy_from_slice(cookie);
        option.len = u8::try_from(len).ok()?;
        Some(option)
    }

    /// Whether this asks for a cookie.
    pub const fn is_request(&self) -> bool {
        self.len == 0
    }

    /// The cookie's bytes; none for a request.
    pub fn as_slice(&self) -> &[u8] {
        self.cookie.get(..usize::from(self.len)).unwrap_or_default()
    }
}
