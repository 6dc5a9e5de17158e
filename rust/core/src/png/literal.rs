//! A zlib stream of Huffman-coded bytes and runs, without a search for repeats: the fastest level.
//!
//! One dynamic block (RFC 1951, 3.2.7) holds the whole page. Runs of one byte, which blank cells make,
//! are matches at distance 1; every other byte is a literal under the page's own code.

/// Symbols of the literal and length alphabet: bytes, the block's end, lengths.
const SYMBOLS: usize = 286;
const END: usize = 256;
/// Longest code that deflate has.
const CODE_MAX: u8 = 15;
/// A run is found by comparing words, so it is at least this long.
const WORD: usize = 8;
/// Longest match.
const MATCH_MAX: usize = 258;

/// First length of each length symbol from 257 on, and its extra bits (RFC 1951, 3.2.5).
const LENGTHS: [(u16, u8); 29] = {
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

/// Appends `data` as a zlib stream (RFC 1950).
pub(crate) fn compress(data: &[u8], out: &mut Vec<u8>) {
    let runs = find_runs(data);
    let lengths = code_lengths(&frequencies(data, &runs));
    let codes = codes(&lengths);

    // Method 8 with a 32 KiB window, the fastest compressor; the sum is a multiple of 31.
    out.extend([0x78, 0x01]);
    let mut bits = Bits::new(out);
    // The final block, with codes of its own.
    bits.put(0b101, 3);
    bits.put((SYMBOLS - 257) as u64, 5);
    bits.put(0, 5); // one distance code
    bits.put(19 - 4, 4);
    // The code of the code lengths: 4 bits for each of 0 to 15, in the order that the format has; no repeats.
    for symbol in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15] {
        bits.put(if symbol < 16 { 4 } else { 0 }, 3);
    }
    for &length in lengths.iter().chain(&[1]) {
        bits.put(reversed(length.into(), 4).into(), 4);
    }
    let mut at = 0;
    for run in runs.iter().copied().chain([Run { start: data.len(), length: 0 }]) {
        let mut literals = data[at..run.start].chunks_exact(3);
        for literal in &mut literals {
            for &byte in literal {
                bits.hold(codes[usize::from(byte)]);
            }
            bits.flush();
        }
        for &byte in literals.remainder() {
            bits.hold(codes[usize::from(byte)]);
            bits.flush();
        }
        for length in run.matches() {
            let symbol = length_symbol(length);
            let (first, extra) = LENGTHS[symbol];
            bits.hold(codes[END + 1 + symbol]);
            // The extra bits, then the only distance code: one bit, zero.
            bits.put((length - usize::from(first)) as u64, u32::from(extra) + 1);
        }
        at = run.start + run.length;
    }
    bits.hold(codes[END]);
    bits.finish();
    out.extend(simd_adler32::adler32(&data).to_be_bytes());
}

/// Bytes that equal the one before them.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    length: usize,
}

impl Run {
    /// The run as match lengths, none under 3.
    fn matches(self) -> impl Iterator<Item = usize> {
        let mut left = self.length;
        std::iter::from_fn(move || {
            let next = match left {
                0 => return None,
                1..=MATCH_MAX => left,
                // What is left over must be long enough for a match, too.
                _ => MATCH_MAX.min(left - 3),
            };
            left -= next;
            Some(next)
        })
    }
}

fn find_runs(data: &[u8]) -> Vec<Run> {
    let mut runs = Vec::new();
    let word = |at: usize| {
        data.get(at..at + WORD).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("a word")))
    };
    let mut at = 1;
    while let Some(next) = word(at) {
        let differ = next ^ word(at - 1).expect("a word begins one byte earlier");
        if differ != 0 {
            // No run that begins at or before the last byte that differs is as long as a word.
            at += WORD - differ.leading_zeros() as usize / 8;
            continue;
        }
        let byte = data[at];
        let length = WORD + data[at + WORD..].iter().take_while(|&&each| each == byte).count();
        runs.push(Run { start: at, length });
        at += length + 1;
    }
    runs
}

fn frequencies(data: &[u8], runs: &[Run]) -> [u32; SYMBOLS] {
    // Two tables, since the same byte twice in a row would wait for its own count.
    let (mut even, mut odd) = ([0; SYMBOLS], [0; 256]);
    let mut at = 0;
    for run in runs.iter().copied().chain([Run { start: data.len(), length: 0 }]) {
        let pairs = data[at..run.start].chunks_exact(2);
        for &byte in pairs.remainder() {
            even[usize::from(byte)] += 1;
        }
        for pair in pairs {
            even[usize::from(pair[0])] += 1;
            odd[usize::from(pair[1])] += 1;
        }
        for length in run.matches() {
            even[END + 1 + length_symbol(length)] += 1;
        }
        at = run.start + run.length;
    }
    for (sum, more) in even.iter_mut().zip(odd) {
        *sum += more;
    }
    even[END] = 1;
    even
}

fn length_symbol(length: usize) -> usize {
    LENGTHS.partition_point(|&(first, _)| usize::from(first) <= length) - 1
}

/// Huffman code lengths, at most [`CODE_MAX`]; 0 for what does not occur.
fn code_lengths(frequencies: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut weights: Vec<(u64, usize)> = (0..SYMBOLS)
        .filter(|&symbol| frequencies[symbol] > 0)
        .map(|symbol| (frequencies[symbol].into(), symbol))
        .collect();
    // A code of one symbol is incomplete, which not every decoder takes: a second one joins.
    if weights.len() == 1 {
        weights.push((1, if weights[0].1 == 0 { 1 } else { 0 }));
    }
    loop {
        weights.sort_unstable();
        let lengths = huffman(&weights);
        if lengths.iter().all(|&length| length <= CODE_MAX) {
            return lengths;
        }
        // Flatter weights give shorter codes; equal ones fit in nine bits.
        for (weight, _) in &mut weights {
            *weight = weight.div_ceil(2);
        }
    }
}

/// Lengths of the Huffman code of two or more symbols, given by rising weight.
fn huffman(weights: &[(u64, usize)]) -> [u8; SYMBOLS] {
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
    let mut lengths = [0; SYMBOLS];
    for (&(_, symbol), depth) in weights.iter().zip(depths) {
        lengths[symbol] = depth;
    }
    lengths
}

/// A code as it is written: its bits, the first one lowest, and how many.
#[derive(Clone, Copy, Default)]
struct Code {
    bits: u16,
    length: u8,
}

/// The canonical codes of code lengths (RFC 1951, 3.2.2).
fn codes(lengths: &[u8; SYMBOLS]) -> [Code; SYMBOLS] {
    let mut codes = [Code::default(); SYMBOLS];
    let mut next = 0u16;
    for length in 1..=CODE_MAX {
        next <<= 1;
        for symbol in (0..SYMBOLS).filter(|&symbol| lengths[symbol] == length) {
            codes[symbol] = Code { bits: reversed(next, length), length };
            next += 1;
        }
    }
    codes
}

fn reversed(code: u16, length: u8) -> u16 {
    code.reverse_bits() >> (16 - length)
}

/// Bits onto the end of a buffer, the lowest first.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    /// Whole bytes on their way to `out`: words are written here, whatever part of them counts.
    block: [u8; BLOCK],
    at: usize,
    held: u64,
    count: u32,
}

const BLOCK: usize = 4096;

impl<'a> Bits<'a> {
    fn new(out: &'a mut Vec<u8>) -> Bits<'a> {
        Bits { out, block: [0; BLOCK], at: 0, held: 0, count: 0 }
    }

    /// Adds a code. Between flushes there is room for three, and for the bits of one match.
    #[inline]
    fn hold(&mut self, code: Code) {
        self.held |= u64::from(code.bits) << self.count;
        self.count += u32::from(code.length);
    }

    /// Writes the whole bytes out.
    #[inline]
    fn flush(&mut self) {
        if self.at > BLOCK - WORD {
            self.drain();
        }
        self.block[self.at..self.at + WORD].copy_from_slice(&self.held.to_le_bytes());
        self.at += (self.count / 8) as usize;
        self.held >>= self.count & !7;
        self.count &= 7;
    }

    #[cold]
    fn drain(&mut self) {
        self.out.extend_from_slice(&self.block[..self.at]);
        self.at = 0;
    }

    /// Adds and writes up to 16 bits.
    fn put(&mut self, bits: u64, count: u32) {
        self.held |= bits << self.count;
        self.count += count;
        self.flush();
    }

    fn finish(mut self) {
        self.count = self.count.next_multiple_of(8);
        self.flush();
        self.drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(data: &[u8]) -> Vec<u8> {
        let mut out = b"kept".to_vec();
        compress(data, &mut out);
        assert_eq!(&out[..4], b"kept");
        // Judged by two decoders that share nothing with it: libdeflate and fdeflate check the sum, too.
        let mut inflated = vec![0; data.len() + 1];
        let length = libdeflater::Decompressor::new().zlib_decompress(&out[4..], &mut inflated).unwrap();
        assert!(inflated[..length] == *data);
        assert!(fdeflate::decompress_to_vec(&out[4..]).unwrap() == data);
        out
    }

    #[test]
    fn lengths_are_those_of_the_standard() {
        assert_eq!(LENGTHS[0], (3, 0));
        assert_eq!(LENGTHS[7], (10, 0));
        assert_eq!(LENGTHS[8], (11, 1));
        assert_eq!(LENGTHS[12], (19, 2));
        assert_eq!(LENGTHS[27], (227, 5));
        assert_eq!(LENGTHS[28], (258, 0));
    }

    #[test]
    fn edges_come_back() {
        for length in (0..40).chain([257, 258, 259, 260, 261, 262, 515, 516, 517, 518, 519, 520, 100_000]) {
            round_trip(&vec![0xFF; length]);
            round_trip(&[vec![0xFF; length], vec![0; length], b"x".to_vec()].concat());
        }
        let all: Vec<u8> = (0..=255).collect();
        round_trip(&all.repeat(300));
    }

    #[test]
    fn weights_like_fibonacci_are_kept_to_fifteen_bits() {
        let mut data = Vec::new();
        let (mut last, mut next) = (1usize, 1usize);
        for byte in 0..26 {
            // Alternated with another byte, so that no runs form.
            data.extend([byte, 200].repeat(last));
            (last, next) = (next, last + next);
        }
        round_trip(&data);
    }

    #[test]
    fn blank_pages_are_small() {
        assert!(round_trip(&vec![0xFF; 300_000]).len() < 1000);
    }

    proptest! {
        #[test]
        fn anything_comes_back(pieces in prop::collection::vec((any::<u8>(), 1..700usize, any::<bool>()), 0..60)) {
            let piece = |(byte, count, run): (u8, usize, bool)| -> Vec<u8> {
                if run { vec![byte; count] } else { (0..count % 50).map(|at| byte.wrapping_mul(at as u8)).collect() }
            };
            round_trip(&pieces.into_iter().flat_map(piece).collect::<Vec<_>>());
        }
    }
}
