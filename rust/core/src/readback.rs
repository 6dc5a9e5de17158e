//! Pixels to segments: the reading half of the page grammar.
//!
//! Shares no code with the layout, only the atlas and the words of the grammar. A page is cut into
//! cells, each cell is looked up by its pixels, and the first cell of an item decides what it is.
use std::fmt;
use std::sync::Arc;

use crate::atlas::{Atlas, Cell, Ink, TileKind};
use crate::grammar::{self, Kind, LEGEND_PAGE, NAME_MAX, Piece};
use crate::page::MAX_PIXELS;
use crate::typeface::{Half, Shown, Typeface};

/// An image in 8-bit grey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pixels {
    width: usize,
    height: usize,
    grey: Vec<u8>,
}

/// How pages are read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// `None`: every cell is tried.
    pub cell: Option<Cell>,
    pub ink: Option<Ink>,
    /// What pages of its cell and ink are read by, in place of the font's own glyphs.
    pub typeface: Option<Arc<Typeface>>,
    /// Most bytes of text that a reading may give: bounds what a forged count can ask for.
    pub limit: usize,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { cell: None, ink: None, typeface: None, limit: 1 << 30 }
    }
}

/// A place on a page, for errors: counted from 1 (the page in the order given) and 0 (row, column).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Where {
    pub page: usize,
    pub row: usize,
    pub column: usize,
}

impl fmt::Display for Where {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "page {}, row {}, column {}", self.page, self.row, self.column)
    }
}

/// Why pages cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    #[error("not a PNG that can be decoded: {0}")]
    Png(String),
    #[error("{width} × {height} pixels do not fit the data, or are more than {MAX_PIXELS}")]
    Size { width: usize, height: usize },
    #[error("page {page}: not a page of glyphs; its first row is no legend at any cell asked for")]
    NoLegend { page: usize },
    #[error("{0}: no glyph of the font looks like this cell")]
    NoGlyph(Where),
    #[error("{0}: a mark begins here that the page grammar does not have")]
    BadMark(Where),
    #[error("{0}: a mark is cut off by the end of the page")]
    Cut(Where),
    #[error("{0}: half of a wide glyph")]
    HalfGlyph(Where),
    #[error("{0}: more text than the limit of {1} bytes")]
    TooLong(Where, usize),
}

impl Pixels {
    /// Takes pixels as they are; there must be `width` × `height` of them.
    pub fn new(width: usize, height: usize, grey: Vec<u8>) -> Result<Pixels, ReadError> {
        if width.checked_mul(height) != Some(grey.len()) || grey.len() as u64 > MAX_PIXELS {
            return Err(ReadError::Size { width, height });
        }
        Ok(Pixels { width, height, grey })
    }

    /// Decodes any PNG: colours become luma, transparency lies on white.
    pub fn from_png(file: &[u8]) -> Result<Pixels, ReadError> {
        let broken = |error: ::png::DecodingError| ReadError::Png(error.to_string());
        let mut decoder = ::png::Decoder::new(std::io::Cursor::new(file));
        // Chunks that read-back has no use for, and whose contents may be hostile.
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        decoder.set_transformations(::png::Transformations::EXPAND | ::png::Transformations::STRIP_16);
        let mut reader = decoder.read_info().map_err(broken)?;
        let (width, height) = reader.info().size();
        let size = || ReadError::Size { width: width as usize, height: height as usize };
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(size());
        }
        let mut data = vec![0; reader.output_buffer_size().ok_or_else(size)?];
        let frame = reader.next_frame(&mut data).map_err(broken)?;
        data.truncate(frame.buffer_size());
        let samples = frame.color_type.samples();
        let grey = match frame.color_type {
            ::png::ColorType::Grayscale => data,
            _ => data.chunks_exact(samples).map(grey).collect(),
        };
        Pixels::new(width as usize, height as usize, grey)
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    /// Rows from the top, 0 = black .. 255 = white.
    pub fn grey(&self) -> &[u8] {
        &self.grey
    }
}

/// One 8-bit sample group (grey + alpha, RGB, RGBA) as grey on white.
fn grey(samples: &[u8]) -> u8 {
    // ITU-R BT.601 luma in thousandths; equal channels keep their value.
    let luma = |red: u8, green: u8, blue: u8| {
        ((u32::from(red) * 299 + u32::from(green) * 587 + u32::from(blue) * 114 + 500) / 1000) as u8
    };
    let over_white = |value: u8, alpha: u8| {
        ((u32::from(value) * u32::from(alpha) + 255 * (255 - u32::from(alpha)) + 127) / 255) as u8
    };
    match *samples {
        [value, alpha] => over_white(value, alpha),
        [red, green, blue] => luma(red, green, blue),
        [red, green, blue, alpha] => over_white(luma(red, green, blue), alpha),
        _ => samples[0],
    }
}

/// The ink's level that is nearest to an 8-bit grey.
fn level(ink: Ink, value: u8) -> u8 {
    let steps = u32::from(ink.levels() - 1);
    ((u32::from(value) * steps + 127) / 255) as u8
}

impl ReadOptions {
    fn allows(&self, (cell, ink): Form) -> bool {
        self.cell.is_none_or(|asked| asked == cell) && self.ink.is_none_or(|asked| asked == ink)
    }
}

/// Reads pages in the order given; segments are merged over page ends.
pub fn read_back<'p>(
    pages: impl IntoIterator<Item = &'p Pixels>,
    options: &ReadOptions,
) -> Result<Vec<Piece>, ReadError> {
    let mut reader = Reader::new(options.clone());
    for pixels in pages {
        reader.page(pixels)?;
    }
    Ok(reader.finish())
}

/// A turn bar and where it stands: `cells` of them from `at` on, running over the ends of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedBar {
    pub turn: u64,
    pub kind: String,
    pub at: Where,
    pub cells: usize,
}

/// The cell of a page and its bars in reading order.
pub fn bars(pixels: &Pixels, options: &ReadOptions) -> Result<(Cell, Vec<PlacedBar>), ReadError> {
    let mut reader = Reader::new(options.clone());
    reader.page(pixels)?;
    let (cell, _) = reader.form.ok_or(ReadError::NoLegend { page: 1 })?;
    Ok((cell, reader.out.bars))
}

/// The first cell and ink, the usual ones first, at which the first row of a page is a legend.
pub fn form_of(pixels: &Pixels, options: &ReadOptions) -> Option<(Cell, Ink)> {
    let legend = |form: &Form| Grid::new(1, pixels, *form, None).is_some_and(|grid| grid.has_legend());
    forms(pixels, options).find(legend)
}

/// A cell and ink that pages are read at.
type Form = (Cell, Ink);

/// Reads page after page.
pub struct Reader {
    options: ReadOptions,
    pages: usize,
    /// The form of the page before: most likely this one's.
    form: Option<Form>,
    out: Out,
}

impl Reader {
    pub fn new(options: ReadOptions) -> Reader {
        let out = Out { pieces: Vec::new(), bars: Vec::new(), limit: options.limit, left: options.limit };
        Reader { options, pages: 0, form: None, out }
    }

    /// Reads one page at the first form at which its legend and its stream decode.
    pub fn page(&mut self, pixels: &Pixels) -> Result<(), ReadError> {
        self.pages += 1;
        let page = self.pages;
        let mut first_error = None;
        let typeface = self.options.typeface.as_deref();
        let likely = self.form.or(typeface.map(|typeface| (typeface.cell(), typeface.ink())));
        let likely = likely.filter(|form| self.options.allows(*form));
        for candidate in likely.into_iter().chain(forms(pixels, &self.options)) {
            let Some(grid) = Grid::new(page, pixels, candidate, typeface) else { continue };
            if !grid.has_legend() {
                continue;
            }
            let before = self.out.mark();
            match grid.read(&mut self.out) {
                Ok(()) => {
                    self.form = Some(candidate);
                    return Ok(());
                }
                Err(error) => {
                    self.out.restore(before);
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or(ReadError::NoLegend { page }))
    }

    /// What the pages hold, in normal form.
    pub fn finish(self) -> Vec<Piece> {
        self.out.pieces
    }
}

/// The forms to try, the usual cells first.
fn forms<'a>(pixels: &'a Pixels, options: &'a ReadOptions) -> impl Iterator<Item = Form> + 'a {
    const USUAL: [(u32, u32); 6] = [(9, 16), (5, 10), (6, 12), (7, 14), (5, 8), (8, 16)];
    let shades =
        pixels.grey.iter().take(pixels.width * 32).any(|&value| !matches!(level(Ink::Grey, value), 0 | 3));
    let inks = if shades { [Ink::Grey, Ink::Mono] } else { [Ink::Mono, Ink::Grey] };
    let all = (6..=32).flat_map(|height| (4..=16).map(move |width| (width, height)));
    let cells = USUAL.into_iter().chain(all.filter(|cell| !USUAL.contains(cell)));
    let cells = cells.filter_map(|(width, height)| Cell::new(width, height).ok());
    cells
        .flat_map(move |cell| inks.into_iter().map(move |ink| (cell, ink)))
        .filter(|form| options.allows(*form))
}

/// What cells are looked up in.
enum Glyphs<'a> {
    Own(&'static Atlas),
    Given(&'a Typeface),
}

impl Glyphs<'_> {
    #[inline]
    fn identify(&self, levels: &[u8]) -> Option<Shown> {
        match self {
            Glyphs::Own(atlas) => atlas.identify(levels).map(Shown::Whole),
            Glyphs::Given(typeface) => typeface.identify(levels),
        }
    }
}

/// A page cut into cells.
struct Grid<'a> {
    page: usize,
    pixels: &'a Pixels,
    cell: Cell,
    ink: Ink,
    /// The ink's level of each 8-bit grey.
    level_of: [u8; 256],
    columns: usize,
    rows: usize,
    /// What the cells are looked up in, if it is not the font's own atlas.
    typeface: Option<&'a Typeface>,
}

impl<'a> Grid<'a> {
    fn new(
        page: usize,
        pixels: &'a Pixels,
        (cell, ink): Form,
        typeface: Option<&'a Typeface>,
    ) -> Option<Grid<'a>> {
        let typeface = typeface.filter(|typeface| (typeface.cell(), typeface.ink()) == (cell, ink));
        let columns = pixels.width / cell.width as usize;
        let rows = pixels.height / cell.height as usize;
        let long_enough = columns > LEGEND_PAGE.len() && rows > 0;
        let level_of = std::array::from_fn(|value| level(ink, value as u8));
        long_enough.then_some(Grid { page, pixels, cell, ink, level_of, columns, rows, typeface })
    }

    /// The levels of the cell at (row, column), row-major.
    fn levels(&self, row: usize, column: usize, out: &mut Vec<u8>) {
        let (width, height) = (self.cell.width as usize, self.cell.height as usize);
        out.clear();
        for y in row * height..(row + 1) * height {
            let from = y * self.pixels.width + column * width;
            out.extend(
                self.pixels.grey[from..from + width].iter().map(|&value| self.level_of[usize::from(value)]),
            );
        }
    }

    fn is_white(&self, row: usize, column: usize, buffer: &mut Vec<u8>) -> bool {
        self.levels(row, column, buffer);
        buffer.iter().all(|&level| level == self.ink.levels() - 1)
    }

    /// Whether row 0 begins with `page `, a number, and a blank or the row's end.
    fn has_legend(&self) -> bool {
        let buffer = &mut Vec::new();
        // Cheap first: the atlas of a cell is built only where the word's outline fits.
        let word = LEGEND_PAGE.len() - 1;
        let outline = (0..word).all(|column| !self.is_white(0, column, buffer))
            && self.is_white(0, word, buffer)
            && !self.is_white(0, word + 1, buffer);
        if !outline {
            return false;
        }
        let glyphs = self.glyphs();
        let mut letter = |column: usize| {
            self.levels(0, column, buffer);
            match glyphs.identify(buffer)? {
                Shown::Whole(TileKind::Glyph(code_point)) => char::from_u32(code_point),
                Shown::Whole(TileKind::Inverse(ascii)) => Some(ascii as char),
                Shown::Whole(TileKind::Blank) => Some(' '),
                _ => None,
            }
        };
        let named = LEGEND_PAGE.chars().enumerate().all(|(column, each)| letter(column) == Some(each));
        let mut end = LEGEND_PAGE.len();
        while end < self.columns && letter(end).is_some_and(|each| each.is_ascii_digit()) {
            end += 1;
        }
        named && end > LEGEND_PAGE.len() && (end == self.columns || letter(end) == Some(' '))
    }

    fn glyphs(&self) -> Glyphs<'a> {
        match self.typeface {
            Some(typeface) => Glyphs::Given(typeface),
            None => Glyphs::Own(Atlas::get(self.cell, self.ink)),
        }
    }

    /// Reads the stream below the legend.
    fn read(&self, out: &mut Out) -> Result<(), ReadError> {
        let glyphs = self.glyphs();
        let mut buffer = Vec::new();
        let mut kinds = Vec::with_capacity(self.columns * (self.rows - 1));
        for row in 1..self.rows {
            for column in 0..self.columns {
                self.levels(row, column, &mut buffer);
                let kind = glyphs.identify(&buffer);
                kinds.push(kind.ok_or(ReadError::NoGlyph(Where { page: self.page, row, column }))?);
            }
        }
        // Whatever is behind the last cell with ink is padding.
        let end = kinds
            .iter()
            .rposition(|kind| !matches!(kind, Shown::Whole(TileKind::Blank)))
            .map_or(0, |last| last + 1);
        kinds.truncate(end);
        Stream { page: self.page, columns: self.columns, kinds: &kinds, typeface: self.typeface, at: 0, out }
            .read()
    }
}

/// The cells of one page in reading order.
struct Stream<'a> {
    page: usize,
    columns: usize,
    kinds: &'a [Shown],
    typeface: Option<&'a Typeface>,
    at: usize,
    out: &'a mut Out,
}

impl Stream<'_> {
    fn place(&self, at: usize) -> Where {
        Where { page: self.page, row: 1 + at / self.columns, column: at % self.columns }
    }

    /// Takes the next cell of a mark that began at `first`.
    fn next(&mut self, first: usize) -> Result<TileKind, ReadError> {
        let kind = *self.kinds.get(self.at).ok_or(ReadError::Cut(self.place(first)))?;
        self.at += 1;
        match kind {
            Shown::Whole(kind) => Ok(kind),
            Shown::Half(_) => Err(ReadError::BadMark(self.place(first))),
        }
    }

    /// Takes inverse cells while `wanted` holds, at most `most`.
    fn inverse_while(&mut self, most: usize, wanted: impl Fn(u8) -> bool) -> String {
        let mut text = String::new();
        while let Some(&Shown::Whole(TileKind::Inverse(ascii))) = self.kinds.get(self.at) {
            if text.len() == most || !wanted(ascii) {
                break;
            }
            text.push(ascii as char);
            self.at += 1;
        }
        text
    }

    fn read(mut self) -> Result<(), ReadError> {
        while let Some(&kind) = self.kinds.get(self.at) {
            let first = self.at;
            let here = self.place(first);
            let kind = match kind {
                Shown::Whole(kind) => kind,
                Shown::Half(left) => {
                    self.wide(left, here)?;
                    continue;
                }
            };
            match kind {
                TileKind::Blank => {
                    self.at += 1;
                    self.out.code_point(u32::from(b' '), 1, here)?;
                }
                TileKind::Glyph(code_point) => {
                    self.at += 1;
                    self.out.code_point(code_point, 1, here)?;
                }
                TileKind::WideLeft(code_point) => {
                    self.at += 1;
                    let parted = here.column + 1 == self.columns;
                    if parted
                        || self.kinds.get(self.at) != Some(&Shown::Whole(TileKind::WideRight(code_point)))
                    {
                        return Err(ReadError::HalfGlyph(here));
                    }
                    self.at += 1;
                    self.out.code_point(code_point, 1, here)?;
                }
                TileKind::WideRight(_) => return Err(ReadError::HalfGlyph(here)),
                TileKind::Newline | TileKind::Hard | TileKind::Tab => self.unit(1, here)?,
                TileKind::Inverse(b'0'..=b'9') => self.counted(here)?,
                TileKind::Inverse(b'<') => self.escape(here)?,
                TileKind::Solid => self.bar(here)?,
                TileKind::Inverse(_) => return Err(ReadError::BadMark(here)),
            }
        }
        Ok(())
    }

    /// A wide glyph by its halves, which others may have too.
    fn wide(&mut self, left: Half, here: Where) -> Result<(), ReadError> {
        let right = match self.kinds.get(self.at + 1) {
            Some(&Shown::Half(right)) if here.column + 1 < self.columns => right,
            _ => return Err(ReadError::HalfGlyph(here)),
        };
        let code_point = self.typeface.and_then(|typeface| typeface.pair(left, right));
        self.at += 2;
        self.out.code_point(code_point.ok_or(ReadError::HalfGlyph(here))?, 1, here)
    }

    /// The mark at hand, `count` times over; after a hard line break the rest of the row is padding.
    fn unit(&mut self, count: usize, here: Where) -> Result<(), ReadError> {
        let mark = self.next(self.at)?;
        match mark {
            TileKind::Tab => self.out.code_point(u32::from(b'\t'), count, here)?,
            _ => self.out.code_point(u32::from(b'\n'), count, here)?,
        }
        if mark == TileKind::Hard {
            let next = self.at.next_multiple_of(self.columns);
            let padding = &self.kinds[self.at..next.min(self.kinds.len())];
            if padding.iter().any(|kind| !matches!(kind, Shown::Whole(TileKind::Blank))) {
                return Err(ReadError::BadMark(self.place(self.at)));
            }
            self.at = next;
        }
        Ok(())
    }

    /// Digits, and what they count: spaces unless the mark of another unit follows.
    fn counted(&mut self, here: Where) -> Result<(), ReadError> {
        let digits = self.inverse_while(usize::MAX, |ascii| ascii.is_ascii_digit());
        if digits.starts_with('0') {
            return Err(ReadError::BadMark(here));
        }
        // A count that does not even fit the machine is over any limit.
        let count = digits.parse::<usize>().map_err(|_| self.out.too_long(here))?;
        match self.kinds.get(self.at) {
            Some(Shown::Whole(TileKind::Newline | TileKind::Hard | TileKind::Tab)) => {
                return self.unit(count, here);
            }
            Some(Shown::Whole(TileKind::Inverse(b's'))) => self.at += 1,
            _ => {}
        }
        self.out.code_point(u32::from(b' '), count, here)
    }

    /// `<1b>`: a code point by its number.
    fn escape(&mut self, here: Where) -> Result<(), ReadError> {
        let first = self.at;
        self.at += 1;
        let digits = self.inverse_while(6, |ascii| matches!(ascii, b'0'..=b'9' | b'a'..=b'f'));
        if self.next(first)? != TileKind::Inverse(b'>') || (digits.starts_with('0') && digits != "0") {
            return Err(ReadError::BadMark(here));
        }
        match u32::from_str_radix(&digits, 16) {
            Ok(code_point @ 0..=0x10_FFFF) => self.out.code_point(code_point, 1, here),
            _ => Err(ReadError::BadMark(here)),
        }
    }

    /// ` 12 call bash `: a turn bar.
    fn bar(&mut self, here: Where) -> Result<(), ReadError> {
        let first = self.at;
        let bad = Err(ReadError::BadMark(here));
        self.at += 1;
        let digits = self.inverse_while(20, |ascii| ascii.is_ascii_digit());
        let canonical = digits == "0" || !digits.starts_with('0');
        let Some(turn) = digits.parse::<u64>().ok().filter(|_| canonical) else {
            return if self.at == self.kinds.len() { Err(ReadError::Cut(here)) } else { bad };
        };
        if self.next(first)? != TileKind::Solid {
            return bad;
        }
        let mut words = self.inverse_while(NAME_MAX, grammar::is_name_byte);
        if self.next(first)? != TileKind::Solid {
            return bad;
        }
        if matches!(words.as_str(), "call" | "result") {
            words.push(' ');
            words += &self.inverse_while(NAME_MAX, grammar::is_name_byte);
            if self.next(first)? != TileKind::Solid {
                return bad;
            }
        }
        match Kind::parse(&words) {
            Some(_) => {
                let (kind, cells) = (words.clone(), self.at - first);
                self.out.bars.push(PlacedBar { turn, kind, at: here, cells });
                self.out.pieces.push(Piece::Bar { turn, kind: words });
                Ok(())
            }
            None => bad,
        }
    }
}

/// What has been read so far.
struct Out {
    pieces: Vec<Piece>,
    bars: Vec<PlacedBar>,
    limit: usize,
    /// Bytes that may still come.
    left: usize,
}

impl Out {
    fn code_point(&mut self, code_point: u32, count: usize, here: Where) -> Result<(), ReadError> {
        let mut one = Vec::with_capacity(4);
        grammar::encode(code_point, &mut one);
        let size = one.len().checked_mul(count).filter(|size| *size <= self.left);
        self.left -= size.ok_or_else(|| self.too_long(here))?;
        if !matches!(self.pieces.last(), Some(Piece::Text(_))) {
            self.pieces.push(Piece::Text(Vec::new()));
        }
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            if one.len() == 1 {
                text.resize(text.len() + count, one[0]);
            } else {
                text.extend(one.repeat(count));
            }
        }
        Ok(())
    }

    fn too_long(&self, here: Where) -> ReadError {
        ReadError::TooLong(here, self.limit)
    }

    /// The state to come back to when a reading fails: pieces, bars, length of the last text, room left.
    fn mark(&self) -> (usize, usize, usize, usize) {
        let tail = match self.pieces.last() {
            Some(Piece::Text(text)) => text.len(),
            _ => 0,
        };
        (self.pieces.len(), self.bars.len(), tail, self.left)
    }

    fn restore(&mut self, (pieces, bars, tail, left): (usize, usize, usize, usize)) {
        self.pieces.truncate(pieces);
        self.bars.truncate(bars);
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            text.truncate(tail);
        }
        self.left = left;
    }
}
