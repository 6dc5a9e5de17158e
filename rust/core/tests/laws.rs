//! The laws of the engine: whatever is drawn reads back, and what is drawn never depends on how.
use microfiche_core::{
    Atlas, Cell, Error, Ink, Kind, Level, Lines, Options, Page, Piece, Pixels, ReadError, ReadOptions,
    Segment, digest, read_back, render,
};
use proptest::prelude::*;

/// A page's source in an owning form: what [`read_back`] gives.
fn draw(pieces: &[Piece], options: &Options) -> Result<Vec<Page>, Error> {
    let segments: Vec<_> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Bar { turn, kind } => Segment::Bar { turn: *turn, kind: Kind::parse(kind).unwrap() },
            Piece::Text(text) => Segment::Text(text),
        })
        .collect();
    render(&segments, options)
}

fn pixels(pages: &[Page]) -> Vec<Pixels> {
    pages.iter().map(|page| Pixels::from_png(&page.png).unwrap()).collect()
}

fn read(pages: &[Page], options: &Options) -> Result<Vec<Piece>, ReadError> {
    let known = ReadOptions { cell: Some(options.cell), ink: Some(options.ink), ..ReadOptions::default() };
    read_back(&pixels(pages), &known)
}

/// Merges texts side by side and drops empty ones.
fn normal(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (merged.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.extend(text),
            (_, Piece::Text(text)) if text.is_empty() => {}
            (_, piece) => merged.push(piece),
        }
    }
    merged
}

/// Stretches of text that press on the grammar: runs around every limit, what marks are made of,
/// code points of every length, lone surrogates.
fn stretch() -> impl Strategy<Value = Vec<u8>> {
    let run =
        |byte: u8| prop_oneof![4 => 1..6usize, 1 => 6..300usize].prop_map(move |count| vec![byte; count]);
    let word = prop::sample::select(vec![
        "page 1",
        " 12 user ",
        "<1b>",
        "8s",
        "3",
        "turns 1-2",
        "page 2  turn 7",
        "<d800>",
        "s",
        "0",
        "call bash",
    ]);
    prop_oneof![
        4 => run(b' '),
        3 => run(b'\n'),
        2 => run(b'\t'),
        4 => "[!-~]{1,12}".prop_map(String::into_bytes),
        2 => word.prop_map(|word| word.as_bytes().to_vec()),
        2 => any::<char>().prop_map(|each| each.to_string().into_bytes()),
        1 => prop::sample::select(vec!['✅', '█', '│', 'é', '✨', '⚠', '\r', '\0', '\u{1b}', '\u{a0}', '\u{10ffff}'])
            .prop_map(|each| each.to_string().into_bytes()),
        1 => (0xA0..=0xBFu8, 0x80..=0xBFu8).prop_map(|(second, third)| vec![0xED, second, third]),
    ]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(stretch(), 0..40).prop_map(|stretches| stretches.concat())
}

fn bar() -> impl Strategy<Value = Piece> {
    let kind = prop_oneof![
        prop::sample::select(vec![
            "user",
            "assistant",
            "system",
            "result ok",
            "result error",
            "call user",
            "call ok"
        ])
        .prop_map(str::to_owned),
        "call [A-Za-z0-9_.:-]{1,64}",
    ];
    let turn = prop_oneof![4 => 0..300u64, 1 => any::<u64>()];
    (turn, kind).prop_map(|(turn, kind)| Piece::Bar { turn, kind })
}

fn document() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![text().prop_map(Piece::Text), bar()];
    prop::collection::vec(piece, 0..12).prop_map(normal)
}

/// Cells and inks of all sizes on pages from the smallest allowed upwards.
fn options() -> impl Strategy<Value = Options> {
    let cell = (4..=16u32, 6..=32u32).prop_map(|(width, height)| Cell::new(width, height).unwrap());
    let cell = prop_oneof![2 => prop::sample::select(vec![(9, 16), (5, 10), (6, 12), (5, 8)])
        .prop_map(|(width, height)| Cell::new(width, height).unwrap()), 1 => cell];
    let extra = (0..16u32, 0..32u32);
    let ink = prop::sample::select(vec![Ink::Grey, Ink::Mono]);
    let lines = prop::sample::select(vec![Lines::Flow, Lines::Hard]);
    let grid = prop::sample::select(vec![0, 1, 28, 32]);
    let inside = prop::option::of(0..9u64);
    (cell, ink, lines, 12..40u32, 0..12u32, extra, grid, inside, 0..1000u64).prop_map(
        |(cell, ink, lines, columns, rows, (right, below), grid, inside, first_page)| {
            let rows = 1 + 96u32.div_ceil(columns) + rows;
            let width = columns * u32::from(cell.width) + right % u32::from(cell.width);
            let height = rows * u32::from(cell.height) + below % u32::from(cell.height);
            Options {
                lines,
                grid,
                inside,
                first_page,
                digests: true,
                threads: 1,
                ..Options::new(cell, ink, width, height)
            }
        },
    )
}

fn laws(pieces: &[Piece], options: &Options) -> Result<(), TestCaseError> {
    let pages = draw(pieces, options).unwrap();
    prop_assert_eq!(&read(&pages, options).unwrap(), pieces);
    prop_assert_eq!(pages.is_empty(), pieces.is_empty());

    let mut escapes = std::collections::BTreeMap::new();
    let cell_height = u32::from(options.cell.height);
    let columns = (options.width / u32::from(options.cell.width)) as usize;
    for (index, page) in pages.iter().enumerate() {
        prop_assert_eq!(page.number, options.first_page + index as u64);
        prop_assert_eq!(page.width, options.width);
        let rows = 1 + page.cells.div_ceil(columns) as u32;
        let hugged = match options.grid {
            0 => options.height,
            grid => (rows * cell_height).next_multiple_of(grid).min(options.height),
        };
        let last = index + 1 == pages.len();
        prop_assert_eq!(page.height, if last { hugged } else { options.height });
        prop_assert!(page.cells > 0);
        let before = index.checked_sub(1).map_or(Default::default(), |before| pages[before].end);
        prop_assert_eq!(page.start, before);
        // IHDR: width, height, depth, colour type.
        prop_assert_eq!(&page.png[16..20], &page.width.to_be_bytes());
        prop_assert_eq!(&page.png[20..24], &page.height.to_be_bytes());
        prop_assert_eq!(&page.png[24..26], &[options.ink.bits(), 0]);
        // Each page alone holds what lies between its ends, so that a page break parts no mark.
        let alone = read(std::slice::from_ref(page), options).unwrap();
        prop_assert_eq!(alone, cut(pieces, page));
        let mut turns = Vec::new();
        if matches!(pieces[page.start.segment], Piece::Text(_)) {
            let before = pieces[..page.start.segment].iter().rev().find_map(turn);
            turns.extend(before.or(options.inside));
        }
        for each in cut(pieces, page).iter().filter_map(turn) {
            if !turns.contains(&each) {
                turns.push(each);
            }
        }
        prop_assert_eq!(&page.turns, &turns);
        for (code_point, count) in &page.escapes {
            *escapes.entry(*code_point).or_insert(0) += count;
        }
    }
    if let Some(page) = pages.last() {
        prop_assert_eq!((page.end.segment, page.end.offset), (pieces.len(), 0));
    }
    // Whatever the atlas has no glyph for was escaped, each time; the rest only where a wide glyph
    // did not fit in its row.
    let atlas = microfiche_core::Atlas::get(options.cell, options.ink);
    let mut missing = std::collections::BTreeMap::new();
    for code_point in pieces.iter().flat_map(code_points) {
        if atlas.glyph(code_point).is_none() && !matches!(code_point, 9 | 10) {
            *missing.entry(code_point).or_insert(0u64) += 1;
        }
    }
    escapes
        .retain(|code_point, _| !matches!(atlas.glyph(*code_point), Some(microfiche_core::Glyph::Wide(..))));
    prop_assert_eq!(escapes, missing);
    Ok(())
}

fn turn(piece: &Piece) -> Option<u64> {
    match piece {
        Piece::Bar { turn, .. } => Some(*turn),
        Piece::Text(_) => None,
    }
}

/// Code points of a text, surrogates one by one; none of a bar.
fn code_points(piece: &Piece) -> Vec<u32> {
    let Piece::Text(bytes) = piece else { return Vec::new() };
    let mut points = Vec::new();
    for &byte in bytes {
        match byte {
            0x80..=0xBF => *points.last_mut().unwrap() = points.last().unwrap() << 6 | u32::from(byte & 0x3F),
            0xC0..=0xDF => points.push(u32::from(byte & 0x1F)),
            0xE0..=0xEF => points.push(u32::from(byte & 0x0F)),
            0xF0.. => points.push(u32::from(byte & 0x07)),
            _ => points.push(u32::from(byte)),
        }
    }
    points
}

/// What lies between a page's start and end.
fn cut(pieces: &[Piece], page: &Page) -> Vec<Piece> {
    let mut out = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        if index < page.start.segment
            || index > page.end.segment
            || (index == page.end.segment && page.end.offset == 0)
        {
            continue;
        }
        match piece {
            Piece::Bar { .. } => out.push(piece.clone()),
            Piece::Text(bytes) => {
                let mut starts: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at] & 0xC0 != 0x80).collect();
                starts.push(bytes.len());
                let from = if index == page.start.segment { starts[page.start.offset] } else { 0 };
                let to = if index == page.end.segment { starts[page.end.offset] } else { bytes.len() };
                out.push(Piece::Text(bytes[from..to].to_vec()));
            }
        }
    }
    out
}

/// Pages of what the fastest level's code was not made for.
#[test]
fn every_glyph_reads_back_at_every_level() {
    for (width, height, ink) in [(9, 16, Ink::Grey), (6, 12, Ink::Grey), (5, 8, Ink::Mono), (4, 6, Ink::Mono)]
    {
        let cell = Cell::new(width, height).unwrap();
        let glyphs: String = Atlas::get(cell, ink).drawable().filter_map(char::from_u32).collect();
        let text = Piece::Text(glyphs.repeat(3).into_bytes());
        for level in [Level::Fastest, Level::Default] {
            let options = Options { level, threads: 1, ..Options::new(cell, ink, 800, 600) };
            let pages = draw(std::slice::from_ref(&text), &options).unwrap();
            assert_eq!(read(&pages, &options).unwrap(), std::slice::from_ref(&text));
            let options = Options { portable: true, ..options };
            assert_eq!(draw(std::slice::from_ref(&text), &options).unwrap(), pages);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn documents_read_back(pieces in document(), options in options()) {
        laws(&pieces, &options)?;
    }

    #[test]
    fn texts_read_back(text in text(), options in options()) {
        laws(&normal(vec![Piece::Text(text)]), &options)?;
    }

    #[test]
    fn threads_levels_and_processors_change_nothing(text in prop::collection::vec(text(), 8), options in options()) {
        let pieces = normal(vec![Piece::Text(text.concat())]);
        let one = draw(&pieces, &options).unwrap();
        for threads in [0, 2, 8] {
            prop_assert_eq!(&draw(&pieces, &Options { threads, ..options.clone() }).unwrap(), &one);
        }
        for level in [Level::Fastest, Level::Smallest] {
            let other = draw(&pieces, &Options { level, ..options.clone() }).unwrap();
            let digests = |pages: &[Page]| pages.iter().map(|page| page.digest).collect::<Vec<_>>();
            for page in &other {
                prop_assert_eq!(page.digest, Some(digest(&page.png).unwrap()));
            }
            prop_assert_eq!(digests(&other), digests(&one));
            prop_assert_eq!(read(&other, &options).unwrap(), pieces.clone());
        }
        // To the byte, at the level whose loops are compiled twice and at one whose strips are.
        for level in [Level::Fastest, Level::Default] {
            let drawn = |portable| draw(&pieces, &Options { level, portable, ..options.clone() }).unwrap();
            prop_assert_eq!(drawn(true), drawn(false));
        }
    }

    #[test]
    fn full_pages_outlive_what_is_appended(before in document(), after in text(), options in options()) {
        let mut longer = before.clone();
        longer.push(Piece::Text([b"x".to_vec(), after].concat()));
        // A document with bars has another legend than one without.
        let options = Options { inside: Some(1), ..options };
        let (short, long) = (draw(&before, &options).unwrap(), draw(&normal(longer), &options).unwrap());
        let full = short.len().saturating_sub(1);
        prop_assert_eq!(&short[..full], &long[..full]);
    }

    #[test]
    fn hostile_files_are_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Pixels::from_png(&bytes).is_err());
        let signed = [b"\x89PNG\r\n\x1a\n".to_vec(), bytes].concat();
        prop_assert!(Pixels::from_png(&signed).is_err());
    }

    #[test]
    fn damaged_files_do_not_panic(at in 8..600usize, byte in any::<u8>()) {
        let options = Options::new(Cell::new(9, 16).unwrap(), Ink::Grey, 200, 200);
        let mut png = draw(&[Piece::Text(b"some words\n\n\n    more".to_vec())], &options).unwrap().remove(0).png;
        let at = at % png.len();
        png[at] = byte;
        if let Ok(pixels) = Pixels::from_png(&png) {
            let _ = read_back(&[pixels], &ReadOptions::default());
        }
    }

    #[test]
    fn hostile_pixels_do_not_panic(noise in prop::collection::vec(any::<u8>(), 60 * 40), keep in 0..40usize) {
        // Noise below a true legend gets past the first check.
        let options = Options::new(Cell::new(5, 8).unwrap(), Ink::Grey, 60, 80);
        let page = draw(&[Piece::Text(vec![b'a'; 90])], &options).unwrap().remove(0);
        let true_page = Pixels::from_png(&page.png).unwrap();
        let mut grey = noise;
        let keep = keep * 60;
        grey[..keep].copy_from_slice(&true_page.grey()[..keep]);
        let _ = read_back(&[Pixels::new(60, 40, grey).unwrap()], &ReadOptions::default());
    }

    #[test]
    fn shuffled_cells_do_not_panic(cells in prop::collection::vec(0..2000usize, 12 * 12)) {
        // True tiles in any order: marks cut, counts of anything, bars of nonsense.
        let cell = Cell::new(5, 10).unwrap();
        let options = Options::new(cell, Ink::Grey, 60, 130);
        let page = draw(&[Piece::Text(b"a".to_vec())], &options).unwrap().remove(0);
        let legend = Pixels::from_png(&page.png).unwrap();
        let atlas = microfiche_core::Atlas::get(cell, Ink::Grey);
        let mut grey = vec![255; 60 * 130];
        grey[..600].copy_from_slice(&legend.grey()[..600]);
        for (index, tile) in cells.into_iter().enumerate() {
            let levels = atlas.levels((tile % atlas.tiles()) as u16);
            for (pixel, level) in levels.iter().enumerate() {
                let (x, y) = (index % 12 * 5 + pixel % 5, (1 + index / 12) * 10 + pixel / 5);
                grey[y * 60 + x] = level * 85;
            }
        }
        let known = ReadOptions { cell: Some(cell), ink: Some(Ink::Grey), limit: 1 << 20, ..ReadOptions::default() };
        if let Ok(pieces) = read_back(&[Pixels::new(60, 130, grey).unwrap()], &known) {
            prop_assert_eq!(normal(pieces.clone()), pieces);
        }
    }
}

#[test]
#[ignore = "the long sweep: cargo test --release -- --ignored"]
fn documents_read_back_at_length() {
    let config = ProptestConfig { cases: 50_000, failure_persistence: None, ..ProptestConfig::default() };
    proptest::test_runner::TestRunner::new(config)
        .run(&(document(), options()), |(pieces, options)| laws(&pieces, &options))
        .unwrap();
}

#[test]
#[ignore = "builds every atlas: cargo test --release -- --ignored"]
fn pages_of_every_cell_name_their_own_cell() {
    for cell in Cell::all() {
        for ink in [Ink::Grey, Ink::Mono] {
            let options = Options::new(cell, ink, 40 * u32::from(cell.width), 8 * u32::from(cell.height));
            let text = b"fn main() { println!(\"{:>4}\", 0x1f); }\n\n\n        return 12;\n";
            let pieces = [Piece::Text(text.to_vec())];
            let pages = draw(&pieces, &options).unwrap();
            assert_eq!(
                read_back(&pixels(&pages), &ReadOptions::default()).unwrap(),
                pieces,
                "{cell:?} {ink:?}"
            );
        }
    }
}

#[test]
fn no_text_gives_no_pages() {
    let options = Options::new(Cell::new(9, 16).unwrap(), Ink::Grey, 200, 200);
    assert_eq!(render(&[], &options).unwrap(), []);
    assert_eq!(read_back(&[], &ReadOptions::default()).unwrap(), []);
}

#[test]
fn too_small_and_too_large_pages_are_refused() {
    let cell = Cell::new(9, 16).unwrap();
    let draw = |width, height| render(&[Segment::Text(b"x")], &Options::new(cell, Ink::Grey, width, height));
    for (width, height) in [(0, 0), (12 * 9 - 1, 160), (12 * 9, 9 * 16 - 1), (1568, 16)] {
        assert!(matches!(draw(width, height), Err(Error::PageTooSmall { .. })), "{width}x{height}");
    }
    assert_eq!(draw(12 * 9, 9 * 16).unwrap().len(), 1);
    assert!(matches!(draw(u32::MAX, u32::MAX), Err(Error::PageTooLarge { .. })));
    // A page number that does not fit in the legend.
    let options = Options { first_page: 10_000_000, ..Options::new(cell, Ink::Grey, 12 * 9, 9 * 16) };
    assert!(matches!(render(&[Segment::Text(b"x")], &options), Err(Error::PageTooSmall { .. })));
}

#[test]
fn unsound_segments_are_refused() {
    let options = Options::new(Cell::new(9, 16).unwrap(), Ink::Grey, 400, 200);
    let draw = |segments: &[Segment]| render(segments, &options).unwrap_err();
    assert_eq!(draw(&[Segment::Text(b"a"), Segment::Text(b"b")]), Error::NotNormal { segment: 1 });
    assert_eq!(draw(&[Segment::Text(b"")]), Error::NotNormal { segment: 0 });
    assert_eq!(draw(&[Segment::Text(b"ab\xff")]), Error::BadText { segment: 0, byte: 2 });
    let forged = Kind::Call("bash 13 user");
    assert_eq!(draw(&[Segment::Bar { turn: 1, kind: forged }]), Error::BadKind { segment: 0 });
}

#[test]
fn counts_are_bounded_by_the_limit() {
    let options = Options::new(Cell::new(9, 16).unwrap(), Ink::Grey, 400, 200);
    let pages = draw(&[Piece::Text(vec![b'\n'; 5000])], &options).unwrap();
    let read = |limit| read_back(&pixels(&pages), &ReadOptions { limit, ..ReadOptions::default() });
    assert!(matches!(read(4999), Err(ReadError::TooLong(_, 4999))));
    assert_eq!(read(5000).unwrap(), [Piece::Text(vec![b'\n'; 5000])]);
}

#[test]
fn a_short_document_reads_as_the_grammar_says() {
    let options = Options::new(Cell::new(9, 16).unwrap(), Ink::Grey, 400, 200);
    let pieces = [
        Piece::Bar { turn: 3, kind: "call bash".into() },
        Piece::Text(b"ls  -la\n\n\n        x\t  ".to_vec()),
    ];
    let page = draw(&pieces, &options).unwrap().remove(0);
    // bar 13 · `ls  -la` 7 · `3` and mark 2 · `8` 1 · `x` 1 · tab 1 · `2` 1
    assert_eq!(page.cells, 26);
    assert_eq!(page.turns, [3]);
}
