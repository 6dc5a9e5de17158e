//! A row of cells to packed scanlines, and their PNG filter.
use crate::atlas::{Atlas, Glyph, Ink, Tile};
use crate::cpu::{self, Work};
use crate::png::rows::{PADDING, Repeats, Sink};

/// PNG's filter types (ISO/IEC 15948, 9.2).
const NONE: u8 = 0;
const UP: u8 = 2;
/// Scanlines that are drawn at once: their shifts are the same, so the processor does them together.
const BAND: usize = 8;
/// White at either depth, and how the bits past the right edge are filled.
const WHITE: u8 = 0xFF;

/// What strips are drawn from, made once for an atlas.
#[derive(Clone)]
pub(crate) struct Stencil {
    /// The tiles' packed rows: for each band of scanlines those of every tile.
    bands: Vec<[u32; BAND]>,
    /// The filter of each scanline.
    filters: Vec<u8>,
}

impl Stencil {
    pub(crate) fn new(atlas: &Atlas) -> Stencil {
        let height = usize::from(atlas.cell().height);
        let row = |tile, y| if y < height { atlas.packed_row(tile, y) } else { 0 };
        let mut bands = Vec::new();
        for top in (0..height).step_by(BAND) {
            let tiles = 0..atlas.tiles() as Tile;
            bands.extend(tiles.map(|tile| std::array::from_fn::<_, BAND, _>(|y| row(tile, top + y))));
        }
        Stencil { bands, filters: filters(atlas) }
    }
}

/// The scanlines of one row of cells.
pub(crate) struct Strip<'a> {
    atlas: &'a Atlas,
    stencil: &'a Stencil,
    /// Bytes of a scanline.
    stride: usize,
    lines: Vec<u8>,
    /// The scanlines as a PNG holds them, each behind its filter type, and padding.
    filtered: Vec<u8>,
    /// Whether it must do without what only some processors have.
    portable: bool,
}

impl<'a> Strip<'a> {
    pub(crate) fn new(atlas: &'a Atlas, width: usize, portable: bool) -> Strip<'a> {
        let stride = (width * usize::from(atlas.ink().bits())).div_ceil(8);
        let height = usize::from(atlas.cell().height);
        let lines = vec![WHITE; stride * height.next_multiple_of(BAND)];
        let filtered = vec![0; (stride + 1) * height + PADDING];
        Strip { atlas, stencil: atlas.stencil(), stride, lines, filtered, portable }
    }

    /// Draws a row of cells. What is right of them stays white.
    pub(crate) fn draw(&mut self, tiles: &[Tile]) {
        let portable = self.portable;
        // One function for each width, so that its shifts are constants and scanlines are drawn side by side.
        macro_rules! draw {
            ($($bits:literal)*) => {
                match self.bits() {
                    $($bits => cpu::run(Drawing::<$bits> { strip: self, tiles }, portable),)*
                    bits => unreachable!("a cell of {bits} bits"),
                }
            };
        }
        draw!(4 5 6 7 8 9 10 11 12 13 14 15 16 18 20 22 24 26 28 30 32)
    }

    #[inline(always)]
    fn draw_cells<const BITS: u32>(&mut self, tiles: &[Tile]) {
        let bands = self.stencil.bands.chunks_exact(self.atlas.tiles());
        for (lines, band) in self.lines.chunks_exact_mut(self.stride * BAND).zip(bands) {
            let mut lines = lines.chunks_exact_mut(self.stride);
            let mut out = Band {
                lines: std::array::from_fn(|_| lines.next().expect("a band of lines")),
                pending: [0; BAND],
                held: 0,
                at: 0,
            };
            let join = |tiles: &[Tile]| {
                let mut rows = [0u32; BAND];
                for &tile in tiles {
                    let more = &band[usize::from(tile)];
                    // No more than 32 bits in all: what is there already is not 32 bits wide.
                    rows = std::array::from_fn(|y| rows[y] << (BITS & 31) | more[y]);
                }
                rows
            };
            // As many cells at once as fit in 32 bits.
            let mut groups = tiles.chunks_exact((32 / BITS) as usize);
            for tiles in &mut groups {
                out.add(join(tiles), 32 / BITS * BITS);
            }
            for tile in groups.remainder() {
                out.add(join(std::slice::from_ref(tile)), BITS);
            }
            out.finish();
        }
    }

    /// Bits of a cell's scanline.
    fn bits(&self) -> u32 {
        u32::from(self.atlas.cell().width) * u32::from(self.atlas.ink().bits())
    }

    /// Makes all scanlines white: what is below the last row of cells.
    pub(crate) fn clear(&mut self) {
        self.lines.fill(WHITE);
    }

    /// The first `height` scanlines, packed.
    pub(crate) fn pixels(&self, height: usize) -> &[u8] {
        &self.lines[..height * self.stride]
    }

    /// The first `height` scanlines as a PNG holds them, filtered.
    #[inline(always)]
    pub(crate) fn filter(&mut self, height: usize) -> &[u8] {
        let lines = self.lines.chunks_exact(self.stride);
        let out = self.filtered.chunks_exact_mut(self.stride + 1);
        let mut above: &[u8] = &[];
        for ((line, out), &filter) in lines.zip(out).zip(&self.stencil.filters).take(height) {
            out[0] = filter;
            if filter == UP {
                for ((out, byte), above) in out[1..].iter_mut().zip(line).zip(above) {
                    *out = byte.wrapping_sub(*above);
                }
            } else {
                out[1..].copy_from_slice(line);
            }
            above = line;
        }
        &self.filtered[..height * (self.stride + 1)]
    }

    /// Encodes the first `height` scanlines; `cells` are their cells, as the page's tiles and the row, if they have any.
    pub(crate) fn encode(
        &mut self,
        height: usize,
        cells: Option<(&[Tile], usize)>,
        repeats: &mut Repeats,
        sink: &mut impl Sink,
    ) {
        let portable = self.portable;
        cpu::run(Encoding { strip: self, height, cells, repeats, sink }, portable);
    }

    #[inline(always)]
    fn encode_lines(&mut self, height: usize, repeats: &Repeats, sink: &mut impl Sink) {
        let line = self.stride + 1;
        sink.begin(self.filter(height));
        for y in 0..height {
            repeats.encode(&self.filtered[y * line..(y + 1) * line + PADDING], sink);
        }
    }

    /// Scanlines of a row of cells.
    pub(crate) fn height(&self) -> usize {
        self.stencil.filters.len()
    }

    /// What looks for repeats in rows of so many cells.
    pub(crate) fn repeats(&self, columns: usize) -> Repeats {
        Repeats::new(columns, self.stride, self.bits() as usize, self.height())
    }
}

/// [`Strip::draw`] for cells of `BITS`.
struct Drawing<'s, 'a, const BITS: u32> {
    strip: &'s mut Strip<'a>,
    tiles: &'s [Tile],
}

impl<const BITS: u32> Work for Drawing<'_, '_, BITS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.strip.draw_cells::<BITS>(self.tiles);
    }
}

/// [`Strip::encode`].
struct Encoding<'s, 'a, S> {
    strip: &'s mut Strip<'a>,
    height: usize,
    cells: Option<(&'s [Tile], usize)>,
    repeats: &'s mut Repeats,
    sink: &'s mut S,
}

impl<S: Sink> Work for Encoding<'_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.cells {
            Some((tiles, row)) => self.repeats.find(tiles, row),
            None => self.repeats.find_none(),
        }
        self.strip.encode_lines(self.height, self.repeats, self.sink);
    }
}

/// A band of scanlines under way.
struct Band<'a> {
    lines: [&'a mut [u8]; BAND],
    /// Bits of each line that are not written yet are the lowest `held`, fewer than 32.
    pending: [u64; BAND],
    held: u32,
    /// Where the next bytes go.
    at: usize,
}

impl Band<'_> {
    /// Adds up to 32 bits to each line. Inlined, so that the state stays in registers over the loop.
    #[inline(always)]
    fn add(&mut self, rows: [u32; BAND], bits: u32) {
        self.pending = std::array::from_fn(|y| self.pending[y] << bits | u64::from(rows[y]));
        self.held += bits;
        if self.held >= 32 {
            self.held -= 32;
            self.write(4);
        }
    }

    /// Writes what is left, filled up with white.
    #[inline(always)]
    fn finish(mut self) {
        self.pending = self.pending.map(|pending| pending << 32 | u64::from(u32::MAX));
        self.write(self.held.div_ceil(8) as usize);
    }

    /// Writes the first `bytes` of the 32 bits above the lowest `held`.
    #[inline(always)]
    fn write(&mut self, bytes: usize) {
        for (line, pending) in self.lines.iter_mut().zip(&self.pending) {
            let bits = ((pending >> self.held) as u32).to_be_bytes();
            line[self.at..self.at + bytes].copy_from_slice(&bits[..bytes]);
        }
        self.at += bytes;
    }
}

/// The filter of each scanline of a row of cells, chosen once for a font: Up inside stems.
///
/// Up pays on a scanline where more glyphs repeat the one above than are blank on it, and always
/// hurts on the first, which follows another row of text. Which glyphs are counted, and by how much the
/// narrow cells of grey, whose stems are not all of one level, are to differ, was found by search
/// (`benches/NOTES.md`).
fn filters(atlas: &Atlas) -> Vec<u8> {
    let glyphs: Vec<Tile> = (b'!'..=b'~')
        .filter_map(|each| match atlas.glyph(each.into()) {
            Some(Glyph::One(tile)) => Some(tile),
            _ => None,
        })
        .collect();
    let margin = if atlas.ink() == Ink::Grey && atlas.cell().width < 7 { 20 } else { 0 };
    let blank = atlas.marks().blank;
    let count = |wanted: &dyn Fn(Tile) -> bool| glyphs.iter().filter(|&&tile| wanted(tile)).count();
    let up = |y: usize| {
        let repeated = count(&|tile| atlas.packed_row(tile, y) == atlas.packed_row(tile, y - 1));
        let white = count(&|tile| atlas.packed_row(tile, y) == atlas.packed_row(blank, y));
        repeated * 100 > white * 100 + glyphs.len() * margin
    };
    (0..usize::from(atlas.cell().height)).map(|y| if y > 0 && up(y) { UP } else { NONE }).collect()
}
