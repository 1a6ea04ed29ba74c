//! All connections of a capture.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::net::SocketAddr;

use crate::connection::Connection;
use crate::file::{Blocks, FileError};
use crate::segment::{Segment, Skipped};

/// The connections of a capture.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Capture {
    /// The connections, in the order of their first packets.
    pub connections: Vec<Connection>,
    /// How many packets there were, of any kind.
    pub packets: u64,
    /// How many of them have no segment that was followed, and why.
    pub(crate) skipped: BTreeMap<Skipped, u64>,
    /// How many packets state a length beyond the end of their frame; they count as ending with it.
    pub beyond: u64,
    /// The damage of the file, in sentences.
    pub damage: Vec<String>,
}

impl Capture {
    /// Reads a capture to its end, or to where it is damaged. A buffer around the reader saves time.
    ///
    /// # Errors
    /// If it is none, or cannot be read.
    pub fn read(reader: impl Read) -> Result<Capture, FileError> {
        let mut blocks = Blocks::new(reader)?;
        let mut capture = Capture::default();
        let mut scratch = Vec::new();
        // The present connection of two ends. The keys are a file's, so their hash is keyed; the order is never used.
        let mut places: HashMap<[SocketAddr; 2], usize> = HashMap::new();
        while let Some(item) = blocks.next_item()? {
            let Some(frame) = item.frame else { continue };
            capture.packets += 1;
            match Segment::of(&frame, &mut scratch) {
                Ok(segment) => {
                    capture.beyond += u64::from(segment.is_cut);
                    capture.add(&segment, &mut places);
                }
                Err(why) => *capture.skipped.entry(why).or_default() += 1,
            }
        }
        capture.damage = blocks.damage();
        Ok(capture)
    }

    fn add(&mut self, segment: &Segment, places: &mut HashMap<[SocketAddr; 2], usize>) {
        let mut key = [segment.source, segment.destination];
        key.sort_unstable();
        let present = places.get(&key).and_then(|&place| self.connections.get_mut(place));
        match present {
            Some(connection) if !connection.is_over(segment) => connection.add(segment),
            _ => {
                let mut connection = Connection::new(self.connections.len() + 1, segment);
                connection.add(segment);
                places.insert(key, self.connections.len());
                self.connections.push(connection);
            }
        }
    }

    /// Remarks on the file as a whole, in sentences: damage, and packets that were left out.
    pub fn notes(&self) -> Vec<String> {
        let skipped = self.skipped.iter().map(|(why, count)| {
            format!("{count} of {} packets {why}; they were left out.", self.packets)
        });
        let strays: u64 = self.connections.iter().map(|one| one.strays).sum();
        let strays = (strays > 0).then(|| {
            format!(
                "{strays} packets have numbers outside of any window of their connection; they were left out of it."
            )
        });
        let beyond = (self.beyond > 0).then(|| {
            format!(
                "{} packets state a length beyond the end of their frame; they count as ending there.",
                self.beyond
            )
        });
        self.damage.iter().cloned().chain(skipped).chain(strays).chain(beyond).collect()
    }
}
