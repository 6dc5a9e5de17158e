//! Any text at any form reads back as it was: `cargo +nightly fuzz run --fuzz-dir rust/fuzz round_trip`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use microfiche_core::{Cell, Ink, Lines, Options, Piece, Pixels, ReadOptions, Segment, read_back, render};

fuzz_target!(|input: (u8, u8, u8, u8, bool, bool, &str)| {
    let (width, height, columns, rows, grey, hard, text) = input;
    let cell = Cell::new(4 + u32::from(width) % 13, 6 + u32::from(height) % 27).expect("in range");
    let ink = if grey { Ink::Grey } else { Ink::Mono };
    let columns = 12 + u32::from(columns) % 60;
    let rows = 1 + 96u32.div_ceil(columns) + u32::from(rows) % 9;
    let lines = if hard { Lines::Hard } else { Lines::Flow };
    let page = (columns * u32::from(cell.width), rows * u32::from(cell.height));
    let options = Options { lines, ..Options::new(cell, ink, page.0, page.1) };
    let source: Vec<_> = (!text.is_empty()).then_some(Segment::Text(text.as_bytes())).into_iter().collect();
    let pages = render(&source, &options).expect("sound text on a page large enough");
    let pixels: Vec<_> =
        pages.iter().map(|page| Pixels::from_png(&page.png).expect("our own file")).collect();
    let known = ReadOptions { cell: Some(cell), ink: Some(ink), ..ReadOptions::default() };
    let read = read_back(&pixels, &known).expect("our own page");
    let wanted: Vec<_> = source.iter().map(|_| Piece::Text(text.as_bytes().to_vec())).collect();
    assert_eq!(read, wanted);
});
