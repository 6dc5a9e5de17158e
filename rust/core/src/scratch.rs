//! Byte buffers that outlive a document: fresh memory costs a small page more than what is done in it.
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Buffers kept for each thread, and the largest that is kept.
const KEPT: usize = 2;
const LARGEST: usize = 1 << 20;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer with whatever the last user left in it.
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(SPARE.with_borrow_mut(Vec::pop).unwrap_or_default())
    }
}

impl Deref for Scratch {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        // A thread that ends may have none to keep it in.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT && buffer.capacity() <= LARGEST {
                spare.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_unless_it_is_large() {
        let mut first = Scratch::new();
        first.extend([7; 1000]);
        let place = first.as_ptr();
        drop(first);
        let mut second = Scratch::new();
        assert_eq!(second.as_ptr(), place);
        second.reserve(2 * LARGEST);
        drop(second);
        assert_eq!(Scratch::new().capacity(), 0);
    }
}
