//! Deflate's codes (RFC 1951): the alphabets, Huffman codes from frequencies, a block's header, bits.

/// Symbols of the literal and length alphabet: bytes, the block's end, lengths.
pub(crate) const SYMBOLS: usize = 286;
/// Symbols of the distance alphabet.
pub(crate) const DISTANCES: usize = 30;
const END: usize = 256;
/// Longest match, and how far back it may begin.
pub(crate) const MATCH_MAX: usize = 258;
pub(crate) const WINDOW: usize = 1 << 15;
/// Longest code that is made here, of the 15 bits that deflate has: two literals and their lengths fit in 32 bits.
pub(crate) const CODE_MAX: u8 = 13;

/// First value of each symbol and its extra bits.
type Ranges<const N: usize> = [(u16, u8); N];

/// The length symbols from 257 on (RFC 1951, 3.2.5).
const LENGTHS: Ranges<29> = {
    let mut table = [(0, 0); 29];
    let (mut at, mut first) = (0, 3);
    while at < 28 {
        let extra = if at < 8 { 0 } else { at / 4 - 1 };
        table[at] = (first, extra as u8);
        first += 1 << extra;
        at += 1;
    }
    table[28] = (MATCH_MAX as u16, 0);
    table
};

const STEPS: Ranges<DISTANCES> = {
    let mut table = [(0, 0); DISTANCES];
    let (mut at, mut first) = (0, 1);
    while at < DISTANCES {
        let extra = if at < 4 { 0 } else { at / 2 - 1 };
        table[at] = (first, extra as u8);
        first += 1 << extra;
        at += 1;
    }
    table
};

/// The length symbol of each length from 3 on.
const LENGTH_SYMBOLS: [u8; MATCH_MAX + 1] = {
    let mut table = [0; MATCH_MAX + 1];
    let (mut length, mut symbol) = (3, 0);
    while length <= MATCH_MAX {
        if symbol < 28 && length >= LENGTHS[symbol + 1].0 as usize {
            symbol += 1;
        }
        table[length] = symbol as u8;
        length += 1;
    }
    table
};

#[inline(always)]
fn distance_symbol(distance: usize) -> usize {
    debug_assert!((1..=WINDOW).contains(&distance));
    match distance - 1 {
        less @ 0..4 => less,
        less => {
            // Two symbols for each power of two.
            let high = less.ilog2() as usize;
            2 * high + (less >> (high - 1) & 1)
        }
    }
}

/// How often each symbol occurs.
#[derive(Clone)]
pub(crate) struct Frequencies {
    pub(crate) symbols: [u32; SYMBOLS],
    pub(crate) distances: [u32; DISTANCES],
}

impl Frequencies {
    /// Every symbol once, so that every symbol gets a code.
    pub(crate) fn new() -> Frequencies {
        Frequencies { symbols: [1; SYMBOLS], distances: [1; DISTANCES] }
    }

    pub(crate) fn literals(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.symbols[usize::from(byte)] += 1;
        }
    }

    pub(crate) fn repeat(&mut self, length: usize, distance: usize) {
        self.symbols[END + 1 + usize::from(LENGTH_SYMBOLS[length])] += 1;
        self.distances[distance_symbol(distance)] += 1;
    }
}

/// Bits as they are written, the first one lowest.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Word {
    pub(crate) bits: u64,
    pub(crate) count: u32,
}

impl Word {
    #[inline(always)]
    fn then(self, bits: u64, count: u32) -> Word {
        Word { bits: self.bits | bits << self.count, count: self.count + count }
    }
}

/// A code for every symbol, and the header of a block that uses it.
#[derive(Clone)]
pub(crate) struct Code {
    literals: [u32; 256],
    /// Two bytes at once, the first in the low half of the index; see [`packed`].
    pairs: Box<[u32; 1 << 16]>,
    end: Word,
    lengths: [Word; MATCH_MAX + 1],
    distances: [Word; DISTANCES],
    header: Vec<Word>,
}

/// Bits of a packed entry that say how many of those above them are the code. A shift by an entry is one by them.
const COUNT: u32 = 6;
const COUNT_MASK: u32 = (1 << COUNT) - 1;

fn packed(bits: u32, count: u32) -> u32 {
    bits << COUNT | count
}

#[inline(always)]
fn unpacked(entry: u32) -> Word {
    Word { bits: u64::from(entry >> COUNT), count: entry & COUNT_MASK }
}

impl Code {
    pub(crate) fn new(frequencies: &Frequencies) -> Code {
        let symbol_lengths = code_lengths(&frequencies.symbols, CODE_MAX);
        let distance_lengths = code_lengths(&frequencies.distances, CODE_MAX);
        let symbols = codes(&symbol_lengths);
        let literals = std::array::from_fn(|byte| packed(symbols[byte].bits as u32, symbols[byte].count));
        let mut pairs = vec![0; 1 << 16];
        for (second, row) in pairs.chunks_exact_mut(256).enumerate() {
            for (pair, &first) in row.iter_mut().zip(&literals) {
                let first = unpacked(first).then(symbols[second].bits, symbols[second].count);
                *pair = packed(first.bits as u32, first.count);
            }
        }
        let length = |length: usize| {
            let symbol = usize::from(LENGTH_SYMBOLS[length]);
            let (first, extra) = LENGTHS[symbol];
            let more = length.saturating_sub(first.into()) as u64;
            symbols[END + 1 + symbol].then(more, extra.into())
        };
        Code {
            literals,
            pairs: pairs.into_boxed_slice().try_into().expect("a pair for each index"),
            end: symbols[END],
            lengths: std::array::from_fn(length),
            distances: codes(&distance_lengths).try_into().expect("a code for each symbol"),
            header: header(&symbol_lengths, &distance_lengths),
        }
    }

    /// A match as it is written, 44 bits at most.
    #[inline(always)]
    pub(crate) fn repeat(&self, length: usize, distance: usize) -> Word {
        let symbol = distance_symbol(distance);
        let (first, extra) = STEPS[symbol];
        let step = self.distances[symbol].then((distance - usize::from(first)) as u64, extra.into());
        self.lengths[length].then(step.bits, step.count)
    }
}

/// The header of a final block (RFC 1951, 3.2.7).
fn header(symbols: &[u8], distances: &[u8]) -> Vec<Word> {
    // Lengths in a row as (symbol, extra bits, how many); code length 16 repeats the last one, 17 and 18 zero.
    let mut items: Vec<(usize, u64, u32)> = Vec::new();
    let all = [symbols, distances].concat();
    for run in all.chunk_by(|a, b| a == b) {
        let (length, mut left) = (usize::from(run[0]), run.len());
        if length > 0 {
            items.push((length, 0, 0));
            left -= 1;
        }
        while left >= 3 {
            let (item, taken) = match (length, left) {
                (0, 11..) => ((18, left.min(138) as u64 - 11, 7), left.min(138)),
                (0, _) => ((17, left as u64 - 3, 3), left),
                _ => ((16, left.min(6) as u64 - 3, 2), left.min(6)),
            };
            items.push(item);
            left -= taken;
        }
        items.extend(std::iter::repeat_n((length, 0, 0), left));
    }
    let mut frequencies = [0; 19];
    for &(symbol, ..) in &items {
        frequencies[symbol] += 1;
    }
    let lengths = code_lengths(&frequencies, 7);
    let codes = codes(&lengths);
    let mut words = vec![
        // The final block, with codes of its own.
        Word { bits: 0b101, count: 3 },
        Word { bits: (symbols.len() - 257) as u64, count: 5 },
        Word { bits: (distances.len() - 1) as u64, count: 5 },
        Word { bits: 19 - 4, count: 4 },
    ];
    let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    words.extend(order.map(|symbol| Word { bits: lengths[symbol].into(), count: 3 }));
    words.extend(items.iter().map(|&(symbol, extra, count)| codes[symbol].then(extra, count)));
    words
}

/// Huffman code lengths, at most `longest`; 0 for what does not occur.
fn code_lengths(frequencies: &[u32], longest: u8) -> Vec<u8> {
    let mut weights: Vec<(u64, usize)> = (0..frequencies.len())
        .filter(|&symbol| frequencies[symbol] > 0)
        .map(|symbol| (frequencies[symbol].into(), symbol))
        .collect();
    // A code of one symbol is incomplete, which not every decoder takes: others join.
    let absent = (0..frequencies.len()).filter(|&symbol| frequencies[symbol] == 0);
    let more = 2usize.saturating_sub(weights.len());
    weights.extend(absent.take(more).map(|symbol| (1, symbol)));
    loop {
        weights.sort_unstable();
        let mut lengths = vec![0; frequencies.len()];
        for (&(_, symbol), depth) in weights.iter().zip(depths(&weights)) {
            lengths[symbol] = depth;
        }
        if lengths.iter().all(|&length| length <= longest) {
            return lengths;
        }
        // Flatter weights give shorter codes; equal ones fit in nine bits.
        for (weight, _) in &mut weights {
            *weight = weight.div_ceil(2);
        }
    }
}

/// Depths of the leaves in the Huffman tree of two or more weights, given by rising weight.
fn depths(weights: &[(u64, usize)]) -> Vec<u8> {
    // Leaves and then inner nodes, both by rising weight: the two lightest are always at a front.
    let leaves = weights.len();
    let mut nodes: Vec<u64> = weights.iter().map(|&(weight, _)| weight).collect();
    let mut parents = vec![0; 2 * leaves - 1];
    let (mut leaf, mut inner) = (0, leaves);
    for parent in leaves..2 * leaves - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            let lightest = if leaf < leaves && (inner == parent || nodes[leaf] <= nodes[inner]) {
                &mut leaf
            } else {
                &mut inner
            };
            weight += nodes[*lightest];
            parents[*lightest] = parent;
            *lightest += 1;
        }
        nodes.push(weight);
    }
    let mut depths = vec![0u8; 2 * leaves - 1];
    for node in (0..2 * leaves - 2).rev() {
        depths[node] = depths[parents[node]].saturating_add(1);
    }
    depths.truncate(leaves);
    depths
}

/// The canonical codes of code lengths (RFC 1951, 3.2.2), the first bit lowest.
fn codes(lengths: &[u8]) -> Vec<Word> {
    let mut codes = vec![Word::default(); lengths.len()];
    let mut next = 0u16;
    for length in 1..=15 {
        next <<= 1;
        for (code, _) in codes.iter_mut().zip(lengths).filter(|(_, each)| **each == length) {
            let bits = next.reverse_bits() >> (16 - length);
            *code = Word { bits: bits.into(), count: length.into() };
            next += 1;
        }
    }
    codes
}

/// A deflate stream under way: one block under one code.
pub(crate) struct Bits<'a> {
    code: &'a Code,
    out: &'a mut Vec<u8>,
    /// Where in `out` the next whole byte goes; what is behind it is room.
    at: usize,
    held: u64,
    count: u32,
}

/// Bytes that are written at once, whatever part of them counts.
const WORD: usize = 8;

impl<'a> Bits<'a> {
    /// Begins the block behind `first`, in place of what `out` holds.
    pub(crate) fn new(first: Word, code: &'a Code, out: &'a mut Vec<u8>) -> Bits<'a> {
        // Used before: what it has room for need not be cleared again.
        let mut bits = Bits { code, out, at: 0, held: 0, count: 0 };
        bits.reserve(1 + code.header.len());
        bits.put(first);
        for &word in &code.header {
            bits.put(word);
        }
        bits
    }

    /// Makes room for the codes of so many bytes: a literal takes less than two bytes, a match of four or more
    /// bytes less than eight.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let wanted = self.at + 2 * bytes + 2 * WORD;
        if self.out.len() < wanted {
            self.out.resize(wanted.max(2 * self.out.len()), 0);
        }
    }

    /// Adds up to 56 bits.
    #[inline(always)]
    pub(crate) fn put(&mut self, word: Word) {
        self.held |= word.bits << self.count;
        self.count += word.count;
        self.out[self.at..self.at + WORD].copy_from_slice(&self.held.to_le_bytes());
        self.at += (self.count / 8) as usize;
        self.held >>= self.count & !7;
        self.count &= 7;
    }

    #[inline(always)]
    pub(crate) fn literals(&mut self, bytes: &[u8]) {
        let Code { pairs, literals, .. } = self.code;
        // In registers over the loop.
        let Bits { mut at, mut held, mut count, .. } = *self;
        let out = &mut self.out[..];
        let mut fours = bytes.chunks_exact(4);
        for four in &mut fours {
            let four = u32::from_le_bytes(four.try_into().expect("four bytes"));
            let (first, second) = (pairs[four as usize & 0xFFFF], pairs[four as usize >> 16]);
            // Joined first, so that less waits for the bits held; the counts are the lowest bits of the sum.
            let joined = u64::from(first >> COUNT) | u64::from(second >> COUNT) << (first & COUNT_MASK);
            held |= joined << count;
            count = count.wrapping_add(first).wrapping_add(second) & COUNT_MASK;
            out[at..at + WORD].copy_from_slice(&held.to_le_bytes());
            at += (count / 8) as usize;
            held >>= count & !7;
            count &= 7;
        }
        let mut rest = fours.remainder();
        if let [first, second, ..] = *rest {
            let pair = unpacked(pairs[usize::from(u16::from_le_bytes([first, second]))]);
            held |= pair.bits << count;
            count += pair.count;
            rest = &rest[2..];
        }
        if let [last] = *rest {
            let literal = unpacked(literals[usize::from(last)]);
            held |= literal.bits << count;
            count += literal.count;
        }
        (self.at, self.held, self.count) = (at, held, count);
        self.put(Word::default());
    }

    /// Ends the block and fills its last byte up.
    pub(crate) fn finish(mut self) -> &'a mut Vec<u8> {
        self.put(self.code.end);
        self.count = self.count.next_multiple_of(8);
        self.put(Word::default());
        self.out.truncate(self.at);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::png::rows::{Sink, Zlib};
    use proptest::prelude::*;

    /// Part of a stream: bytes, or a repeat of what stands some way back.
    #[derive(Clone, Debug)]
    enum Part {
        Bytes(Vec<u8>),
        Repeat(usize, usize),
    }

    /// Writes parts under a code of `frequencies` and checks that they come out.
    fn round_trip(parts: &[Part], frequencies: &Frequencies) -> usize {
        let code = Code::new(frequencies);
        let mut out = vec![7; 5];
        let mut wanted: Vec<u8> = Vec::new();
        let mut stream = Zlib::new(&code, &mut out);
        for part in parts {
            let at = wanted.len();
            match *part {
                Part::Bytes(ref bytes) => wanted.extend(bytes),
                Part::Repeat(length, back) => {
                    let distance = 1 + back % WINDOW.min(at.max(1));
                    if distance > at {
                        continue;
                    }
                    (0..length).for_each(|each| wanted.push(wanted[at + each - distance]));
                    stream.begin(&wanted[at..]);
                    stream.repeat(length, distance);
                    continue;
                }
            }
            stream.begin(&wanted[at..]);
            stream.literals(&wanted[at..]);
        }
        stream.finish();
        // Judged by two decoders that share nothing with it; both check the sum.
        let mut inflated = vec![0; wanted.len() + 1];
        let length = libdeflater::Decompressor::new().zlib_decompress(&out, &mut inflated).unwrap();
        assert!(inflated[..length] == wanted);
        assert!(fdeflate::decompress_to_vec(&out).unwrap() == wanted);
        out.len()
    }

    #[test]
    fn ranges_are_those_of_the_standard() {
        assert_eq!([LENGTHS[0], LENGTHS[7], LENGTHS[8], LENGTHS[12]], [(3, 0), (10, 0), (11, 1), (19, 2)]);
        assert_eq!([LENGTHS[27], LENGTHS[28]], [(227, 5), (258, 0)]);
        assert_eq!([STEPS[0], STEPS[3], STEPS[4], STEPS[29]], [(1, 0), (4, 0), (5, 1), (24577, 13)]);
        for length in 3..=MATCH_MAX {
            let (first, extra) = LENGTHS[usize::from(LENGTH_SYMBOLS[length])];
            assert!((usize::from(first)..usize::from(first) + (1 << extra)).contains(&length));
        }
        for distance in 1..=WINDOW {
            let (first, extra) = STEPS[distance_symbol(distance)];
            assert!((usize::from(first)..usize::from(first) + (1 << extra)).contains(&distance));
        }
    }

    #[test]
    fn every_length_and_distance_comes_back() {
        let noise: Vec<u8> = (0..40_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut parts = vec![Part::Bytes(noise)];
        parts.extend((3..=MATCH_MAX).map(|length| Part::Repeat(length, 127 * length)));
        parts.extend((0..WINDOW).step_by(97).map(|back| Part::Repeat(7, back)));
        parts.push(Part::Repeat(MATCH_MAX, WINDOW - 1));
        round_trip(&parts, &Frequencies::new());
    }

    #[test]
    fn codes_are_no_longer_than_asked() {
        // Weights like Fibonacci's make the deepest trees.
        let mut frequencies = Frequencies::new();
        let (mut last, mut next) = (1u32, 1u32);
        for symbol in &mut frequencies.symbols[..40] {
            *symbol = last;
            (last, next) = (next, last.saturating_add(next));
        }
        frequencies.distances[..30].copy_from_slice(&frequencies.symbols[..30]);
        assert!(
            code_lengths(&frequencies.symbols, CODE_MAX).iter().all(|length| (1..=CODE_MAX).contains(length))
        );
        round_trip(&[Part::Bytes((0..=255).collect()), Part::Repeat(258, 0)], &frequencies);
    }

    #[test]
    fn one_symbol_makes_a_whole_code() {
        assert_eq!(code_lengths(&[0, 0, 5], 7), [1, 0, 1]);
        assert_eq!(code_lengths(&[0, 0], 7), [1, 1]);
    }

    proptest! {
        #[test]
        fn anything_comes_back(
            parts in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60).prop_map(Part::Bytes),
                (any::<u8>(), 1..700usize).prop_map(|(byte, count)| Part::Bytes(vec![byte; count])),
                (3..=MATCH_MAX, any::<usize>()).prop_map(|(length, back)| Part::Repeat(length, back)),
            ], 0..60),
            weights in prop::collection::vec(1..100_000u32, SYMBOLS + DISTANCES),
        ) {
            let mut frequencies = Frequencies::new();
            frequencies.symbols.copy_from_slice(&weights[..SYMBOLS]);
            frequencies.distances.copy_from_slice(&weights[SYMBOLS..]);
            round_trip(&parts, &frequencies);
        }
    }
}
