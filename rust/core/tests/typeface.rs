//! Glyphs of other fonts: what the law lets in, what is drawn of it, and that it reads back.
use std::collections::BTreeMap;
use std::sync::Arc;

use microfiche_core::{
    BadTypeface, Cell, Error, Ink, Level, Options, Page, Piece, Pixels, ReadError, ReadOptions, Segment,
    Typeface, read_back, render,
};
use proptest::prelude::*;

fn cell() -> Cell {
    Cell::new(7, 14).unwrap()
}

fn options(typeface: &Arc<Typeface>) -> Options {
    let (cell, ink) = (typeface.cell(), typeface.ink());
    Options { typeface: Some(typeface.clone()), ..Options::new(cell, ink, 7 * 40, 14 * 12) }
}

fn read(pages: &[Page], typeface: &Arc<Typeface>) -> Result<Vec<Piece>, ReadError> {
    let pixels: Vec<_> = pages.iter().map(|page| Pixels::from_png(&page.png).unwrap()).collect();
    read_back(&pixels, &ReadOptions { typeface: Some(typeface.clone()), ..ReadOptions::default() })
}

fn draw(text: &str, typeface: &Arc<Typeface>) -> Vec<Page> {
    render(&[Segment::Text(text.as_bytes())], &options(typeface)).unwrap()
}

fn offer(typeface: &mut Typeface, code: u32, coverage: &[u8]) -> bool {
    let cells = coverage.len() / (7 * 14);
    typeface.offer(code, cells, (7 * cells, 14), coverage)
}

/// Coverage of so many cells, with ink where `inked` says so.
fn coverage(cells: usize, inked: impl Fn(usize, usize) -> bool) -> Vec<u8> {
    let (width, height) = (7 * cells, 14);
    (0..width * height).map(|at| if inked(at % width, at / width) { 255 } else { 0 }).collect()
}

/// A pattern of its own for each number: its bits as blocks of ink, one row of blocks a cell.
fn pattern(number: u32, cells: usize) -> Vec<u8> {
    coverage(cells, |x, y| {
        x / 7 == 0 && x % 7 < 6 && y < 12 && number >> (x % 7 / 2 + 3 * (y / 2)) & 1 == 1
            || x / 7 == 1 && x % 7 < 6 && y < 12 && (number * 7 + 5) >> (x % 7 / 2 + 3 * (y / 2)) & 1 == 1
    })
}

#[test]
fn without_other_glyphs_the_pages_are_those_of_the_font() {
    let text = "if a <= b:\n        return \"é → ✅ █ 漢\"\n\n\n\tend ✨";
    for ink in [Ink::Grey, Ink::Mono] {
        let own = Options { digests: true, ..Options::new(cell(), ink, 7 * 40, 14 * 12) };
        let typeface = Arc::new(Typeface::own(cell(), ink));
        let given = Options { typeface: Some(typeface.clone()), ..own.clone() };
        let segments = [Segment::Text(text.as_bytes())];
        let (plain, drawn) = (render(&segments, &own).unwrap(), render(&segments, &given).unwrap());
        assert!(plain[0].digest.is_some());
        assert_eq!(plain[0].digest, drawn[0].digest);
        assert_eq!(plain[0].escapes, drawn[0].escapes);
        assert_eq!(read(&drawn, &typeface), Ok(vec![Piece::Text(text.into())]));
    }
}

#[test]
fn what_was_drawn_before_changes_no_page() {
    let made = || {
        let mut typeface = Typeface::own(cell(), Ink::Grey);
        for code in 0x4E00..0x4E20 {
            offer(&mut typeface, code, &pattern(9000 + code, 2));
        }
        Arc::new(typeface)
    };
    let plain = "fn main() { let total = 3; }\n".repeat(9);
    let han: String = (0x4E00..0x4E20).filter_map(char::from_u32).collect();
    let mixed = format!("{plain}{han}{plain}");
    for level in [Level::Fastest, Level::Default] {
        let draw = |text: &str, typeface: &Arc<Typeface>| {
            render(&[Segment::Text(text.as_bytes())], &Options { level, ..options(typeface) }).unwrap()
        };
        let used = made();
        assert_eq!(used.cells(0x4E00), Some(2));
        for text in [&han, &mixed, &plain] {
            let pages = draw(text, &used);
            assert_eq!(pages, draw(text, &made()));
            assert_eq!(read(&pages, &used), Ok(vec![Piece::Text(text.as_bytes().into())]));
        }
    }
}

#[test]
fn only_what_can_be_told_apart_is_drawn() {
    let mut typeface = Typeface::own(cell(), Ink::Grey);
    assert!(!offer(&mut typeface, 0x4E00, &coverage(2, |_, _| false)), "no ink");
    assert!(!offer(&mut typeface, 0x4E00, &coverage(2, |_, _| true)), "solid, as marks are");
    assert!(!offer(&mut typeface, 0x61, &pattern(9, 1)), "ASCII is the font's");
    assert!(!offer(&mut typeface, 0x11_0000, &pattern(9, 1)), "no code point");
    assert!(!offer(&mut typeface, 0x4E00, &[255; 5]), "neither one cell nor two");
    assert!(offer(&mut typeface, 0x500, &pattern(9, 1)));
    assert!(!offer(&mut typeface, 0x500, &pattern(10, 1)), "is there already");
    assert!(offer(&mut typeface, 0x501, &pattern(9, 1)), "a pixel tells it from another");
    assert!(offer(&mut typeface, 0x4E01, &pattern(9000, 2)));
    assert!(offer(&mut typeface, 0x4E02, &pattern(9000, 2)), "a pixel tells it from another");
    // Ink in one half: one cell.
    assert!(offer(&mut typeface, 0x3001, &coverage(2, |x, y| x < 3 && y == 13)));
    assert_eq!(
        [0x500, 0x4E01, 0x3001, 0x20, 0x4E03].map(|code| typeface.cells(code)),
        [Some(1), Some(2), Some(1), Some(1), None]
    );
    let half: Vec<u8> = pattern(9000, 2).chunks(14).flat_map(|row| &row[..7]).copied().collect();
    assert!(offer(&mut typeface, 0x502, &half), "a pixel tells it from half of a wide glyph");
    let typeface = Arc::new(typeface);
    let text = "\u{500}\u{501}\u{502}\u{4E01}\u{501}\u{4E02}";
    assert_eq!(read(&draw(text, &typeface), &typeface), Ok(vec![Piece::Text(text.into())]));
}

#[test]
fn wide_glyphs_may_share_a_half() {
    let mut typeface = Typeface::own(cell(), Ink::Grey);
    let radical = |x: usize, y: usize| x < 5 && y % 3 == 1;
    for code in 0..6 {
        let two = coverage(2, |x, y| radical(x, y) || (7..13).contains(&x) && y == 2 * code);
        assert!(offer(&mut typeface, 0x6C00 + code as u32, &two));
    }
    // Both halves alike, and a left half that is another's right one.
    assert!(offer(&mut typeface, 0x4E8C, &coverage(2, |x, y| x % 7 < 5 && y % 3 == 1)));
    assert!(offer(
        &mut typeface,
        0x4E8D,
        &coverage(2, |x, y| if x < 7 { y == 4 && x < 6 } else { radical(x - 7, y) })
    ));
    let typeface = Arc::new(typeface);
    let text = "\u{6C00}\u{6C05}\u{6C01}\u{4E8C}\u{4E8C}\u{4E8D}\u{6C00} a \u{6C03}";
    let pages = draw(text, &typeface);
    assert!(pages[0].escapes.is_empty());
    assert_eq!(read(&pages, &typeface), Ok(vec![Piece::Text(text.into())]));
    // By the font's own glyphs alone they cannot be read.
    let pixels = Pixels::from_png(&pages[0].png).unwrap();
    assert!(matches!(read_back([&pixels], &ReadOptions::default()), Err(ReadError::NoGlyph(_))));
}

#[test]
fn a_full_page_does_not_change_by_what_follows() {
    let mut typeface = Typeface::own(cell(), Ink::Grey);
    for code in 1..900u32 {
        offer(&mut typeface, 0x4E00 + code, &pattern(code * 37, 2));
    }
    let typeface = Arc::new(typeface);
    let text: String = (1..900u32).rev().filter_map(|code| char::from_u32(0x4E00 + code)).collect();
    let (short, long) = (draw(&text[..1500], &typeface), draw(&text, &typeface));
    assert!(short.len() > 1 && long.len() > short.len());
    for (before, after) in short[..short.len() - 1].iter().zip(&long) {
        assert_eq!(before.png, after.png);
    }
}

#[test]
fn an_atlas_of_another_form_is_refused() {
    let typeface = Arc::new(Typeface::own(cell(), Ink::Grey));
    let other = Options { typeface: Some(typeface), ..Options::new(cell(), Ink::Mono, 280, 168) };
    assert_eq!(render(&[Segment::Text(b"a")], &other), Err(Error::OtherForm));
}

fn filled(glyphs: &BTreeMap<u32, (u32, bool)>, ink: Ink) -> Typeface {
    let mut typeface = Typeface::own(cell(), ink);
    for (&code, &(number, wide)) in glyphs {
        offer(&mut typeface, code, &pattern(number, if wide { 2 } else { 1 }));
    }
    typeface
}

fn glyphs() -> impl Strategy<Value = BTreeMap<u32, (u32, bool)>> {
    prop::collection::btree_map(0x80..0x11_0000u32, (1..1u32 << 18, any::<bool>()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_drawn_reads_back(glyphs in glyphs(), text in "[ -~\n\t]{0,40}", mono in any::<bool>()) {
        let typeface = Arc::new(filled(&glyphs, if mono { Ink::Mono } else { Ink::Grey }));
        let other: String = glyphs.keys().filter_map(|&code| char::from_u32(code)).collect();
        let text = format!("{text}{other}{text}{}", other.chars().rev().collect::<String>());
        let pages = draw(&text, &typeface);
        prop_assert_eq!(read(&pages, &typeface), Ok(vec![Piece::Text(text.into())]));
    }

    #[test]
    fn bytes_keep_a_typeface(glyphs in glyphs(), mono in any::<bool>()) {
        let typeface = filled(&glyphs, if mono { Ink::Mono } else { Ink::Grey });
        let bytes = typeface.to_bytes();
        let kept = Typeface::from_bytes(&bytes).unwrap();
        prop_assert_eq!(kept.to_bytes(), bytes);
        prop_assert!(kept.drawable().eq(typeface.drawable()));
        let text: String = glyphs.keys().filter_map(|&code| char::from_u32(code)).collect();
        let (kept, typeface) = (Arc::new(kept), Arc::new(typeface));
        prop_assert_eq!(draw(&text, &kept), draw(&text, &typeface));
    }

    #[test]
    fn hostile_bytes_are_refused_or_sound(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut typeface = Typeface::own(cell(), Ink::Grey);
        offer(&mut typeface, 0x4E00, &pattern(77, 2));
        let mut bytes = typeface.to_bytes();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        if let Ok(read) = Typeface::from_bytes(&bytes) {
            prop_assert_eq!(read.to_bytes(), bytes);
        }
    }
}

#[test]
fn bytes_that_are_no_typeface_are_told_apart() {
    let bytes = Typeface::own(cell(), Ink::Grey).to_bytes();
    assert_eq!(Typeface::from_bytes(b"PNG").err(), Some(BadTypeface::Magic));
    assert_eq!(Typeface::from_bytes(&bytes[..bytes.len() - 1]).err(), Some(BadTypeface::Length));
    assert_eq!(Typeface::from_bytes(&bytes[..22]).err(), Some(BadTypeface::Marks));
    let mut other = bytes.clone();
    other[19] = 99;
    assert_eq!(Typeface::from_bytes(&other).err(), Some(BadTypeface::Form(99, 14, 2)));
}
