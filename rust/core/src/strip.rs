//! A row of cells to packed scanlines, and their PNG filter.
use crate::atlas::{Atlas, Glyph, Ink, Tile};

/// PNG's filter types (ISO/IEC 15948, 9.2).
const NONE: u8 = 0;
const UP: u8 = 2;
/// Scanlines that are drawn at once: their shifts are the same, so the processor does them together.
const BAND: usize = 4;
/// White at either depth, and how the bits past the right edge are filled.
const WHITE: u8 = 0xFF;

/// The scanlines of one row of cells.
pub(crate) struct Strip<'a> {
    atlas: &'a Atlas,
    /// The tiles' packed rows: for each band of scanlines those of every tile.
    bands: Vec<[u32; BAND]>,
    /// Bytes of a scanline.
    stride: usize,
    lines: Vec<u8>,
    filters: Vec<u8>,
}

impl<'a> Strip<'a> {
    pub(crate) fn new(atlas: &'a Atlas, width: usize) -> Strip<'a> {
        let stride = (width * usize::from(atlas.ink().bits())).div_ceil(8);
        let height = usize::from(atlas.cell().height);
        let row = |tile, y| if y < height { atlas.packed_row(tile, y) } else { 0 };
        let mut bands = Vec::new();
        for top in (0..height).step_by(BAND) {
            let tiles = 0..atlas.tiles() as Tile;
            bands.extend(tiles.map(|tile| std::array::from_fn(|y| row(tile, top + y))));
        }
        let lines = vec![WHITE; stride * height.next_multiple_of(BAND)];
        Strip { atlas, bands, stride, lines, filters: filters(atlas) }
    }

    /// Draws a row of cells. What is right of them stays white.
    pub(crate) fn draw(&mut self, tiles: &[Tile]) {
        let bits = u32::from(self.atlas.cell().width) * u32::from(self.atlas.ink().bits());
        let bands = self.bands.chunks_exact(self.atlas.tiles());
        for (lines, band) in self.lines.chunks_exact_mut(self.stride * BAND).zip(bands) {
            let mut pending = [0u64; BAND];
            let (mut held, mut at) = (0, 0);
            for &tile in tiles {
                let rows = band[usize::from(tile)];
                pending = std::array::from_fn(|y| pending[y] << bits | u64::from(rows[y]));
                held += bits;
                if held >= 32 {
                    held -= 32;
                    for (y, pending) in pending.iter().enumerate() {
                        let word = (pending >> held) as u32;
                        lines[y * self.stride + at..][..4].copy_from_slice(&word.to_be_bytes());
                    }
                    at += 4;
                }
            }
            // What is left, filled up with white.
            let bytes = held.div_ceil(8) as usize;
            for (y, pending) in pending.iter().enumerate() {
                let word = (pending << (32 - held)) as u32 | u32::MAX.checked_shr(held).unwrap_or(0);
                lines[y * self.stride + at..][..bytes].copy_from_slice(&word.to_be_bytes()[..bytes]);
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
