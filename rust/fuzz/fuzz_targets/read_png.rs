//! No file makes the reader panic or take memory without bound: `cargo +nightly fuzz run --fuzz-dir rust/fuzz read_png`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use microfiche_core::{Cell, Ink, Pixels, ReadOptions, read_back};

fuzz_target!(|file: &[u8]| {
    if let Ok(pixels) = Pixels::from_png(file) {
        let known = ReadOptions { cell: Cell::new(9, 16).ok(), ink: Some(Ink::Grey), limit: 1 << 20, ..ReadOptions::default() };
        let _ = read_back(&[pixels], &known);
    }
});
