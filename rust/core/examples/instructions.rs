//! Draws pages for an instruction counter: `benches/instructions.py` runs it under callgrind.
//!
//! `instructions FILE WIDTH HEIGHT grey|mono fastest|default|smallest`: the text on pages of 1568×784, on one thread.
//! The first time makes the atlas and what else is made once; only [`measured`] is to be counted.
use microfiche_core::{Cell, Ink, Level, Options, Page, Segment, render};

#[inline(never)]
fn measured(text: &[u8], options: &Options) -> Vec<Page> {
    render(&[Segment::Text(text)], options).expect("sound text")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, width, height, ink, level] = &arguments[..] else { panic!("five arguments") };
    let text = std::fs::read(path).expect("a readable file");
    let cell = Cell::new(width.parse().expect("a width"), height.parse().expect("a height"))
        .expect("a cell in range");
    let ink = if ink == "grey" { Ink::Grey } else { Ink::Mono };
    let level = match &level[..] {
        "fastest" => Level::Fastest,
        "default" => Level::Default,
        _ => Level::Smallest,
    };
    let options = Options { level, threads: 1, ..Options::new(cell, ink, 1568, 784) };
    let warm = render(&[Segment::Text(&text)], &options).expect("sound text");
    let pages = measured(&text, &options);
    assert_eq!(pages, warm);
    println!("{} {}", pages.len(), pages.iter().map(|page| page.png.len()).sum::<usize>());
}
