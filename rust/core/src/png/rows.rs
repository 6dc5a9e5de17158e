//! The fastest level: rows of cells to one deflate block, row by row, without a search in the pixels.
//!
//! Cells that stood before on the page were drawn alike, so one look-up in the text gives a match at the same
//! distance in every scanline of the row. It must be shifted by whole bytes, so only groups of cells that fill
//! whole bytes are looked up. Runs of one byte are found eight bytes at a time; all else is literals.
use crate::atlas::Tile;

use super::huffman::{Bits, Code, Frequencies, MATCH_MAX, WINDOW, Word};
use simd_adler32::Adler32;

/// A match shorter than this costs more than its literals.
const MATCH_MIN: usize = 5;
/// Bits that the cells looked up at once fill at least.
const KEY_BITS: usize = 40;
/// Slots of the table, a power of two.
const SLOTS: u32 = 11;
/// A run is found by comparing words, so it is at least this long.
const WORD: usize = 8;
/// Bytes behind a scanline, so that a word can be read from any byte of it.
pub(crate) const PADDING: usize = WORD;

/// Where a deflate block goes.
pub(crate) trait Sink {
    /// What is encoded next.
    fn begin(&mut self, bytes: &[u8]);
    fn literals(&mut self, bytes: &[u8]);
    /// `length` is 3 to 258, `distance` up to 32,768.
    fn repeat(&mut self, length: usize, distance: usize);
}

impl Sink for Frequencies {
    fn begin(&mut self, _: &[u8]) {}

    fn literals(&mut self, bytes: &[u8]) {
        Frequencies::literals(self, bytes);
    }

    fn repeat(&mut self, length: usize, distance: usize) {
        Frequencies::repeat(self, length, distance);
    }
}

/// A zlib stream (RFC 1950) of one block.
pub(crate) struct Zlib<'a> {
    bits: Bits<'a>,
    code: &'a Code,
    sum: Adler32,
}

impl<'a> Zlib<'a> {
    /// Begins the stream, in place of what `out` holds.
    pub(crate) fn new(code: &'a Code, out: &'a mut Vec<u8>) -> Zlib<'a> {
        // Method 8 with a 32 KiB window, the fastest compressor; the two bytes are a multiple of 31.
        const HEADER: Word = Word { bits: 0x01_78, count: 16 };
        Zlib { bits: Bits::new(HEADER, code, out), code, sum: Adler32::new() }
    }

    pub(crate) fn finish(self) {
        self.bits.finish().extend(self.sum.finish().to_be_bytes());
    }
}

impl Sink for Zlib<'_> {
    fn begin(&mut self, bytes: &[u8]) {
        self.sum.write(bytes);
        self.bits.reserve(bytes.len());
    }

    #[inline(always)]
    fn literals(&mut self, bytes: &[u8]) {
        self.bits.literals(bytes);
    }

    #[inline(always)]
    fn repeat(&mut self, length: usize, distance: usize) {
        self.bits.put(self.code.repeat(length, distance));
    }
}

/// Bytes of each scanline of a row, the filter's counted, that equal those at some distance before.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    from: usize,
    to: usize,
    distance: usize,
}

/// Finds what of a row of cells stood before on the page.
pub(crate) struct Repeats {
    columns: usize,
    /// Bits of a cell's scanline.
    bits: usize,
    /// Bytes of a scanline with its filter, and of a row of cells.
    line: usize,
    strip: usize,
    /// Fewest cells that fill whole bytes, and how many are looked up at once.
    group: usize,
    key: usize,
    /// The last place of a key, and what tells most keys of one slot apart.
    table: Vec<(u32, u32)>,
    found: Vec<Repeat>,
}

impl Repeats {
    /// For pages of `columns` cells and scanlines of `stride` bytes; `bits` and `height` are those of a cell.
    pub(crate) fn new(columns: usize, stride: usize, bits: usize, height: usize) -> Repeats {
        let group = 8 >> bits.trailing_zeros().min(3);
        Repeats {
            columns,
            bits,
            line: stride + 1,
            strip: (stride + 1) * height,
            group,
            key: group * KEY_BITS.div_ceil(group * bits),
            table: vec![(0, 0); 1 << SLOTS],
            found: Vec::new(),
        }
    }

    /// Forgets the page before.
    pub(crate) fn clear(&mut self) {
        self.table.fill((0, 0));
    }

    /// Looks at scanlines without cells.
    pub(crate) fn find_none(&mut self) {
        self.found.clear();
    }

    /// Looks at row `row` of a page's tiles; the rows above it were looked at in order.
    #[inline(always)]
    pub(crate) fn find(&mut self, tiles: &[Tile], row: usize) {
        self.found.clear();
        let Repeats { columns, group, key, .. } = *self;
        let start = row * columns;
        let mut free = 0;
        for column in (0..(columns + 1).saturating_sub(key)).step_by(group) {
            let here = start + column;
            let wanted = &tiles[here..here + key];
            let hash = hash(wanted);
            let slot = &mut self.table[(hash >> (64 - SLOTS)) as usize];
            let (there, mark) = std::mem::replace(slot, (here as u32, hash as u32));
            let there = there as usize;
            if mark != hash as u32 || column < free || there >= here {
                continue;
            }
            if tiles[there..there + key] != *wanted {
                continue;
            }
            let (above, other) = (row - there / columns, there % columns);
            // Other cells on either side that are the same.
            let (now, then) = (&tiles[start..start + columns], &tiles[there - other..][..columns]);
            let alike = |(a, b): &(&Tile, &Tile)| a == b;
            let more = now[column + key..].iter().zip(&then[other + key..]).take_while(alike).count();
            let less =
                now[free..column].iter().rev().zip(then[..other].iter().rev()).take_while(alike).count();
            let (from, to) = (column - less, column + key + more);
            let shift = (column as isize - other as isize) * self.bits as isize / 8;
            let distance = (above * self.strip) as isize + shift;
            if !(1..=WINDOW as isize).contains(&distance) {
                continue;
            }
            free = to;
            // Whole bytes; to the edges of the page where both rows reach them.
            let from = (from * self.bits).div_ceil(8) + 1;
            let to = if to == columns && shift == 0 { self.line } else { to * self.bits / 8 + 1 };
            if to >= from + MATCH_MIN {
                self.found.push(Repeat { from, to, distance: distance as usize });
            }
        }
    }

    /// Encodes a filtered scanline of the row that was looked at. `line` is followed by [`PADDING`] bytes.
    #[inline(always)]
    pub(crate) fn encode(&self, line: &[u8], sink: &mut impl Sink) {
        let end = line.len() - PADDING;
        let (mut written, mut at) = (0, 1);
        for repeat in self.found.iter().copied().chain([Repeat { from: end, to: end, distance: 0 }]) {
            while at < repeat.from {
                if !runs_on(line, at) {
                    at += WORD;
                    continue;
                }
                let run = run(line, at, end);
                if run < MATCH_MIN {
                    // Only with what is behind the line.
                    break;
                }
                sink.literals(&line[written..at]);
                matches(run, 1, sink);
                at += run;
                written = at;
            }
            // A run may have gone past the repeat's beginning, a word without one only seems to.
            at = written.max(repeat.from);
            if repeat.to < at + MATCH_MIN {
                continue;
            }
            sink.literals(&line[written..at]);
            let mut length = repeat.to - at;
            let mut distance = repeat.distance;
            if runs_on(line, at) {
                let run = run(line, at, end);
                if run >= length {
                    (length, distance) = (run, 1);
                }
            }
            matches(length, distance, sink);
            at += length;
            written = at;
        }
        sink.literals(&line[written..end]);
    }
}

/// A match of any length as matches of at most 258 bytes, none under 3.
#[inline(always)]
fn matches(mut left: usize, distance: usize, sink: &mut impl Sink) {
    while left > MATCH_MAX {
        let length = MATCH_MAX.min(left - 3);
        sink.repeat(length, distance);
        left -= length;
    }
    sink.repeat(left, distance);
}

#[inline(always)]
fn word(line: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(line[at..at + WORD].try_into().expect("a word"))
}

/// Whether the word at `at` holds nothing but the byte before it.
#[inline(always)]
fn runs_on(line: &[u8], at: usize) -> bool {
    let word = word(line, at);
    word == word.rotate_left(8) && word as u8 == line[at - 1]
}

/// How many bytes from `at` on equal the one before them; none from `end` on.
#[inline(always)]
fn run(line: &[u8], at: usize, end: usize) -> usize {
    let wanted = u64::from(line[at - 1]) * 0x0101_0101_0101_0101;
    let mut length = 0;
    while at + length < end {
        let differ = word(line, at + length) ^ wanted;
        if differ != 0 {
            length += differ.trailing_zeros() as usize / 8;
            break;
        }
        length += WORD;
    }
    length.min(end - at)
}

/// Mixes some cells, best into the high bits.
#[inline(always)]
fn hash(tiles: &[Tile]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut fours = tiles.chunks_exact(4);
    let mut mixed = 0u64;
    for four in &mut fours {
        let word = four.iter().rev().fold(0, |word, &tile| word << 16 | u64::from(tile));
        mixed = (mixed.rotate_left(29) ^ word).wrapping_mul(FACTOR);
    }
    for &tile in fours.remainder() {
        mixed = (mixed.rotate_left(29) ^ u64::from(tile)).wrapping_mul(FACTOR);
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a sink was given, put together.
    #[derive(Default)]
    struct Decoded {
        bytes: Vec<u8>,
        repeats: usize,
    }

    impl Sink for Decoded {
        fn begin(&mut self, _: &[u8]) {}

        fn literals(&mut self, bytes: &[u8]) {
            self.bytes.extend(bytes);
        }

        fn repeat(&mut self, length: usize, distance: usize) {
            assert!((3..=MATCH_MAX).contains(&length) && (1..=WINDOW).contains(&distance));
            assert!(distance <= self.bytes.len());
            self.repeats += 1;
            (0..length).for_each(|_| self.bytes.push(self.bytes[self.bytes.len() - distance]));
        }
    }

    /// Rows of tiles whose scanlines are `bits` wide, drawn bit by bit, through [`Repeats`] and back.
    fn round_trip(tiles: &[Tile], columns: usize, bits: usize, height: usize) -> usize {
        let stride = (columns * bits).div_ceil(8) + 1;
        let mut repeats = Repeats::new(columns, stride, bits, height);
        let (mut wanted, mut decoded) = (Vec::new(), Decoded::default());
        for (row, cells) in tiles.chunks_exact(columns).enumerate() {
            repeats.find(tiles, row);
            for y in 0..height {
                let mut line = vec![0xFF; stride + 1];
                line[0] = 0;
                for (at, bit) in
                    cells.iter().flat_map(|&tile| (0..bits).map(move |bit| (tile, bit))).enumerate()
                {
                    let (tile, bit) = bit;
                    // Three tiles in four have nothing on every other scanline.
                    let inked = tile % 4 == 0 || y % 2 == 0;
                    if inked && (usize::from(tile) * 37 + y * 11) >> (bit % 7) & 1 == 0 {
                        line[1 + at / 8] &= !(0x80 >> (at % 8));
                    }
                }
                wanted.extend(&line);
                line.extend([0xFF; PADDING]);
                repeats.encode(&line, &mut decoded);
            }
        }
        assert!(decoded.bytes == wanted);
        decoded.repeats
    }

    proptest! {
        #[test]
        fn rows_come_back(
            columns in 1..60usize,
            bits in prop::sample::select(vec![4, 5, 8, 9, 12, 14, 18, 32]),
            height in 1..6usize,
            stretches in prop::collection::vec(
                prop_oneof![
                    (0..9u16, 1..90usize).prop_map(|(tile, count)| vec![tile; count]),
                    (1..200usize, 1..40usize).prop_map(|(first, count)| (first..first + count).map(|tile| tile as u16).collect()),
                    prop::collection::vec(0..40u16, 1..30),
                ],
                1..40,
            ),
        ) {
            let tiles = stretches.concat();
            let tiles = &tiles[..tiles.len() / columns * columns];
            round_trip(tiles, columns, bits, height);
        }
    }

    #[test]
    fn repeats_are_found_where_whole_bytes_are_between_them() {
        let row: Vec<Tile> = (0..48).collect();
        let other: Vec<Tile> = (100..148).collect();
        for bits in 4..=32 {
            // Twice the same row: a repeat on every scanline of the second.
            assert!(round_trip(&[&row[..], &row].concat(), 48, bits, 3) >= 3, "{bits} bits");
            // Eight cells to the side, one row between.
            let shifted = [&row[8..], &other[..8]].concat();
            assert!(round_trip(&[&row[..], &other, &shifted].concat(), 48, bits, 3) >= 3, "{bits} bits");
        }
    }
}
