//! The PNG container: signature, chunks and their checksums (ISO/IEC 15948).
pub mod deflate;
pub(crate) mod huffman;
pub(crate) mod rows;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Colour type 0: greyscale.
const GREYSCALE: u8 = 0;

/// A PNG file that grows chunk by chunk in one buffer.
pub(crate) struct Container {
    bytes: Vec<u8>,
    /// Where the length field of the open chunk stands.
    open: usize,
}

impl Container {
    /// Begins a greyscale image: signature and IHDR.
    pub(crate) fn new(width: u32, height: u32, depth: u8) -> Container {
        let mut container = Container { bytes: SIGNATURE.to_vec(), open: 0 };
        let header = container.begin(b"IHDR");
        header.extend(width.to_be_bytes());
        header.extend(height.to_be_bytes());
        // Compression 0 (deflate), filter method 0, not interlaced.
        header.extend([depth, GREYSCALE, 0, 0, 0]);
        container.end();
        container
    }

    /// Adds a tEXt chunk. The keyword is 1 to 79 bytes, both are free of NUL.
    pub(crate) fn text(&mut self, keyword: &str, value: &str) {
        let chunk = self.begin(b"tEXt");
        chunk.extend(keyword.as_bytes());
        chunk.push(0);
        chunk.extend(value.as_bytes());
        self.end();
    }

    /// Opens a chunk; what is appended to the buffer up to [`Container::end`] is its data.
    pub(crate) fn begin(&mut self, kind: &[u8; 4]) -> &mut Vec<u8> {
        self.open = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind);
        &mut self.bytes
    }

    /// Closes the open chunk: writes its length and its CRC.
    pub(crate) fn end(&mut self) {
        let length = (self.bytes.len() - self.open - 8) as u32;
        self.bytes[self.open..self.open + 4].copy_from_slice(&length.to_be_bytes());
        let crc = crc32fast::hash(&self.bytes[self.open + 4..]);
        self.bytes.extend(crc.to_be_bytes());
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.begin(b"IEND");
        self.end();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_file_is_the_known_one() {
        // CRCs of an IHDR of 1×1 grey at depth 1 and of the empty IEND, from the PNG specification's CRC code.
        let file = Container::new(1, 1, 1).finish();
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&file[8..33], b"\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x01\0\0\0\0\x37\x6e\xf9\x24");
        assert_eq!(&file[33..], b"\0\0\0\0IEND\xae\x42\x60\x82");
    }
}
