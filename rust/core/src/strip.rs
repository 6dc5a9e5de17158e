//! A row of cells to packed scanlines, and their PNG filter.
use crate::atlas::{Atlas, Glyph, Ink, Tile};

/// PNG's filter types (ISO/IEC 15948, 9.2).
const NONE: u8 = 0;
const UP: u8 = 2;
/// White at either depth, and how the bits past the right edge are filled.
const WHITE: u8 = 0xFF;

/// The scanlines of one row of cells.
pub(crate) struct Strip<'a> {
    atlas: &'a Atlas,
    /// Packed rows of all tiles, scanline by scanline: what one scanline needs lies together.
    rows: Vec<u32>,
    /// Bytes of a scanline.
    stride: usize,
    lines: Vec<u8>,
    filters: Vec<u8>,
}

impl<'a> Strip<'a> {
    pub(crate) fn new(atlas: &'a Atlas, width: usize) -> Strip<'a> {
        let stride = (width * usize::from(atlas.ink().bits())).div_ceil(8);
        let height = usize::from(atlas.cell().height);
        let tiles = 0..atlas.tiles() as Tile;
        let rows =
            (0..height).flat_map(|y| tiles.clone().map(move |tile| atlas.packed_row(tile, y))).collect();
        Strip { atlas, rows, stride, lines: vec![WHITE; stride * height], filters: filters(atlas) }
    }

    /// Draws a row of cells. What is right of them stays white.
    pub(crate) fn draw(&mut self, tiles: &[Tile]) {
        let bits = u32::from(self.atlas.cell().width) * u32::from(self.atlas.ink().bits());
        let rows = self.rows.chunks_exact(self.atlas.tiles());
        for (line, rows) in self.lines.chunks_exact_mut(self.stride).zip(rows) {
            let mut out = line;
            let mut pending: u64 = 0;
            let mut held = 0;
            for &tile in tiles {
                pending = pending << bits | u64::from(rows[usize::from(tile)]);
                held += bits;
                if held >= 32 {
                    held -= 32;
                    let (word, rest) = out.split_first_chunk_mut().expect("the cells fit in the width");
                    *word = ((pending >> held) as u32).to_be_bytes();
                    out = rest;
                }
            }
            while held > 0 {
                // The last byte is filled up with white.
                let byte =
                    if held >= 8 { pending >> (held - 8) } else { pending << (8 - held) | 0xFF >> held };
                let (first, rest) = out.split_first_mut().expect("the cells fit in the width");
                *first = byte as u8;
                out = rest;
                held = held.saturating_sub(8);
            }
        }
    }

    /// Makes all scanlines white: what is below the last row of cells.
    pub(crate) fn clear(&mut self) {
        self.lines.fill(WHITE);
    }

    /// The first `height` scanlines, packed.
    pub(crate) fn pixels(&self, height: usize) -> &[u8] {
        &self.lines[..height * self.stride]
    }

    /// Appends the first `height` scanlines as a PNG holds them, filtered.
    pub(crate) fn filter(&self, height: usize, out: &mut Vec<u8>) {
        for y in 0..height {
            let line = &self.lines[y * self.stride..][..self.stride];
            out.push(self.filters[y]);
            if self.filters[y] == UP {
                let above = &self.lines[(y - 1) * self.stride..][..self.stride];
                out.extend(line.iter().zip(above).map(|(byte, above)| byte.wrapping_sub(*above)));
            } else {
                out.extend_from_slice(line);
            }
        }
    }
}

/// The filter of each scanline of a row of cells, chosen once for a font: Up inside stems.
///
/// Up pays on a scanline where more letters repeat the one above than are blank on it, and always
/// hurts on the first, which follows another row of text. The margins were found by search
/// (`benches/NOTES.md`).
fn filters(atlas: &Atlas) -> Vec<u8> {
    let letters: Vec<Tile> = (b'a'..=b'z')
        .filter_map(|letter| match atlas.glyph(letter.into()) {
            Some(Glyph::One(tile)) => Some(tile),
            _ => None,
        })
        .collect();
    let margin = match atlas.ink() {
        Ink::Grey => 35,
        Ink::Mono => 10,
    };
    let blank = atlas.marks().blank;
    let count = |wanted: &dyn Fn(Tile) -> bool| letters.iter().filter(|&&tile| wanted(tile)).count();
    let up = |y: usize| {
        let repeated = count(&|tile| atlas.packed_row(tile, y) == atlas.packed_row(tile, y - 1));
        let white = count(&|tile| atlas.packed_row(tile, y) == atlas.packed_row(blank, y));
        repeated * 100 > white * 100 + letters.len() * margin
    };
    (0..usize::from(atlas.cell().height)).map(|y| if y > 0 && up(y) { UP } else { NONE }).collect()
}
