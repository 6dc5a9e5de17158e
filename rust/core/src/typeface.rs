//! Glyphs beside the font's own, for one cell and ink: those of another font, or of this one as it was once.
//!
//! A typeface is the whole table that pages are drawn and read by. It can be kept as bytes, so that a page can be
//! drawn and read again where the fonts it came from are gone.
//!
//! **The law**, for what is not the font's own: a glyph of one cell is drawable only if its pixels differ from those
//! of every other tile, halves of wide glyphs included. A wide glyph has two cells; each of them differs from
//! every tile that is no half of a wide glyph, and the two together from those of every other wide glyph. (Han
//! characters share their left or right half with others of the same radical.) What has ink in one of its two cells
//! only is drawn in that one.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::atlas::{Atlas, Cell, Glyph, Ink, MARK_ALPHABET, Tile, TileKind};
use crate::font;
use crate::grammar::{self, Segment};

/// What a kept typeface begins with; then width, height and bits of a pixel, a byte each.
const MAGIC: &[u8] = b"microfiche atlas 1\n";
/// The numbers of the marks, above every code point.
const NEWLINE: u32 = 0x11_0000;
const TAB: u32 = 0x11_0001;
const HARD: u32 = 0x11_0002;
/// The number of an inverse character, less its ASCII.
const INVERSE: u32 = 0x11_0100;
/// Set on the number of a glyph of two cells.
const WIDE: u32 = 1 << 31;
const LAST: u32 = 0x10_FFFF;
/// Pixels of a glyph's side, at most, before it is scaled to its cells.
const MAX_SIDE: usize = 256;

/// Which distinct half of a wide glyph a tile is.
pub type Half = u32;

/// What a cell shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Whole(TileKind),
    /// Half of a wide glyph: which one, its neighbour tells.
    Half(Half),
}

/// Why bytes are no typeface.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadTypeface {
    #[error("not an atlas of version 1")]
    Magic,
    #[error("the atlas is cut off, or has more behind its end")]
    Length,
    #[error("the atlas has no cell of {0}x{1} pixels, or no {2} bits a pixel")]
    Form(u8, u8, u8),
    #[error("entry {0:#x} of the atlas is no glyph that may stand there, or looks like another")]
    Glyph(u32),
    #[error("the atlas lacks some of the glyphs that marks are made of")]
    Marks,
}

/// Every glyph that pages of one cell and ink may hold.
pub struct Typeface {
    /// Marks, their alphabet and ASCII.
    base: Atlas,
    /// The levels of one or of two cells.
    glyphs: BTreeMap<u32, Box<[u8]>>,
    singles: HashMap<Box<[u8]>, u32>,
    halves: HashMap<Box<[u8]>, Half>,
    pairs: HashMap<(Half, Half), u32>,
}

impl fmt::Debug for Typeface {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cell, ink) = (self.cell(), self.ink());
        write!(out, "Typeface({}x{} {ink:?}, {} glyphs)", cell.width, cell.height, self.glyphs.len())
    }
}

impl Typeface {
    /// The font of this version.
    pub fn own(cell: Cell, ink: Ink) -> Typeface {
        let atlas = Atlas::get(cell, ink);
        let mut typeface = Typeface::empty(cell, ink);
        for (_, tile) in basics(atlas) {
            typeface.base.admit(atlas.kind(tile), atlas.levels(tile).to_vec());
        }
        for (code, glyph) in atlas.others() {
            let levels = |tile: Tile| atlas.levels(tile).to_vec();
            typeface.take(
                code,
                match glyph {
                    Glyph::One(tile) => levels(tile),
                    Glyph::Wide(left, right) => [levels(left), levels(right)].concat(),
                },
            );
        }
        typeface
    }

    fn empty(cell: Cell, ink: Ink) -> Typeface {
        Typeface {
            base: Atlas::empty(cell, ink),
            glyphs: BTreeMap::new(),
            singles: HashMap::new(),
            halves: HashMap::new(),
            pairs: HashMap::new(),
        }
    }

    pub fn cell(&self) -> Cell {
        self.base.cell()
    }

    pub fn ink(&self) -> Ink {
        self.base.ink()
    }

    /// Adds a glyph of one or two `cells` by its coverage: 0 white to 255 black, `width` × `height` pixels row by row,
    /// scaled by area to the cells if these have other sides.
    ///
    /// False if it is not drawable: it has no ink, it looks like what it may not, or the code point is ASCII, is none or
    /// is there already.
    pub fn offer(
        &mut self,
        code: u32,
        cells: usize,
        (width, height): (usize, usize),
        coverage: &[u8],
    ) -> bool {
        if !(0x80..=LAST).contains(&code)
            || self.glyphs.contains_key(&code)
            || !(1..=2).contains(&cells)
            || width.checked_mul(height) != Some(coverage.len())
            || coverage.is_empty()
            || width.max(height) > MAX_SIDE
        {
            return false;
        }
        let wide = usize::from(self.cell().width);
        let size = (wide * cells, usize::from(self.cell().height));
        let fitted =
            if size == (width, height) { coverage.to_vec() } else { scaled(coverage, (width, height), size) };
        // The rasteriser of the font counts 64 samples a pixel.
        let samples: Vec<u8> =
            fitted.iter().map(|&each| ((u32::from(each) * 64 + 127) / 255) as u8).collect();
        let levels = font::levels(&samples, self.ink());
        if cells == 1 {
            return self.take_nudged(code, &samples, levels);
        }
        let half = |all: &[u8], from: usize| -> Vec<u8> {
            all.chunks_exact(2 * wide).flat_map(|row| &row[from..from + wide]).copied().collect()
        };
        let white = self.ink().levels() - 1;
        let inked = |from: usize| half(&levels, from).iter().any(|&level| level != white);
        let [left, right] = [0, wide].map(|from| half(&samples, from));
        let marks = |from: usize| match self.base.identify(&half(&levels, from)) {
            None | Some(TileKind::Glyph(_) | TileKind::Blank) => false,
            Some(_) => true,
        };
        if marks(0) || marks(wide) {
            return false;
        }
        match (inked(0), inked(wide)) {
            (true, true) => self.take_wide(code, &left, &right),
            (false, _) => self.take_nudged(code, &right, half(&levels, wide)),
            _ => self.take_nudged(code, &left, half(&levels, 0)),
        }
    }

    /// Adds a glyph of one cell; where another of these fonts looks the same (П in Greek and in Cyrillic), with a pixel
    /// or two of another level. What looks like blank, a mark or ASCII stays out.
    fn take_nudged(&mut self, code: u32, samples: &[u8], levels: Vec<u8>) -> bool {
        if self.base.identify(&levels).is_some() {
            return false;
        }
        let free = |levels: &[u8]| !self.is_whole(levels) && !self.halves.contains_key(levels);
        match font::free_levels(samples, self.ink(), free) {
            Some(levels) => self.take(code, levels),
            None => false,
        }
    }

    /// Adds a glyph of two cells, in the same way.
    fn take_wide(&mut self, code: u32, left: &[u8], right: &[u8]) -> bool {
        let ink = self.ink();
        let Some(left) = font::free_levels(left, ink, |levels| !self.is_whole(levels)) else { return false };
        let before = self.halves.get(&left[..]).copied();
        let free = |levels: &[u8]| {
            let pair = before.zip(self.halves.get(levels).copied());
            !self.is_whole(levels) && pair.is_none_or(|pair| !self.pairs.contains_key(&pair))
        };
        match font::free_levels(right, ink, free) {
            Some(right) => self.take(code, [left, right].concat()),
            None => false,
        }
    }

    /// Whether pixels are those of a tile that is no half of a wide glyph.
    fn is_whole(&self, levels: &[u8]) -> bool {
        self.base.identify(levels).is_some() || self.singles.contains_key(levels)
    }

    /// Adds a glyph of these levels if the law lets it; the cells of a wide one stand one behind the other.
    fn take(&mut self, code: u32, levels: Vec<u8>) -> bool {
        let area = self.cell().area();
        if levels.len() == area {
            if self.is_whole(&levels) || self.halves.contains_key(&levels[..]) {
                return false;
            }
            self.singles.insert(levels.clone().into(), code);
        } else {
            let (left, right) = levels.split_at(area);
            if self.is_whole(left) || self.is_whole(right) {
                return false;
            }
            let known = (self.halves.get(left).copied(), self.halves.get(right).copied());
            if let (Some(left), Some(right)) = known
                && self.pairs.contains_key(&(left, right))
            {
                return false;
            }
            let mut number = |half: &[u8]| {
                let next = self.halves.len() as Half;
                *self.halves.entry(half.into()).or_insert(next)
            };
            let pair = (number(left), number(right));
            self.pairs.insert(pair, code);
        }
        self.glyphs.insert(code, levels.into());
        true
    }

    /// How many cells a code point takes; `None` where it is not drawable. The space is one blank cell.
    pub fn cells(&self, code: u32) -> Option<usize> {
        match self.glyphs.get(&code) {
            Some(levels) => Some(levels.len() / self.cell().area()),
            None => self.base.glyph(code).map(|_| 1),
        }
    }

    /// Code points that are drawn, the space included.
    pub fn drawable(&self) -> impl Iterator<Item = u32> {
        (0x20..0x7F).filter(|&code| self.base.glyph(code).is_some()).chain(self.glyphs.keys().copied())
    }

    pub(crate) fn identify(&self, levels: &[u8]) -> Option<Shown> {
        let single = || self.singles.get(levels).map(|&code| TileKind::Glyph(code));
        match self.base.identify(levels).or_else(single) {
            Some(kind) => Some(Shown::Whole(kind)),
            None => self.halves.get(levels).map(|&half| Shown::Half(half)),
        }
    }

    /// The wide glyph of two halves.
    pub(crate) fn pair(&self, left: Half, right: Half) -> Option<u32> {
        self.pairs.get(&(left, right)).copied()
    }

    /// The tiles that a document needs, in the order in which it needs them: pages that are full do not change by what
    /// is written behind them.
    pub(crate) fn atlas(&self, segments: &[Segment<'_>]) -> Atlas {
        let area = self.cell().area();
        let mut atlas = self.base.clone();
        atlas.close_plain();
        for segment in segments {
            let Segment::Text(mut bytes) = *segment else { continue };
            while let Some(at) = bytes.iter().position(|&byte| byte >= 0x80) {
                // What is no text is the layout's to refuse.
                let Some((code, length)) = grammar::decode(&bytes[at..]) else { break };
                bytes = &bytes[at + length..];
                if let Some(levels) = self.glyphs.get(&code)
                    && atlas.glyph(code).is_none()
                {
                    let cells: Vec<_> = levels.chunks_exact(area).collect();
                    if !atlas.set(code, &cells) {
                        return atlas;
                    }
                }
            }
        }
        atlas
    }

    /// The typeface as bytes, the same for the same glyphs: [`Typeface::from_bytes`] reads them.
    ///
    /// Behind the head, for each glyph its number (four bytes, the highest first) and its levels, the leftmost and
    /// topmost in the highest bits, filled up with zeros to whole bytes: the marks, inverse characters, ASCII, then all others,
    /// each by number.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (cell, ink) = (self.cell(), self.ink());
        let mut bytes = MAGIC.to_vec();
        bytes.extend([cell.width, cell.height, ink.bits()]);
        let mut put = |number: u32, levels: &[u8]| {
            bytes.extend(number.to_be_bytes());
            let pixels = 8 / usize::from(ink.bits());
            bytes.extend(levels.chunks(pixels).map(|group| {
                let packed = group.iter().fold(0, |bits, &level| bits << ink.bits() | level);
                packed << (usize::from(ink.bits()) * (pixels - group.len()))
            }));
        };
        for (number, tile) in basics(&self.base) {
            put(number, self.base.levels(tile));
        }
        for (&code, levels) in &self.glyphs {
            put(code | if levels.len() > cell.area() { WIDE } else { 0 }, levels);
        }
        bytes
    }

    /// Reads what [`Typeface::to_bytes`] gave, and holds it to the law.
    ///
    /// # Errors
    /// [`BadTypeface`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Typeface, BadTypeface> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(BadTypeface::Magic)?;
        let (&[width, height, bits], mut rest) = rest.split_first_chunk().ok_or(BadTypeface::Length)?;
        let bad = BadTypeface::Form(width, height, bits);
        let cell = Cell::new(width.into(), height.into()).map_err(|_| bad.clone())?;
        let ink = [Ink::Grey, Ink::Mono].into_iter().find(|ink| ink.bits() == bits).ok_or(bad)?;
        let mut typeface = Typeface::empty(cell, ink);
        let inverse = alphabet().map(|ascii| INVERSE + u32::from(ascii));
        let (mut marks, mut before) = ([NEWLINE, TAB, HARD].into_iter().chain(inverse), None);
        while let Some((number, data)) = rest.split_first_chunk() {
            let number = u32::from_be_bytes(*number);
            let code = number & !WIDE;
            let area = cell.area() * if number & WIDE != 0 { 2 } else { 1 };
            let size = (area * usize::from(bits)).div_ceil(8);
            let (packed, behind) = data.split_at_checked(size).ok_or(BadTypeface::Length)?;
            rest = behind;
            let pixels = 8 / bits;
            let mut levels: Vec<u8> = packed
                .iter()
                .flat_map(|&byte| (0..pixels).rev().map(move |at| byte >> (at * bits) & ((1 << bits) - 1)))
                .collect();
            let filled = levels.split_off(area);
            let in_order = before.is_none_or(|before| before < code);
            let sound = filled.iter().all(|&level| level == 0)
                && match number {
                    NEWLINE => marks.next() == Some(number) && typeface.base.admit(TileKind::Newline, levels),
                    TAB => marks.next() == Some(number) && typeface.base.admit(TileKind::Tab, levels),
                    HARD => marks.next() == Some(number) && typeface.base.admit(TileKind::Hard, levels),
                    INVERSE.. if number & WIDE == 0 => {
                        marks.next() == Some(number)
                            && typeface.base.admit(TileKind::Inverse((number - INVERSE) as u8), levels)
                    }
                    0x21..0x7F => in_order && typeface.base.admit(TileKind::Glyph(code), levels),
                    _ => in_order && (0x80..=LAST).contains(&code) && typeface.take(code, levels),
                };
            if !sound {
                return Err(BadTypeface::Glyph(number));
            }
            if code <= LAST {
                before = Some(code);
            }
        }
        if !rest.is_empty() {
            return Err(BadTypeface::Length);
        }
        // Marks stand first; where they did not, the bytes are not those that this typeface gives.
        if !typeface.base.has_marks() || typeface.to_bytes() != bytes {
            return Err(BadTypeface::Marks);
        }
        Ok(typeface)
    }
}

/// The characters of marks by number.
fn alphabet() -> impl Iterator<Item = u8> {
    (0x21..0x7F).filter(|ascii| MARK_ALPHABET.contains(ascii))
}

/// The tiles that a typeface keeps before all others, with their numbers: marks, inverse characters, ASCII.
fn basics(atlas: &Atlas) -> impl Iterator<Item = (u32, Tile)> {
    let marks = atlas.marks();
    let inverse = alphabet().map(|ascii| (INVERSE + u32::from(ascii), atlas.inverse(ascii)));
    let ascii = (0x21..0x7F).filter_map(|code| match atlas.glyph(code) {
        Some(Glyph::One(tile)) => Some((code, tile)),
        _ => None,
    });
    [(NEWLINE, marks.newline), (TAB, marks.tab), (HARD, marks.hard)].into_iter().chain(inverse).chain(ascii)
}

/// Coverage scaled to another size: each pixel is the mean of the area that it stands on.
fn scaled(coverage: &[u8], from: (usize, usize), to: (usize, usize)) -> Vec<u8> {
    // In units of which a source pixel has `to` and a pixel made `from`, both ways.
    let shares = |at: usize, from: usize, to: usize| {
        let (begin, end) = (at * from, (at + 1) * from);
        (begin / to..end.div_ceil(to))
            .map(move |source| (source, end.min((source + 1) * to) - begin.max(source * to)))
    };
    let mut out = Vec::with_capacity(to.0 * to.1);
    for y in 0..to.1 {
        for x in 0..to.0 {
            let mut sum = 0;
            for (row, high) in shares(y, from.1, to.1) {
                for (column, wide) in shares(x, from.0, to.0) {
                    sum += high * wide * usize::from(coverage[row * from.0 + column]);
                }
            }
            let area = from.0 * from.1;
            out.push(((sum + area / 2) / area) as u8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_keeps_the_mean_of_areas() {
        assert_eq!(scaled(&[0, 255, 255, 0], (2, 2), (1, 1)), [128]);
        assert_eq!(scaled(&[10, 20], (2, 1), (4, 2)), [10, 10, 20, 20, 10, 10, 20, 20]);
        assert_eq!(scaled(&[0, 90, 180], (3, 1), (2, 1)), [30, 150]);
        assert_eq!(scaled(&[255; 256], (16, 16), (7, 14)), [255; 98]);
    }
}
