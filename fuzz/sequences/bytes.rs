//! Reads decisions off a string of bytes: the fuzzer's input is a script, and when it has run out every decision is zero.

/// The rest of the script.
#[derive(Clone, Debug)]
pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// A script from the fuzzer's bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Script(bytes)
    }

    /// Whether it has run out.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last byte, which stays to be read: for a choice that came later, so that the scripts of a corpus still mean what they meant.
    pub(crate) fn last(&self) -> u8 {
        self.0.last().copied().unwrap_or_default()
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// A number below `n`, which is at most 256.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// Yes or no.
    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    /// Two bytes.
    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Four bytes.
    pub(crate) fn long(&mut self) -> u32 {
        u32::from(self.word()) << 16 | u32::from(self.word())
    }

    /// A distance that is mostly small and to either side.
    pub(crate) fn offset(&mut self) -> u32 {
        match self.below(8) {
            0..4 => 0,
            4 => i32::from(self.byte() as i8) as u32,
            5 => i32::from(self.word() as i16) as u32,
            6 => self.word().into(),
            _ => self.long(),
        }
    }

    /// One of `choices`.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Up to `n` bytes as they are.
    pub(crate) fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        head
    }
}
