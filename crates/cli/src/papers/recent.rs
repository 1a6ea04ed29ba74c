//! The contents of directories that were read last.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How many are kept. A point is compared with a few points near it in the sweep, and a run's tables take some megabytes.
const MOST: usize = 16;

/// Contents by directory, the last first: reading them again takes longer than all else that is done with them.
#[derive(Debug)]
pub(super) struct Recent<T>(VecDeque<(PathBuf, Rc<T>)>);

impl<T> Recent<T> {
    pub(super) fn new() -> Self {
        Recent(VecDeque::new())
    }

    /// What a directory contains, read by `read` if it was not among the last.
    pub(super) fn of<E>(
        &mut self,
        directory: &Path,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<Rc<T>, E> {
        let place = self.0.iter().position(|(known, _)| known == directory);
        let one = match place.and_then(|place| self.0.remove(place)) {
            Some(known) => known,
            None => (directory.to_owned(), Rc::new(read()?)),
        };
        let contents = Rc::clone(&one.1);
        self.0.push_front(one);
        self.0.truncate(MOST);
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_not_read_again() {
        let mut reads = Vec::new();
        let mut recent = Recent::new();
        let mut of = |number: usize| {
            let read = || -> Result<usize, ()> {
                reads.push(number);
                Ok(number)
            };
            assert_eq!(recent.of(Path::new(&number.to_string()), read).as_deref(), Ok(&number));
        };
        // The first is used again while others come and go.
        (0..2 * MOST).for_each(|number| [0, number].into_iter().for_each(&mut of));
        of(1);
        of(2 * MOST - 1);
        let expected: Vec<usize> = (0..2 * MOST).chain([1]).collect();
        assert_eq!(reads, expected);
    }

    #[test]
    fn an_error_is_not_kept() {
        let mut recent = Recent::new();
        assert!(recent.of(Path::new("a"), || Err("unreadable")).is_err());
        assert_eq!(recent.of(Path::new("a"), || Ok::<_, &str>(1)).as_deref(), Ok(&1));
    }
}
