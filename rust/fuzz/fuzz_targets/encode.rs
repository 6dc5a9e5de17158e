//! Every level writes the same pixels, and files that decode: `cargo +nightly fuzz run --fuzz-dir rust/fuzz encode`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use microfiche_core::{Atlas, Cell, Ink, Level, Options, Pixels, Segment, digest, render};

fuzz_target!(|input: (u8, u8, u16, u8, bool, Vec<(u16, u8, u8)>)| {
    let (width, height, columns, rows, grey, stretches) = input;
    let cell = Cell::new(4 + u32::from(width) % 13, 6 + u32::from(height) % 27).expect("in range");
    let ink = if grey { Ink::Grey } else { Ink::Mono };
    let columns = 12 + u32::from(columns) % 300;
    let rows = 1 + 96u32.div_ceil(columns) + u32::from(rows) % 40;
    let page = (columns * u32::from(cell.width) + rows % 4, rows * u32::from(cell.height) + columns % 4);
    // Glyphs, repeats of what was written some way back, runs.
    let glyphs: Vec<u32> = Atlas::get(cell, ink).drawable().collect();
    let mut text: Vec<char> = Vec::new();
    for (what, count, back) in stretches {
        let glyph = glyphs[usize::from(what) % glyphs.len()];
        for each in 0..usize::from(count) {
            let from = text.len().checked_sub(1 + 3 * usize::from(back));
            let again = from.map(|from| text[from]);
            text.push(match (what % 3, again) {
                (0, Some(again)) => again,
                (1, _) => char::from(b' ' + (usize::from(what) + each) as u8 % 95),
                _ => char::from_u32(glyph).expect("a glyph's code point"),
            });
        }
    }
    let text: String = text.into_iter().take(20_000).collect();
    if text.is_empty() {
        return;
    }
    let draw = |level, portable| {
        let form = Options::new(cell, ink, page.0, page.1);
        let options = Options { level, portable, digests: true, threads: 1, ..form };
        render(&[Segment::Text(text.as_bytes())], &options).expect("sound text on a page large enough")
    };
    let pages = draw(Level::Fastest, false);
    assert_eq!(draw(Level::Fastest, true), pages);
    for (one, other) in pages.iter().zip(draw(Level::Default, false)) {
        assert_eq!(one.digest, other.digest);
        assert_eq!(one.digest, Some(digest(&one.png).expect("our own file")));
        assert_eq!(Pixels::from_png(&one.png).ok(), Pixels::from_png(&other.png).ok());
    }
});
