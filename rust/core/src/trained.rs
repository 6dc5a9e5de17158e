//! The code that the fastest level writes pages with, made before any page is seen.
//!
//! It comes from a text of the kind that pages hold, drawn with the atlas at hand: so every cell, ink and
//! font has its own, and a page needs no pass that counts. Pages unlike the text are counted themselves.
use crate::atlas::{Atlas, Tile};
use crate::grammar::{Lines, Segment};
use crate::layout::{Form, lay_out};
use crate::png::huffman::{Code, Frequencies};
use crate::png::rows::Repeats;
use crate::strip::Strip;

/// Written for this: code, JSON, listings, differences, logs, prose.
const SAMPLE: &[u8] = include_bytes!("sample.txt");
/// Pixels of the page that the sample is drawn on.
const WIDTH: usize = 1568;

/// A page with more other glyphs than one in so many is unlike the sample.
const OTHERS: usize = 4;

/// The code for an atlas.
pub(crate) fn code(atlas: &Atlas) -> Code {
    let cell = atlas.cell();
    let columns = WIDTH / usize::from(cell.width);
    let rows = 2 + SAMPLE.len() / columns;
    let form = Form { columns, rows, lines: Lines::Flow, first: 1, inside: None };
    let mut frequencies = Frequencies::new();
    let mut strip = Strip::new(atlas, WIDTH, false);
    let mut repeats = strip.repeats(columns);
    let drawn = lay_out(&[Segment::Text(SAMPLE)], atlas, &form, |sheet| {
        count(&sheet.tiles, columns, &mut strip, &mut repeats, &mut frequencies);
        Ok(sheet.tiles)
    });
    drawn.expect("a sound text on a page large enough");
    Code::new(&frequencies)
}

/// Whether a page has little of what the sample has: marks and ASCII.
pub(crate) fn unlike(tiles: &[Tile], atlas: &Atlas) -> bool {
    let known = atlas.plain();
    tiles.iter().filter(|&&tile| tile >= known).count() * OTHERS > tiles.len()
}

/// The code for these tiles alone.
pub(crate) fn own(tiles: &[Tile], columns: usize, strip: &mut Strip<'_>, repeats: &mut Repeats) -> Code {
    let mut frequencies = Frequencies::new();
    count(tiles, columns, strip, repeats, &mut frequencies);
    Code::new(&frequencies)
}

fn count(
    tiles: &[Tile],
    columns: usize,
    strip: &mut Strip<'_>,
    repeats: &mut Repeats,
    frequencies: &mut Frequencies,
) {
    repeats.clear();
    for (row, cells) in tiles.chunks_exact(columns).enumerate() {
        strip.draw(cells);
        strip.encode(strip.height(), Some((tiles, row)), repeats, frequencies);
    }
}
