//! Numbered places that are reused, with a generation that tells an old handle from a new occupant.

use alloc::vec::Vec;

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Values in numbered places.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Puts a value somewhere and returns its place and generation.
    pub(crate) fn insert(&mut self, value: T) -> (u32, u32) {
        match self.free.pop() {
            Some(index) => {
                let place = &mut self.places[index as usize];
                place.value = Some(value);
                (index, place.generation)
            }
            None => {
                self.places.push(Place { generation: 0, value: Some(value) });
                ((self.places.len() - 1) as u32, 0)
            }
        }
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let place = self.places.get_mut(index as usize)?;
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.places.get(index as usize)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.places.get_mut(index as usize)?.value.as_mut()
    }

    /// The value that was given this generation, as long as it is there.
    pub(crate) fn named(&self, index: u32, generation: u32) -> Option<&T> {
        let place = self.places.get(index as usize)?;
        place.value.as_ref().filter(|_| place.generation == generation)
    }

    pub(crate) fn named_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        let place = self.places.get_mut(index as usize)?;
        place.value.as_mut().filter(|_| place.generation == generation)
    }

    /// All values, by their places.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }

    /// One past the highest place ever used.
    pub(crate) fn capacity(&self) -> u32 {
        self.places.len() as u32
    }

    pub(crate) fn generation(&self, index: u32) -> Option<u32> {
        self.places.get(index as usize).filter(|place| place.value.is_some()).map(|p| p.generation)
    }
}
