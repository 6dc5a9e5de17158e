//! The one door to the deflate library.
//!
//! zlib-rs: pure Rust, and its output does not depend on the machine (its vector code only compares
//! and slides, the hash is one multiplication everywhere). `benches/NOTES.md` has the rivals.
use zlib_rs::{Deflate, DeflateFlush, Status};

/// How hard the encoder tries. The pixels are the same at every level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Level {
    Fastest,
    #[default]
    Default,
    Smallest,
}

impl Level {
    /// The library's own number.
    fn number(self) -> i32 {
        match self {
            Level::Fastest => 1,
            Level::Default => 2,
            Level::Smallest => 9,
        }
    }
}

/// log2 of the window, the largest that zlib knows.
const WINDOW_BITS: u8 = 15;
/// Free room offered to the library on each call. Fixed, so that the block structure, which may
/// depend on it, is the same everywhere.
const ROOM: usize = 16 << 10;

/// A zlib stream, used again from page to page.
pub(crate) struct Deflater {
    stream: Deflate,
    fresh: bool,
}

impl Deflater {
    pub(crate) fn new(level: Level) -> Deflater {
        Deflater { stream: Deflate::new(level.number(), true, WINDOW_BITS), fresh: true }
    }

    /// Begins a stream.
    pub(crate) fn begin(&mut self) {
        if !self.fresh {
            self.stream.reset();
        }
        self.fresh = false;
    }

    /// Compresses `data` onto the end of `out`.
    pub(crate) fn push(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.run(data, out, DeflateFlush::NoFlush);
    }

    /// Ends the stream, with the checksum.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.run(&[], out, DeflateFlush::Finish);
    }

    fn run(&mut self, mut data: &[u8], out: &mut Vec<u8>, flush: DeflateFlush) {
        loop {
            let length = out.len();
            out.resize(length + ROOM, 0);
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.compress(data, &mut out[length..], flush);
            let written = (self.stream.total_out() - written) as usize;
            data = &data[(self.stream.total_in() - read) as usize..];
            out.truncate(length + written);
            let done = match status {
                Ok(Status::StreamEnd) => true,
                // Without progress there is nothing left to do until more data comes.
                Ok(Status::Ok | Status::BufError) => flush == DeflateFlush::NoFlush && data.is_empty() && written < ROOM,
                Err(error) => unreachable!("deflate fails on a misuse of its state only: {error:?}"),
            };
            if done {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn inflate(bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 4 << 20];
        let mut stream = zlib_rs::Inflate::new(true, WINDOW_BITS);
        let status = stream.decompress(bytes, &mut out, zlib_rs::InflateFlush::Finish).unwrap();
        assert_eq!(status, Status::StreamEnd);
        out.truncate(stream.total_out() as usize);
        out
    }

    #[test]
    fn what_was_pushed_comes_out() {
        let mut seed = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            (seed >> 24) as u8
        })
        .take(300_000)
        .collect();
        for level in [Level::Fastest, Level::Default, Level::Smallest] {
            let mut deflater = Deflater::new(level);
            for data in [&noise[..], &[7; 1_000_000][..], b"", b"x"] {
                let mut out = b"kept".to_vec();
                deflater.begin();
                for piece in data.chunks(7777) {
                    deflater.push(piece, &mut out);
                }
                deflater.finish(&mut out);
                assert_eq!(&out[..4], b"kept");
                assert!(inflate(&out[4..]).bytes().map(Result::unwrap).eq(data.iter().copied()));
            }
        }
    }
}
