//! ChaCha20-Poly1305 (RFC 8439) as a manipulation that can join a copy: encryption and authentication of a record, piece by piece.
//!
//! The cipher and the authenticator are RustCrypto's. Here they are only put together as the standard has it, so that the data may come in pieces. A test
//! compares the result with that of the crate `chacha20poly1305`, which takes a record in one piece.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use poly1305::Poly1305;
use poly1305::universal_hash::{KeyInit, UniversalHash};
use transom_tcp::manipulation::Manipulation;

/// The bytes of a block of the authenticator.
const BLOCK: usize = 16;

/// Encrypts one record, and authenticates what comes out.
pub struct Sealing {
    cipher: ChaCha20,
    authenticator: Poly1305,
    len: u64,
}

impl std::fmt::Debug for Sealing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealing").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Sealing {
    /// For a record without associated data. A key and a nonce must never be used for two records.
    pub fn new(key: &[u8; 32], nonce: &[u8; 12]) -> Self {
        let mut cipher = ChaCha20::new(key.into(), nonce.into());
        // RFC 8439 2.6: the authenticator's key is the beginning of block 0; the data begins with block 1.
        let mut one_time = [0; 32];
        cipher.apply_keystream(&mut one_time);
        cipher.seek(64u64);
        Sealing { cipher, authenticator: Poly1305::new(&one_time.into()), len: 0 }
    }

    /// Encrypts the next bytes without authenticating them: the first of two separate passes.
    pub fn encrypt(&mut self, bytes: &mut [u8]) {
        self.cipher.apply_keystream(bytes);
    }

    /// Authenticates encrypted bytes: the second one.
    pub fn authenticate(&mut self, bytes: &[u8]) {
        self.authenticator.update_padded(bytes);
        self.len += bytes.len() as u64;
    }

    /// The tag of the record (RFC 8439 2.8), after its last byte.
    pub fn tag(mut self) -> [u8; 16] {
        let mut lengths = [0; BLOCK];
        lengths[8..].copy_from_slice(&self.len.to_le_bytes());
        self.authenticator.update_padded(&lengths);
        self.authenticator.finalize().into()
    }
}

impl Manipulation for Sealing {
    /// A block of the cipher, which is four of the authenticator.
    fn unit(&self) -> usize {
        64
    }

    fn change(&mut self, bytes: &mut [u8]) {
        self.encrypt(bytes);
        self.authenticate(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20poly1305::ChaCha20Poly1305;
    use chacha20poly1305::aead::Aead;
    use proptest::prelude::*;
    use transom_tcp::manipulation::pass;
    use transom_wire::checksum::Sum;

    const KEY: [u8; 32] = [0x42; 32];
    const NONCE: [u8; 12] = [7; 12];

    /// The record and its tag, by the crate that does nothing else.
    fn sealed(data: &[u8]) -> Vec<u8> {
        ChaCha20Poly1305::new(&KEY.into()).encrypt(&NONCE.into(), data).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn in_pieces_and_in_one_pass_it_is_the_same_record(
            data in prop::collection::vec(any::<u8>(), 0..12_000),
            cuts in prop::collection::vec(0usize..12_000, 0..5),
        ) {
            let wanted = sealed(&data);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.min(&data.len()) / 64 * 64).collect();
            cuts.extend([0, data.len()]);
            cuts.sort_unstable();
            let (mut one, mut to, mut sum) = (Sealing::new(&KEY, &NONCE), vec![0; data.len()], Sum(0));
            for ends in cuts.windows(2) {
                let (from, to) = (&data[ends[0]..ends[1]], &mut to[ends[0]..ends[1]]);
                sum += pass(&mut one, to, from).unwrap();
            }
            prop_assert_eq!(sum, Sum::of(&to));
            to.extend_from_slice(&one.tag());
            prop_assert_eq!(&to, &wanted);
            // Separate passes.
            let (mut one, mut to) = (Sealing::new(&KEY, &NONCE), data);
            one.encrypt(&mut to);
            one.authenticate(&to);
            to.extend_from_slice(&one.tag());
            prop_assert_eq!(to, wanted);
        }
    }
}
