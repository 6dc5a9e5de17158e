//! A row of cells to packed scanlines.
use crate::atlas::{Atlas, Cell, Ink, Tile};

/// The scanlines of one row of cells, each with its filter byte in front.
pub(crate) struct Strip<'a> {
    atlas: &'a Atlas,
    cell: Cell,
    ink: Ink,
    /// Bytes of a scanline, the filter byte included.
    stride: usize,
    lines: Vec<u8>,
}

/// PNG's filter type 0.
const NONE: u8 = 0;
/// White at either depth, and how the bits past the right edge are filled.
const WHITE: u8 = 0xFF;

impl<'a> Strip<'a> {
    pub(crate) fn new(atlas: &'a Atlas, cell: Cell, ink: Ink, width: usize) -> Strip<'a> {
        let stride = 1 + (width * ink.bits() as usize).div_ceil(8);
        Strip { atlas, cell, ink, stride, lines: vec![WHITE; stride * cell.height as usize] }
    }

    /// Draws a row of cells. What is right of them stays white.
    pub(crate) fn draw(&mut self, tiles: &[Tile]) {
        let bits = u32::from(self.cell.width) * u32::from(self.ink.bits());
        for (y, line) in self.lines.chunks_exact_mut(self.stride).enumerate() {
            line[0] = NONE;
            let mut out = &mut line[1..];
            let mut pending: u64 = 0;
            let mut held = 0;
            for &tile in tiles {
                pending = pending << bits | u64::from(self.atlas.packed_row(tile, y));
                held += bits;
                if held >= 32 {
                    held -= 32;
                    let (word, rest) = out.split_first_chunk_mut::<4>().expect("the cells fit in the width");
                    *word = ((pending >> held) as u32).to_be_bytes();
                    out = rest;
                }
            }
            while held > 0 {
                // The last byte is filled up with white.
                let byte = if held >= 8 { pending >> (held - 8) } else { pending << (8 - held) | 0xFF >> held };
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
        for line in self.lines.chunks_exact_mut(self.stride) {
            line[0] = NONE;
        }
    }

    /// The first scanlines as a PNG holds them, the filter byte in front of each.
    pub(crate) fn filtered(&self, lines: usize) -> &[u8] {
        &self.lines[..lines * self.stride]
    }

    /// The scanlines alone.
    pub(crate) fn pixels(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.chunks_exact(self.stride).map(|line| &line[1..])
    }
}
