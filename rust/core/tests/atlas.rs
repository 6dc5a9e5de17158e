//! The law of the atlas, walked over every cell and both inks.

use std::collections::HashSet;

use microfiche_core::{Atlas, Cell, Glyph, Ink, Tile, TileKind};

const MARK_ALPHABET: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.:-<>";

fn every() -> impl Iterator<Item = (Cell, Ink)> {
    let cells = (4..=16).flat_map(|w| (6..=32).map(move |h| Cell::new(w, h).unwrap()));
    cells.flat_map(|cell| [(cell, Ink::Grey), (cell, Ink::Mono)])
}

fn tiles(atlas: &Atlas, code: u32) -> Vec<Tile> {
    match atlas.glyph(code) {
        Some(Glyph::One(tile)) => vec![tile],
        Some(Glyph::Wide(left, right)) => vec![left, right],
        None => Vec::new(),
    }
}

/// Levels of everything that can stand in a cell, found through the public look-ups alone, with what it is.
fn everything(atlas: &Atlas) -> Vec<(Vec<u8>, TileKind)> {
    let marks = atlas.marks();
    let mut all = vec![
        (marks.blank, TileKind::Blank),
        (marks.solid, TileKind::Solid),
        (marks.newline, TileKind::Newline),
        (marks.tab, TileKind::Tab),
        (marks.hard, TileKind::Hard),
    ];
    all.extend(MARK_ALPHABET.bytes().map(|ascii| (atlas.inverse(ascii), TileKind::Inverse(ascii))));
    for code in atlas.drawable().filter(|&code| code != 0x20) {
        match tiles(atlas, code)[..] {
            [one] => all.push((one, TileKind::Glyph(code))),
            [left, right] => {
                all.extend([(left, TileKind::WideLeft(code)), (right, TileKind::WideRight(code))])
            }
            _ => panic!("U+{code:04X} is listed as drawable and is not drawn"),
        }
    }
    all.into_iter().map(|(tile, kind)| (atlas.levels(tile).to_vec(), kind)).collect()
}

#[test]
fn pixels_name_what_they_show() {
    for (cell, ink) in every() {
        let atlas = Atlas::get(cell, ink);
        let mut seen = HashSet::new();
        for (levels, kind) in everything(atlas) {
            assert_eq!(levels.len(), cell.area());
            assert!(levels.iter().all(|&level| level < ink.levels()));
            assert!(seen.insert(levels.clone()), "{cell:?} {ink:?}: {kind:?} looks like something else");
            assert_eq!(atlas.identify(&levels), Some(kind), "{cell:?} {ink:?}");
        }
    }
}

#[test]
fn ascii_is_drawable_everywhere() {
    for (cell, ink) in every() {
        for code in 0x20..0x7F {
            assert_eq!(tiles(Atlas::get(cell, ink), code).len(), 1, "{cell:?} {ink:?} U+{code:04X}");
        }
    }
}

#[test]
fn what_shows_nothing_or_looks_like_latin_is_not_drawable() {
    // NUL, tab, line feed, DEL, no-break space, soft hyphen, zero-width space, Cyrillic a, blank braille,
    // a lone surrogate, the replacement character, a Han character, the last code point.
    let never = [0, 9, 10, 0x7F, 0xA0, 0xAD, 0x200B, 0x430, 0x2800, 0xD800, 0xFFFD, 0x6F22, 0x10_FFFF];
    for (cell, ink) in every() {
        let atlas = Atlas::get(cell, ink);
        assert!(never.iter().all(|&code| atlas.glyph(code).is_none()), "{cell:?} {ink:?}");
    }
}

#[test]
fn space_is_the_blank_and_its_inverse_is_solid() {
    for (cell, ink) in every() {
        let atlas = Atlas::get(cell, ink);
        let (white, marks) = (ink.levels() - 1, *atlas.marks());
        assert_eq!(atlas.glyph(0x20), Some(Glyph::One(marks.blank)));
        assert_eq!(atlas.inverse(b' '), marks.solid);
        assert!(atlas.levels(marks.blank).iter().all(|&level| level == white));
        assert!(atlas.levels(marks.solid).iter().all(|&level| level == 0));
    }
}

#[test]
fn inverse_letters_are_turned_and_inverse_figures_keep_off_the_edge() {
    for (cell, ink) in every().filter(|(cell, _)| cell.width >= 5 && cell.height >= 8) {
        let atlas = Atlas::get(cell, ink);
        let white = ink.levels() - 1;
        for ascii in MARK_ALPHABET.bytes() {
            let levels = atlas.levels(atlas.inverse(ascii));
            if ascii.is_ascii_digit() || b"<>".contains(&ascii) {
                let left: Vec<u8> = levels.iter().step_by(cell.width.into()).copied().collect();
                assert!(left.iter().all(|&level| level == 0), "{cell:?} {ink:?} {}", ascii as char);
            } else {
                let [plain] = tiles(atlas, ascii.into())[..] else { panic!() };
                let turned: Vec<u8> = atlas.levels(plain).iter().map(|&level| white - level).collect();
                assert_eq!(levels, turned, "{cell:?} {ink:?} {}", ascii as char);
            }
        }
    }
}

#[test]
fn packed_rows_hold_the_levels() {
    for (cell, ink) in every().step_by(7) {
        let atlas = Atlas::get(cell, ink);
        let width = usize::from(cell.width);
        for code in atlas.drawable() {
            for tile in tiles(atlas, code) {
                for (y, row) in atlas.levels(tile).chunks(width).enumerate() {
                    let packed = row
                        .iter()
                        .fold(0u64, |bits, &level| bits * u64::from(ink.levels()) + u64::from(level));
                    assert_eq!(u64::from(atlas.packed_row(tile, y)), packed);
                }
            }
        }
    }
}

#[test]
fn a_changed_pixel_is_no_tile_or_another() {
    for (cell, ink) in every().step_by(11) {
        let atlas = Atlas::get(cell, ink);
        for code in 0x21..0x7F {
            let levels = atlas.levels(tiles(atlas, code)[0]);
            let mut changed = levels.to_vec();
            let pixel = code as usize * 7 % cell.area();
            changed[pixel] = (changed[pixel] + 1) % ink.levels();
            assert_ne!(
                atlas.identify(&changed),
                Some(TileKind::Glyph(code)),
                "{cell:?} {ink:?} U+{code:04X}"
            );
            assert_eq!(atlas.identify(&levels[1..]), None);
        }
        let noise: Vec<u8> = (0..cell.area()).map(|i| (i * i * 7 / 5 % 4) as u8 % ink.levels()).collect();
        assert_eq!(atlas.identify(&noise), None, "{cell:?} {ink:?}");
    }
}

#[test]
fn common_cells_draw_what_transcripts_hold() {
    // ASCII aside, the characters that agents print most, with Latin-1.
    let common = "⎯—▬─✔│✓…→–❯ℹ✖└○·┌┐┘✅●►◄×├•⇒▶▼▲«»┬✨⚠█░▒▓╭╮╯╰═║";
    let latin = (0xC0..=0xFF).filter_map(char::from_u32).chain("¡¿£§°±²³µºª€".chars());
    for (width, height) in [(9, 16), (8, 16), (10, 20)] {
        let atlas = Atlas::get(Cell::new(width, height).unwrap(), Ink::Grey);
        for char in common.chars().chain(latin.clone()) {
            assert!(atlas.glyph(char.into()).is_some(), "{width}x{height} {char}");
        }
    }
    for (width, height) in [(5, 10), (6, 12), (7, 14)] {
        let atlas = Atlas::get(Cell::new(width, height).unwrap(), Ink::Grey);
        for char in common.chars().chain("áéíóúüñÁÉÍÓÚÜÑ¿¡àèìòùâêîôûäëïöçßåøæ".chars())
        {
            assert!(atlas.glyph(char.into()).is_some(), "{width}x{height} {char}");
        }
    }
}

#[test]
fn letters_keep_to_their_cell_and_to_a_text_weight() {
    for (width, height) in [(5, 10), (6, 12), (7, 14), (9, 16)] {
        let cell = Cell::new(width, height).unwrap();
        let atlas = Atlas::get(cell, Ink::Grey);
        let white = Ink::Grey.levels() - 1;
        let mut ink = 0.0;
        for code in u32::from(b'a')..=u32::from(b'z') {
            let [tile] = tiles(atlas, code)[..] else { panic!() };
            let levels = atlas.levels(tile);
            ink += levels.iter().map(|&level| f64::from(white - level) / f64::from(white)).sum::<f64>();
            // The first row stays free, so that lines of text do not touch.
            assert!(
                levels[..width as usize].iter().all(|&level| level == white) || b"ij".contains(&(code as u8))
            );
        }
        let share = ink / 26.0 / cell.area() as f64;
        assert!((0.14..0.26).contains(&share), "{cell:?}: {share:.3}");
    }
}
