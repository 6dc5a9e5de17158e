//! Times the engine on a text file: `cargo run --release --example speed FILE`.
//!
//! Prints the best of several runs of each cell, ink and level, on one thread, for the first 12,000
//! characters and for a million (the file repeated if it is shorter), and the bytes of the pages.
use std::time::{Duration, Instant};

use microfiche_core::{Cell, Ink, Level, Options, Page, Segment, render};

fn best(runs: usize, mut draw: impl FnMut() -> Vec<Page>) -> (Duration, Vec<Page>) {
    let mut pages = draw();
    let mut least = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        pages = draw();
        least = least.min(start.elapsed());
    }
    (least, pages)
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of a text file");
    let source = std::fs::read_to_string(path).expect("a readable text file");
    let text: String = source.chars().cycle().take(1_000_000).collect();
    let short: String = text.chars().take(12_000).collect();
    println!(
        "{:<22} {:>12} {:>12} {:>6} {:>12}",
        "cell, ink, level", "12k, ms", "1M, ms", "pages", "1M, bytes"
    );
    for (width, height, ink) in [(5, 8, Ink::Mono), (5, 10, Ink::Grey), (9, 16, Ink::Grey)] {
        for level in [Level::Fastest, Level::Default, Level::Smallest] {
            let cell = Cell::new(width, height).expect("a cell in range");
            let options = Options { level, threads: 1, ..Options::new(cell, ink, 1568, 1568) };
            let draw =
                |text: &str| render(&[Segment::Text(text.as_bytes())], &options).expect("a sound text");
            let runs = if level == Level::Smallest { 1 } else { 10 };
            let (few, _) = best(runs * 10, || draw(&short));
            let (many, pages) = best(runs, || draw(&text));
            let bytes: usize = pages.iter().map(|page| page.png.len()).sum();
            println!(
                "{:<22} {:>12.3} {:>12.1} {:>6} {:>12}",
                format!("{width}x{height} {ink:?} {level:?}"),
                few.as_secs_f64() * 1e3,
                many.as_secs_f64() * 1e3,
                pages.len(),
                bytes
            );
        }
    }
}
