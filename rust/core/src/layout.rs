//! Segments to cells: the writing half of the page grammar.
//!
//! One pass over the source. An item (a mark with all its cells, a glyph) is placed whole or goes to
//! the next page; one to three blanks are held back until the item behind them is placed, and move
//! with it, so that the blank cells at the end of a page are never content.
use std::collections::BTreeMap;

use crate::atlas::{Atlas, Glyph, Tile};
use crate::grammar::{
    self, BLANKS_MAX, Kind, LEGEND_BAR, LEGEND_BREAK, LEGEND_BREAKS, LEGEND_ESCAPE, LEGEND_GAP, LEGEND_PAGE,
    LEGEND_SPACES, LEGEND_TAB, LEGEND_TURN, LEGEND_TURNS, LEGEND_WHAT, Lines, MARKS_MAX, Position, Segment,
};
use crate::page::Error;

/// Least columns and least cells under the legend that a page must have: the longest bar and three
/// blanks have to stand on one page.
const COLUMNS_MIN: usize = 12;
const CELLS_MIN: usize = 96;
/// No tile.
const NONE: Tile = Tile::MAX;

/// The cells of one page and what stands on it.
pub(crate) struct Sheet {
    pub number: u64,
    /// Rows of `columns` tiles, the legend first; as many rows as are in use.
    pub tiles: Vec<Tile>,
    pub turns: Vec<u64>,
    pub start: Place,
    pub end: Place,
    /// Code points that are written as escapes, and how often.
    pub escapes: BTreeMap<u32, u64>,
    /// Cells in use under the legend, the padding of hard lines included.
    pub used: usize,
    pub last: bool,
}

/// A place in the source by bytes and by code points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    pub segment: usize,
    pub byte: usize,
    pub offset: usize,
}

impl From<Place> for Position {
    fn from(place: Place) -> Position {
        Position { segment: place.segment, offset: place.offset }
    }
}

/// The grid and the choices of one document.
pub(crate) struct Form {
    pub columns: usize,
    pub rows: usize,
    pub lines: Lines,
    pub first: u64,
    /// The turn that the document begins inside of, if it does.
    pub inside: Option<u64>,
}

/// Lays `segments` out and hands each finished sheet to `sink`, which gives back a buffer to use again.
pub(crate) fn lay_out(
    segments: &[Segment<'_>],
    atlas: &Atlas,
    form: &Form,
    sink: impl FnMut(Sheet) -> Result<Vec<Tile>, Error>,
) -> Result<(), Error> {
    if form.columns < COLUMNS_MIN || form.columns * form.rows.saturating_sub(1) < CELLS_MIN {
        return Err(Error::PageTooSmall { columns: form.columns, rows: form.rows });
    }
    let bars = form.inside.is_some() || segments.iter().any(|segment| matches!(segment, Segment::Bar { .. }));
    let mut writer = Writer {
        segments,
        atlas,
        form,
        bars,
        sink,
        plain: std::array::from_fn(|code| match code as u8 {
            0x21..=0x7E => match atlas.glyph(code as u32) {
                Some(Glyph::One(tile)) => tile,
                _ => NONE,
            },
            _ => NONE,
        }),
        newline: match form.lines {
            Lines::Flow => atlas.marks().newline,
            Lines::Hard => atlas.marks().hard,
        },
        number: form.first,
        tiles: Vec::new(),
        at: 0,
        gap: 0,
        gap_start: (0, 0),
        start: Place::default(),
        turn: form.inside,
        turns: Vec::new(),
        escapes: BTreeMap::new(),
    };
    writer.open();
    for (index, segment) in segments.iter().enumerate() {
        match *segment {
            Segment::Bar { turn, kind } => writer.bar(index, turn, kind)?,
            Segment::Text(bytes) => {
                let after_text = index > 0 && matches!(segments[index - 1], Segment::Text(_));
                if bytes.is_empty() || after_text {
                    return Err(Error::NotNormal { segment: index });
                }
                writer.text(index, bytes)?;
            }
        }
    }
    writer.end()
}

struct Writer<'a, S> {
    segments: &'a [Segment<'a>],
    atlas: &'a Atlas,
    form: &'a Form,
    /// Whether the legend speaks of turns.
    bars: bool,
    sink: S,
    /// The tiles of plain ASCII glyphs by code, [`NONE`] for all else.
    plain: [Tile; 256],
    newline: Tile,
    // The page under way.
    number: u64,
    tiles: Vec<Tile>,
    /// The next free cell, the legend's row counted.
    at: usize,
    /// Blanks held back, and where they begin (segment, byte).
    gap: usize,
    gap_start: (usize, usize),
    start: Place,
    /// The turn that is being written.
    turn: Option<u64>,
    turns: Vec<u64>,
    escapes: BTreeMap<u32, u64>,
}

impl<S: FnMut(Sheet) -> Result<Vec<Tile>, Error>> Writer<'_, S> {
    fn open(&mut self) {
        self.tiles.clear();
        self.tiles.resize(self.form.columns * self.form.rows, self.atlas.marks().blank);
        self.at = self.form.columns;
    }

    /// Makes sure that the blanks held back and `cells` more fit, on a new page if need be.
    /// `here` is where the item begins.
    #[inline]
    fn room(&mut self, cells: usize, here: (usize, usize)) -> Result<(), Error> {
        if self.at + self.gap + cells > self.tiles.len() {
            let break_at = if self.gap > 0 { self.gap_start } else { here };
            self.close(break_at, false)?;
            self.open();
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, tile: Tile) {
        self.at += self.gap;
        self.gap = 0;
        self.tiles[self.at] = tile;
        self.at += 1;
    }

    fn inverse(&mut self, ascii: impl AsRef<[u8]>) {
        for &byte in ascii.as_ref() {
            self.put(self.atlas.inverse(byte));
        }
    }

    fn bar(&mut self, index: usize, turn: u64, kind: Kind<'_>) -> Result<(), Error> {
        let words = format!(" {turn} {kind} ");
        // A call's name can be built without `Kind::parse`, so it is looked at here.
        if Kind::parse(&kind.to_string()) != Some(kind) {
            return Err(Error::BadKind { segment: index });
        }
        self.room(words.len(), (index, 0))?;
        self.inverse(&words);
        self.turn = Some(turn);
        if !self.turns.contains(&turn) {
            self.turns.push(turn);
        }
        Ok(())
    }

    fn text(&mut self, index: usize, bytes: &[u8]) -> Result<(), Error> {
        if self.turns.is_empty() {
            self.turns.extend(self.turn);
        }
        let last = index + 1 == self.segments.len();
        let hard = self.form.lines == Lines::Hard;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let here = (index, at);
            let tile = self.plain[usize::from(byte)];
            if tile != NONE {
                self.room(1, here)?;
                self.put(tile);
                at += 1;
                at += self.words(&bytes[at..]);
                continue;
            }
            match byte {
                b' ' => {
                    let run = run(&bytes[at..], byte);
                    let next = bytes.get(at + run).copied();
                    let at_end = next.is_none() && last;
                    if run as u64 > BLANKS_MAX || at_end || (hard && next == Some(b'\n')) {
                        let unit = matches!(next, Some(b'\n' | b'\t'));
                        let digits = run.to_string();
                        self.room(digits.len() + usize::from(unit), here)?;
                        self.inverse(digits);
                        if unit {
                            self.inverse(b"s");
                        }
                    } else {
                        self.gap = run;
                        self.gap_start = here;
                    }
                    at += run;
                }
                b'\n' | b'\t' => {
                    let run = run(&bytes[at..], byte);
                    let mark = if byte == b'\n' { self.newline } else { self.atlas.marks().tab };
                    let ends_row = hard && byte == b'\n';
                    if run as u64 > MARKS_MAX {
                        let digits = run.to_string();
                        self.room(digits.len() + 1, here)?;
                        self.inverse(digits);
                        self.put(mark);
                        if ends_row {
                            self.end_row();
                        }
                    } else {
                        for each in 0..run {
                            self.room(1, (index, at + each))?;
                            self.put(mark);
                            if ends_row {
                                self.end_row();
                            }
                        }
                    }
                    at += run;
                }
                _ => {
                    let Some((code_point, length)) = grammar::decode(&bytes[at..]) else {
                        return Err(Error::BadText { segment: index, byte: at });
                    };
                    self.code_point(code_point, here)?;
                    at += length;
                }
            }
        }
        Ok(())
    }

    /// Places plain glyphs and single blanks between them while there is room; returns how many.
    fn words(&mut self, bytes: &[u8]) -> usize {
        let mut placed = 0;
        for (index, (cell, &byte)) in self.tiles[self.at..].iter_mut().zip(bytes).enumerate() {
            let tile = self.plain[usize::from(byte)];
            if tile != NONE {
                *cell = tile;
                placed = index + 1;
            } else if byte != b' ' || placed < index {
                break;
            }
        }
        self.at += placed;
        placed
    }

    /// Places a code point as its glyph or, where it has none that fits in the row, as an escape.
    fn code_point(&mut self, code_point: u32, here: (usize, usize)) -> Result<(), Error> {
        match self.atlas.glyph(code_point) {
            Some(Glyph::One(tile)) => {
                self.room(1, here)?;
                self.put(tile);
                return Ok(());
            }
            Some(Glyph::Wide(left, right)) => {
                self.room(2, here)?;
                if (self.at + self.gap) % self.form.columns + 1 < self.form.columns {
                    self.put(left);
                    self.put(right);
                    return Ok(());
                }
            }
            None => {}
        }
        let escape = format!("<{code_point:x}>");
        self.room(escape.len(), here)?;
        self.inverse(escape);
        *self.escapes.entry(code_point).or_default() += 1;
        Ok(())
    }

    /// After a hard line break: the next item begins in the next row.
    fn end_row(&mut self) {
        self.at = self.at.next_multiple_of(self.form.columns);
    }

    /// Ends the document; an empty one has no pages.
    fn end(&mut self) -> Result<(), Error> {
        if self.segments.is_empty() {
            return Ok(());
        }
        self.close((self.segments.len(), 0), true)
    }

    /// Finishes the page under way, which ends before `(segment, byte)`.
    #[cold]
    fn close(&mut self, (segment, byte): (usize, usize), last: bool) -> Result<(), Error> {
        let counted =
            if segment == self.start.segment { (self.start.byte, self.start.offset) } else { (0, 0) };
        let offset = match self.segments.get(segment) {
            Some(Segment::Text(bytes)) => counted.1 + grammar::count(&bytes[counted.0..byte]),
            _ => 0,
        };
        let end = Place { segment, byte, offset };
        let used = self.at - self.form.columns;
        let mut tiles = std::mem::take(&mut self.tiles);
        tiles.truncate(self.at.next_multiple_of(self.form.columns));
        let turns = std::mem::take(&mut self.turns);
        // Parts of a text follow on the next page only if the break is inside the turn under way.
        if matches!(self.segments.get(segment), Some(Segment::Text(_))) {
            self.turns.extend(self.turn);
        }
        let legend = self.legend(&turns)?;
        tiles[..legend.len()].copy_from_slice(&legend);
        let sheet = Sheet {
            number: self.number,
            tiles,
            turns,
            start: self.start,
            end,
            escapes: std::mem::take(&mut self.escapes),
            used,
            last,
        };
        self.number = self.number.saturating_add(1);
        self.start = end;
        self.tiles = (self.sink)(sheet)?;
        Ok(())
    }

    /// The cells of row 0: items in order while they fit whole.
    fn legend(&self, turns: &[u64]) -> Result<Vec<Tile>, Error> {
        let marks = self.atlas.marks();
        let inverse = |text: &str| text.bytes().map(|byte| self.atlas.inverse(byte)).collect::<Vec<_>>();
        let ink = |text: &str| {
            text.chars()
                .map(|each| match self.atlas.glyph(each as u32) {
                    Some(Glyph::One(tile)) => Some(tile),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>()
        };
        let join = |mark: Vec<Tile>, text: &str| ink(text).map(|tail| [mark, tail].concat());

        // Some letters cannot be told apart at the smallest cells; those of the marks always can.
        let page = format!("{LEGEND_PAGE}{}", self.number);
        let page = page.chars().map(|each| match self.atlas.glyph(each as u32) {
            Some(Glyph::One(tile)) => tile,
            _ => self.atlas.inverse(each as u8),
        });
        let mut legend: Vec<Tile> = page.collect();
        if legend.len() > self.form.columns {
            return Err(Error::PageTooSmall { columns: self.form.columns, rows: self.form.rows });
        }

        let range = match (turns.iter().min(), turns.iter().max()) {
            (Some(low), Some(high)) if low == high => Some(format!("{LEGEND_TURN}{low}")),
            (Some(low), Some(high)) => Some(format!("{LEGEND_TURNS}{low}-{high}")),
            _ => None,
        };
        let bars = |item: Option<Vec<Tile>>| if self.bars { Some(item) } else { None };
        let items = [
            range.map(|text| ink(&text)),
            Some(join(vec![self.newline], LEGEND_BREAK)),
            Some(join(vec![marks.tab], LEGEND_TAB)),
            Some(join(inverse(LEGEND_SPACES.0), LEGEND_SPACES.1)),
            Some(join([inverse(LEGEND_BREAKS.0), vec![self.newline]].concat(), LEGEND_BREAKS.1)),
            bars(join(inverse(LEGEND_BAR.0), LEGEND_BAR.1)),
            Some(join(inverse(LEGEND_ESCAPE.0), LEGEND_ESCAPE.1)),
            bars(ink(LEGEND_WHAT)),
        ];
        for item in items.into_iter().flatten() {
            // An item with a letter that is not drawable here is left out.
            let Some(item) = item else { continue };
            if legend.len() + LEGEND_GAP + item.len() > self.form.columns {
                break;
            }
            legend.extend([marks.blank; LEGEND_GAP]);
            legend.extend(item);
        }
        Ok(legend)
    }
}

/// How often the first byte stands in a row.
fn run(bytes: &[u8], byte: u8) -> usize {
    bytes.iter().take_while(|&&each| each == byte).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::{Cell, Ink, TileKind};

    /// The stream of each page as the specification writes it: inverse cells in brackets, `␊` line
    /// break, `⏎` hard line break, `⇥` tab, `·` blank; padding at the end left out.
    fn streams(segments: &[Segment], form: &Form) -> Vec<String> {
        let atlas = Atlas::get(Cell::new(9, 16).unwrap(), Ink::Grey);
        let mut pages = Vec::new();
        lay_out(segments, atlas, form, |sheet| {
            assert!(sheet.tiles.len() <= form.columns * form.rows);
            assert_eq!(sheet.tiles.len(), form.columns + sheet.used.next_multiple_of(form.columns));
            let kinds = sheet.tiles[form.columns..].iter().map(|&tile| atlas.kind(tile));
            let mut text = String::new();
            for kind in kinds {
                let (inverse, shown) = match kind {
                    TileKind::Inverse(ascii) => (true, ascii as char),
                    TileKind::Solid => (true, ' '),
                    TileKind::Blank => (false, '·'),
                    TileKind::Newline => (false, '␊'),
                    TileKind::Hard => (false, '⏎'),
                    TileKind::Tab => (false, '⇥'),
                    TileKind::Glyph(code) | TileKind::WideLeft(code) => {
                        (false, char::from_u32(code).unwrap())
                    }
                    TileKind::WideRight(_) => (false, '+'),
                };
                match (inverse, text.ends_with(']')) {
                    (true, true) => text.insert(text.len() - 1, shown),
                    (true, false) => text.extend(['[', shown, ']']),
                    (false, _) => text.push(shown),
                }
            }
            pages.push(text.trim_end_matches('·').to_owned());
            Ok(sheet.tiles)
        })
        .unwrap();
        pages
    }

    fn form(columns: usize, rows: usize, lines: Lines) -> Form {
        Form { columns, rows, lines, first: 1, inside: None }
    }

    fn flow(text: &str) -> String {
        streams(&[Segment::Text(text.as_bytes())], &form(200, 9, Lines::Flow)).concat()
    }

    #[test]
    fn cells_are_those_of_the_specification() {
        for (text, cells) in [
            ("a b", "a·b"),
            ("a   b", "a···b"),
            ("a        b", "a[8]b"),
            ("a\n\n\n        b", "a[3]␊[8]b"),
            ("a        \n\n\nb", "a[8s3]␊b"),
            ("a    \nb", "a[4s]␊b"),
            ("a    \tb", "a[4s]⇥b"),
            ("a    \r", "a[4<d>]"),
            ("a   \n", "a···␊"),
            ("a\n\n\tb", "a␊␊⇥b"),
            ("\t\t\t\n", "[3]⇥␊"),
            ("\u{1b}[0m", "[<1b>][0m"),
            ("\0\u{10ffff}", "[<0><10ffff>]"),
            ("  ", "[2]"),
            ("x ", "x[1]"),
            ("x    ", "x[4]"),
            ("\n\n\n", "[3]␊"),
        ] {
            assert_eq!(flow(text), cells, "{text:?}");
        }
        let surrogates = [Segment::Text(b"\xed\xa0\xbd\xed\xb8\x80")];
        assert_eq!(streams(&surrogates, &form(200, 9, Lines::Flow)), ["[<d83d><de00>]"]);
        let turn = |turn, kind| Segment::Bar { turn, kind };
        let bars = [
            turn(12, Kind::Call("bash")),
            Segment::Text(b"ls  "),
            turn(12, Kind::ResultOk),
            turn(13, Kind::User),
            Segment::Text(b"    "),
            turn(0, Kind::ResultError),
        ];
        let cells = "[ 12 call bash ]ls··[ 12 result ok  13 user 4 0 result error ]";
        assert_eq!(streams(&bars, &form(200, 9, Lines::Flow)), [cells]);
    }

    #[test]
    fn hard_lines_end_their_row() {
        let text = "ab  \n\nc\n\n\n  d";
        let cells = streams(&[Segment::Text(text.as_bytes())], &form(20, 9, Lines::Hard)).concat();
        let blank = |cells: usize| "·".repeat(cells);
        assert_eq!(cells, format!("ab[2s]⏎{}⏎{}c[3]⏎{}··d", blank(15), blank(19), blank(17)));
        // A row that the mark fills has no padding; a page's last row that it ends is full.
        let cells =
            streams(&[Segment::Text(format!("{}\ny", "x".repeat(19)).as_bytes())], &form(20, 9, Lines::Hard));
        assert_eq!(cells, [format!("{}⏎y", "x".repeat(19))]);
        let lines = "x\n".repeat(9);
        let cells = streams(&[Segment::Text(lines.as_bytes())], &form(20, 9, Lines::Hard));
        assert_eq!(cells.iter().map(|page| page.matches("x⏎").count()).collect::<Vec<_>>(), [8, 1]);
    }

    #[test]
    fn blanks_move_with_what_follows_them() {
        // 8 rows of 12 cells under the legend.
        let form = form(12, 9, Lines::Flow);
        let text = |text: String| streams(&[Segment::Text(text.as_bytes())], &form);
        let full = "x".repeat(94);
        assert_eq!(text(full.clone() + " y"), [full.clone() + "·y"]);
        assert_eq!(text(full.clone() + "  y"), [full.clone(), "··y".into()]);
        assert_eq!(text(full.clone() + "   y"), [full.clone(), "···y".into()]);
        assert_eq!(text(full.clone() + "  "), [full.clone() + "[2]"]);
        // A mark that does not fit goes whole, and leaves the page's end blank.
        assert_eq!(text(full.clone() + "\u{1b}"), [full.clone(), "[<1b>]".into()]);
        assert_eq!(text(full.clone() + " \u{1b}"), [full.clone(), "·[<1b>]".into()]);
        // The `s` stands even if the unit opens the next page; single marks may be parted.
        assert_eq!(text(full.clone() + "    \n"), [full.clone() + "[4s]", "␊".into()]);
        assert_eq!(text(full.clone() + "x\n\n"), [full.clone() + "x␊", "␊".into()]);
        assert_eq!(text(full.clone() + "x\n\n\n"), [full.clone() + "x", "[3]␊".into()]);
    }

    #[test]
    fn a_wide_glyph_is_never_parted() {
        let form = form(12, 9, Lines::Flow);
        let text = |text: String| streams(&[Segment::Text(text.as_bytes())], &form);
        assert_eq!(text("x".repeat(10) + "✅"), ["x".repeat(10) + "✅+"]);
        assert_eq!(text("x".repeat(11) + "✅"), ["x".repeat(11) + "[<2705>]"]);
        assert_eq!(text("x".repeat(9) + "  ✅"), ["x".repeat(9) + "··[<2705>]"]);
        assert_eq!(text("x".repeat(95) + "✅"), ["x".repeat(95), "✅+".into()]);
    }
}
