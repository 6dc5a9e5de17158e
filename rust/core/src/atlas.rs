//! The glyphs of one cell and ink, as pixels: what can be drawn, how, and which pixels mean what.
//!
//! **The law.** A code point is drawable at a cell and ink only if its pixels (each half of a wide glyph) differ
//! from those of every other drawable glyph, from blank, from solid black and from every mark. So pixels name what
//! they show, and a page reads back exactly. Where two code points look alike the first in the font's order
//! stands; ASCII comes first. Glyphs of other fonts stand under a law that is a little wider: see [`crate::Typeface`].

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::font::{self, Metrics, Name, construct};
use crate::png::huffman::Code;
use crate::strip::Stencil;
use crate::trained;

/// How pixels are inked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ink {
    /// Four levels, two bits a pixel.
    Grey,
    /// Black and white, one bit a pixel.
    Mono,
}

impl Ink {
    /// Bits a pixel.
    pub const fn bits(self) -> u8 {
        match self {
            Ink::Grey => 2,
            Ink::Mono => 1,
        }
    }

    /// Levels of grey, black and white included.
    pub const fn levels(self) -> u8 {
        1 << self.bits()
    }

    /// `grey` or `mono`.
    pub const fn name(self) -> &'static str {
        match self {
            Ink::Grey => "grey",
            Ink::Mono => "mono",
        }
    }
}

/// The pixels of one character.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cell {
    pub width: u8,
    pub height: u8,
}

/// A cell outside 4×6 to 16×32 pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadCell {
    pub width: u32,
    pub height: u32,
}

impl fmt::Display for BadCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cell {}x{}: a cell is 4 to 16 pixels wide and 6 to 32 high", self.width, self.height)
    }
}

impl std::error::Error for BadCell {}

const WIDTHS: std::ops::RangeInclusive<u32> = 4..=16;
const HEIGHTS: std::ops::RangeInclusive<u32> = 6..=32;

impl Cell {
    /// # Errors
    /// [`BadCell`] unless 4 ≤ `width` ≤ 16 and 6 ≤ `height` ≤ 32.
    pub fn new(width: u32, height: u32) -> Result<Cell, BadCell> {
        if WIDTHS.contains(&width) && HEIGHTS.contains(&height) {
            Ok(Cell { width: width as u8, height: height as u8 })
        } else {
            Err(BadCell { width, height })
        }
    }

    /// Every cell, by width, then height.
    pub fn all() -> impl Iterator<Item = Cell> {
        WIDTHS.flat_map(|w| HEIGHTS.map(move |h| Cell { width: w as u8, height: h as u8 }))
    }

    /// Pixels in the cell.
    pub const fn area(self) -> usize {
        self.width as usize * self.height as usize
    }
}

/// Index of one cell's pixels in an atlas.
pub type Tile = u16;

/// How a code point is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glyph {
    One(Tile),
    /// Left and right half.
    Wide(Tile, Tile),
}

/// Tiles that are no glyphs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    pub newline: Tile,
    pub tab: Tile,
    /// A line break after which the rest of the row is empty.
    pub hard: Tile,
    /// All black: the inverse of a blank.
    pub solid: Tile,
    /// All white.
    pub blank: Tile,
}

/// What a tile shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TileKind {
    Glyph(u32),
    WideLeft(u32),
    WideRight(u32),
    /// A character of the mark alphabet, white on black; never the space, which is [`TileKind::Solid`].
    Inverse(u8),
    Newline,
    Tab,
    Hard,
    Blank,
    Solid,
}

/// The characters that marks are written with, white on black; with the space they are the mark alphabet.
pub const MARK_ALPHABET: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.:-<>";

const NONE: Tile = Tile::MAX;

/// The tiles of one cell and ink.
#[derive(Clone)]
pub struct Atlas {
    cell: Cell,
    ink: Ink,
    kinds: Vec<TileKind>,
    levels: Vec<u8>,
    rows: Vec<u32>,
    by_levels: HashMap<Box<[u8]>, Tile>,
    ascii: [Tile; 128],
    others: HashMap<u32, Glyph>,
    inverse: [Tile; 128],
    marks: Marks,
    /// Tiles from here on are neither marks nor ASCII.
    plain: Tile,
    stencil: OnceLock<Stencil>,
    /// Made of marks and ASCII alone, so that copies, which only get other glyphs, have it in common.
    code: Arc<OnceLock<Code>>,
}

impl Atlas {
    /// The atlas of a cell and ink, built at its first use.
    pub fn get(cell: Cell, ink: Ink) -> &'static Atlas {
        const COLUMNS: usize = 13;
        const ROWS: usize = 27;
        static TABLE: [OnceLock<Atlas>; COLUMNS * ROWS * 2] = [const { OnceLock::new() }; COLUMNS * ROWS * 2];
        let (column, row) = (usize::from(cell.width) - 4, usize::from(cell.height) - 6);
        TABLE[(column * ROWS + row) * 2 + usize::from(ink == Ink::Mono)]
            .get_or_init(|| Atlas::build(cell, ink))
    }

    /// How a code point is drawn here; `None` where it is not, and has to be written as an escape.
    /// The space is the blank tile.
    #[inline]
    pub fn glyph(&self, code_point: u32) -> Option<Glyph> {
        match self.ascii.get(code_point as usize) {
            Some(&NONE) => None,
            Some(&tile) => Some(Glyph::One(tile)),
            None => self.others.get(&code_point).copied(),
        }
    }

    /// A character of the mark alphabet or the space, white on black.
    ///
    /// # Panics
    /// For any other character.
    #[inline]
    pub fn inverse(&self, ascii: u8) -> Tile {
        let tile = self.inverse[usize::from(ascii)];
        assert!(tile != NONE, "not in the mark alphabet: {ascii:#04x}");
        tile
    }

    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    pub fn cell(&self) -> Cell {
        self.cell
    }

    pub fn ink(&self) -> Ink {
        self.ink
    }

    /// Says that marks and ASCII are there: what comes now is something else.
    pub(crate) fn close_plain(&mut self) {
        self.plain = self.kinds.len() as Tile;
    }

    /// The first tile that is neither a mark nor ASCII.
    pub(crate) fn plain(&self) -> Tile {
        self.plain
    }

    /// What rows of cells are drawn from, made at its first use.
    pub(crate) fn stencil(&self) -> &Stencil {
        self.stencil.get_or_init(|| Stencil::new(self))
    }

    /// What the fastest level writes pages of this atlas with, made at its first use.
    pub(crate) fn code(&self) -> &Code {
        self.code.get_or_init(|| trained::code(self))
    }

    /// Number of tiles.
    pub fn tiles(&self) -> usize {
        self.kinds.len()
    }

    pub fn kind(&self, tile: Tile) -> TileKind {
        self.kinds[usize::from(tile)]
    }

    /// A tile's pixels, row-major: 0 is black, `ink.levels() - 1` white.
    pub fn levels(&self, tile: Tile) -> &[u8] {
        let area = self.cell.area();
        &self.levels[usize::from(tile) * area..][..area]
    }

    /// A row of a tile's pixels, the leftmost in the highest of `width * bits` bits.
    #[inline]
    pub fn packed_row(&self, tile: Tile, y: usize) -> u32 {
        self.rows[usize::from(tile) * usize::from(self.cell.height) + y]
    }

    /// What pixels (row-major levels) show, if they are exactly a tile of this atlas.
    pub fn identify(&self, levels: &[u8]) -> Option<TileKind> {
        self.by_levels.get(levels).map(|&tile| self.kind(tile))
    }

    /// Code points that are drawn here, the space included.
    pub fn drawable(&self) -> impl Iterator<Item = u32> {
        let shown = |kind: &TileKind| match *kind {
            TileKind::Glyph(code) | TileKind::WideLeft(code) => Some(code),
            _ => None,
        };
        std::iter::once(u32::from(b' ')).chain(self.kinds.iter().filter_map(shown))
    }

    /// An atlas that holds blank and solid alone.
    pub(crate) fn empty(cell: Cell, ink: Ink) -> Atlas {
        let white = ink.levels() - 1;
        let mut atlas = Atlas {
            cell,
            ink,
            kinds: Vec::new(),
            levels: Vec::new(),
            rows: Vec::new(),
            by_levels: HashMap::new(),
            ascii: [NONE; 128],
            others: HashMap::new(),
            inverse: [NONE; 128],
            marks: Marks { newline: NONE, tab: NONE, hard: NONE, solid: NONE, blank: NONE },
            plain: 0,
            stencil: OnceLock::new(),
            code: Arc::default(),
        };
        atlas.marks.blank = atlas.add(TileKind::Blank, vec![white; cell.area()]);
        atlas.marks.solid = atlas.add(TileKind::Solid, vec![0; cell.area()]);
        atlas.ascii[usize::from(b' ')] = atlas.marks.blank;
        atlas.inverse[usize::from(b' ')] = atlas.marks.solid;
        atlas
    }

    fn build(cell: Cell, ink: Ink) -> Atlas {
        let metrics = Metrics::new(cell, ink);
        let mut atlas = Atlas::empty(cell, ink);

        // Marks and ASCII must all be there: where pixels are taken, the least sure pixels give way.
        for skeleton in font::skeletons() {
            let kind = match skeleton.name {
                Name::Newline => TileKind::Newline,
                Name::Tab => TileKind::Tab,
                Name::Hard => TileKind::Hard,
                Name::Code(code) if code < 128 => TileKind::Glyph(code),
                _ => continue,
            };
            atlas.require(kind, &skeleton.draw(&metrics)[0]);
            if let TileKind::Glyph(code) = kind
                && MARK_ALPHABET.contains(&(code as u8))
            {
                let metrics = if b"0123456789<>".contains(&(code as u8)) { metrics.inset() } else { metrics };
                atlas.require(TileKind::Inverse(code as u8), &skeleton.draw(&metrics)[0]);
            }
        }
        atlas.close_plain();
        // Wide glyphs come last: a half of an arrow must not take the place of a line.
        let mut wide = Vec::new();
        for skeleton in font::skeletons() {
            match skeleton.name {
                Name::Code(code) if code >= 128 => match &skeleton.draw(&metrics)[..] {
                    [one] => atlas.offer(code, std::slice::from_ref(one)),
                    halves => wide.push((code, halves.to_vec())),
                },
                _ => {}
            }
        }
        for (code, coverage) in construct::glyphs(cell, ink) {
            atlas.offer(code, &[coverage]);
        }
        for (code, halves) in wide {
            atlas.offer(code, &halves);
        }
        atlas
    }

    /// Adds a mark, an ASCII glyph or an inverse character; where its pixels are taken, others like them.
    fn require(&mut self, kind: TileKind, coverage: &[u8]) {
        let flip = if matches!(kind, TileKind::Inverse(_)) { self.ink.levels() - 1 } else { 0 };
        let shown = |levels: &[u8]| levels.iter().map(|&level| level.abs_diff(flip)).collect::<Vec<_>>();
        let free = |levels: &[u8]| !self.by_levels.contains_key(&shown(levels)[..]);
        if let Some(levels) = font::free_levels(coverage, self.ink, free) {
            self.admit(kind, shown(&levels));
        }
    }

    /// Adds a mark, an ASCII glyph or an inverse character of these levels; false if something looks like it.
    pub(crate) fn admit(&mut self, kind: TileKind, levels: Vec<u8>) -> bool {
        if self.by_levels.contains_key(&levels[..]) {
            return false;
        }
        let tile = self.add(kind, levels);
        match kind {
            TileKind::Newline => self.marks.newline = tile,
            TileKind::Tab => self.marks.tab = tile,
            TileKind::Hard => self.marks.hard = tile,
            TileKind::Glyph(code) => self.ascii[code as usize] = tile,
            TileKind::Inverse(ascii) => self.inverse[usize::from(ascii)] = tile,
            _ => {}
        }
        true
    }

    /// Whether everything is there that marks are made of.
    pub(crate) fn has_marks(&self) -> bool {
        let Marks { newline, tab, hard, .. } = self.marks;
        let written = MARK_ALPHABET.iter().map(|&ascii| self.inverse[usize::from(ascii)]);
        [newline, tab, hard].into_iter().chain(written).all(|tile| tile != NONE)
    }

    /// Adds a glyph of one or two cells if nothing else looks like it.
    fn offer(&mut self, code: u32, cells: &[Vec<u8>]) {
        if self.others.contains_key(&code) {
            return;
        }
        let cells: Vec<_> = cells.iter().map(|coverage| font::levels(coverage, self.ink)).collect();
        if cells.iter().any(|levels| self.by_levels.contains_key(&levels[..])) {
            return;
        }
        let glyph = match &cells[..] {
            [one] => Glyph::One(self.add(TileKind::Glyph(code), one.clone())),
            [left, right] if left != right => {
                let left = self.add(TileKind::WideLeft(code), left.clone());
                Glyph::Wide(left, self.add(TileKind::WideRight(code), right.clone()))
            }
            _ => return,
        };
        self.others.insert(code, glyph);
    }

    /// Sets how a code point is drawn: a tile of its own, or two that others may have a half in common with.
    /// False if there is no room for more tiles.
    pub(crate) fn set(&mut self, code: u32, cells: &[&[u8]]) -> bool {
        if self.kinds.len() + cells.len() > usize::from(NONE) {
            return false;
        }
        let mut tile = |kind, levels: &[u8]| match self.by_levels.get(levels) {
            Some(&tile) => tile,
            None => self.add(kind, levels.to_vec()),
        };
        let glyph = match *cells {
            [left, right] => {
                Glyph::Wide(tile(TileKind::WideLeft(code), left), tile(TileKind::WideRight(code), right))
            }
            _ => Glyph::One(tile(TileKind::Glyph(code), cells[0])),
        };
        self.others.insert(code, glyph);
        true
    }

    /// The tiles of every code point that is no ASCII, by code point.
    pub(crate) fn others(&self) -> impl Iterator<Item = (u32, Glyph)> {
        let mut others: Vec<_> = self.others.iter().map(|(&code, &glyph)| (code, glyph)).collect();
        others.sort_unstable_by_key(|&(code, _)| code);
        others.into_iter()
    }

    fn add(&mut self, kind: TileKind, levels: Vec<u8>) -> Tile {
        let tile = self.kinds.len() as Tile;
        // A copy of an atlas in use may grow.
        self.stencil.take();
        self.kinds.push(kind);
        for row in levels.chunks(usize::from(self.cell.width)) {
            self.rows.push(row.iter().fold(0, |bits, &level| bits << self.ink.bits() | u32::from(level)));
        }
        self.levels.extend_from_slice(&levels);
        self.by_levels.insert(levels.into_boxed_slice(), tile);
        tile
    }
}
