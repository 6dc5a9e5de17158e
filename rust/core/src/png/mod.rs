//! The PNG container: signature, chunks and their checksums (ISO/IEC 15948).
pub mod deflate;
pub(crate) mod huffman;
pub(crate) mod rows;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Colour type 0: greyscale.
const GREYSCALE: u8 = 0;

/// A PNG file that grows chunk by chunk in one buffer.
pub(crate) struct Container(Vec<u8>);

/// Bytes of an IHDR chunk and of an IEND chunk.
const FRAME: usize = 25 + 12;
/// Room for a text chunk of the usual length.
const TEXT: usize = 256;

impl Container {
    /// Begins a greyscale image whose compressed data will be of `length` bytes: signature and IHDR.
    pub(crate) fn new(width: u32, height: u32, depth: u8, length: usize) -> Container {
        let mut bytes = Vec::with_capacity(SIGNATURE.len() + FRAME + TEXT + 12 + length);
        bytes.extend(SIGNATURE);
        let mut container = Container(bytes);
        // Compression 0 (deflate), filter method 0, not interlaced.
        let rest = [depth, GREYSCALE, 0, 0, 0];
        container.chunk(b"IHDR", &[&width.to_be_bytes(), &height.to_be_bytes(), &rest]);
        container
    }

    /// Adds a chunk of these data, one after the other.
    pub(crate) fn chunk(&mut self, kind: &[u8; 4], data: &[&[u8]]) {
        let Container(bytes) = self;
        let length: usize = data.iter().map(|part| part.len()).sum();
        bytes.extend((length as u32).to_be_bytes());
        let start = bytes.len();
        bytes.extend(kind);
        for part in data {
            bytes.extend_from_slice(part);
        }
        let crc = crc32fast::hash(&bytes[start..]);
        bytes.extend(crc.to_be_bytes());
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.chunk(b"IEND", &[]);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_file_is_the_known_one() {
        // CRCs of an IHDR of 1×1 grey at depth 1 and of the empty IEND, from the PNG specification's CRC code.
        let file = Container::new(1, 1, 1, 0).finish();
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&file[8..33], b"\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x01\0\0\0\0\x37\x6e\xf9\x24");
        assert_eq!(&file[33..], b"\0\0\0\0IEND\xae\x42\x60\x82");
    }
}
