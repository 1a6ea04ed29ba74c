//! The name of a unit, as whoever tells of it says it.

use core::fmt;
use core::ops::Deref;

/// The longest name that is kept, in bytes.
const LONGEST: usize = 30;

/// A name: a word of the program's, or one that came from elsewhere and was cut to thirty bytes.
#[derive(Clone, Copy)]
pub struct Name(Text);

#[derive(Clone, Copy)]
enum Text {
    Fixed(&'static str),
    Kept { len: u8, bytes: [u8; LONGEST] },
}

impl Name {
    /// A word of the program's.
    pub(crate) const fn new(text: &'static str) -> Self {
        Name(Text::Fixed(text))
    }

    /// As much of `text` as is kept.
    pub fn cut(text: &str) -> Self {
        let mut bytes = [0; LONGEST];
        let mut len = text.len().min(LONGEST);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        for (slot, byte) in bytes.iter_mut().zip(text.bytes().take(len)) {
            *slot = byte;
        }
        Name(Text::Kept { len: len as u8, bytes })
    }

    /// The text.
    fn as_str(&self) -> &str {
        match &self.0 {
            Text::Fixed(text) => text,
            Text::Kept { len, bytes } => {
                let bytes = bytes.get(..usize::from(*len)).unwrap_or_default();
                core::str::from_utf8(bytes).unwrap_or_default()
            }
        }
    }
}

/// No name.
impl Default for Name {
    fn default() -> Self {
        Name::new("")
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&'static str> for Name {
    fn from(text: &'static str) -> Self {
        Name::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl core::hash::Hash for Name {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <alloc::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
        Ok(Name::cut(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_it_was_made_of_unless_it_is_long() {
        assert_eq!(Name::cut("cubic"), Name::new("cubic"));
        assert_eq!(Name::cut("cubic"), "cubic");
        let long = "x".repeat(29) + "\u{e4}";
        assert_eq!(Name::cut(&long).as_str(), "x".repeat(29));
    }
}
