//! The one door to deflate.
//!
//! libdeflate: no choice that it makes depends on the processor; `benches/NOTES.md` has what its levels give on
//! pages. The fastest level does without a library.
use libdeflater::{CompressionLvl, Compressor};

/// How hard the encoder tries. The pixels are the same at every level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Level {
    Fastest,
    #[default]
    Default,
    Smallest,
}

/// The library's encoder of zlib streams, used again from page to page.
pub(crate) struct Deflater(Compressor);

impl Deflater {
    /// For a level that the library does.
    pub(crate) fn new(level: Level) -> Option<Deflater> {
        let number = match level {
            Level::Fastest => return None,
            Level::Default => 1,
            Level::Smallest => 12,
        };
        let level = CompressionLvl::new(number).expect("libdeflate has the levels 0 to 12");
        Some(Deflater(Compressor::new(level)))
    }

    /// Compresses `data` into `out`, as a zlib stream (RFC 1950).
    pub(crate) fn compress(&mut self, data: &[u8], out: &mut Vec<u8>) {
        // What is there already is not written again.
        out.resize(self.0.zlib_compress_bound(data.len()), 0);
        let written = self.0.zlib_compress(data, out).expect("the bound holds every stream");
        out.truncate(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compressed_comes_out() {
        let mut seed = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        })
        .take(300_000)
        .collect();
        for level in [Level::Default, Level::Smallest] {
            let mut deflater = Deflater::new(level).unwrap();
            for data in [&noise[..], &[7; 1_000_000][..], b"", b"x"] {
                let mut out = b"gone".to_vec();
                deflater.compress(data, &mut out);
                // Judged by a decoder that is not libdeflate's.
                assert!(fdeflate::decompress_to_vec(&out).unwrap() == data);
            }
        }
    }
}
