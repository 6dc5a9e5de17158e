//! True cells in any order make no panic:
//! `cargo +nightly fuzz run --fuzz-dir rust/fuzz read_cells`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use microfiche_core::{Atlas, Cell, Ink, Options, Pixels, ReadOptions, Segment, read_back, render};

const COLUMNS: usize = 24;

fuzz_target!(|cells: &[u8]| {
    let cell = Cell::new(9, 16).expect("in range");
    let (width, height) = (usize::from(cell.width), usize::from(cell.height));
    let stride = COLUMNS * width;
    let rows = 1 + cells.len().div_ceil(COLUMNS).min(64);
    let options = Options::new(cell, Ink::Grey, stride as u32, 8 * height as u32);
    let legend = render(&[Segment::Text(b"x")], &options).expect("a page large enough").remove(0);
    let legend = Pixels::from_png(&legend.png).expect("our own file");
    let mut grey = vec![255; stride * rows * height];
    grey[..stride * height].copy_from_slice(&legend.grey()[..stride * height]);
    let atlas = Atlas::get(cell, Ink::Grey);
    for (index, &tile) in cells.iter().enumerate().take(COLUMNS * (rows - 1)) {
        let (row, column) = (1 + index / COLUMNS, index % COLUMNS);
        // The first tiles are the marks, the mark alphabet and ASCII.
        for (pixel, level) in atlas.levels(tile.into()).iter().enumerate() {
            grey[(row * height + pixel / width) * stride + column * width + pixel % width] = level * 85;
        }
    }
    let pixels = Pixels::new(stride, rows * height, grey).expect("as many pixels as it says");
    let known = ReadOptions { cell: Some(cell), ink: Some(Ink::Grey), limit: 1 << 16, ..ReadOptions::default() };
    let _ = read_back(&[pixels], &known);
});
