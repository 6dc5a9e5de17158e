//! The loop that joins layout, strips and the container; threads.
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use sha2::{Digest, Sha256};

use crate::atlas::{Atlas, Cell, Ink, Tile};
use crate::grammar::{GRAMMAR, Lines, Position, Segment};
use crate::layout::{Form, Place, Sheet, lay_out};
use crate::png::Container;
use crate::png::deflate::{Deflater, Level};
use crate::png::rows::{Repeats, Zlib};
use crate::readback::ReadError;
use crate::strip::Strip;
use crate::trained;
use crate::typeface::Typeface;

/// Most pixels of a page, drawn or read: 8192 × 8192.
pub const MAX_PIXELS: u64 = 1 << 26;

/// Fewer pages than this are drawn on the calling thread: starting others costs more.
const PAGES_FOR_THREADS: usize = 4;
/// Sheets laid out per thread before they are drawn: bounds the memory that cells take.
const SHEETS_PER_THREAD: usize = 4;
/// Most threads that are started without being asked for by number, and at all.
const THREADS_UNASKED: usize = 8;
const THREADS_MAX: usize = 64;
/// Threads where no number is asked for. Asking the system takes a fifth of the time of a small page.
static THREADS_THAT_PAY: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, |found| found.get().min(THREADS_UNASKED)));

/// What a document is drawn with.
#[derive(Clone, Debug)]
pub struct Options {
    pub cell: Cell,
    pub ink: Ink,
    /// Pixels of a full page.
    pub width: u32,
    pub height: u32,
    /// The last page's height is its rows' rounded up to this many pixels; 0: it has full height.
    pub grid: u32,
    /// Least height of the last page in pixels.
    pub min_height: u32,
    pub lines: Lines,
    pub level: Level,
    /// Number of the first page.
    pub first_page: u64,
    /// The turn that the document begins inside of, if its bar stands on an earlier page.
    pub inside: Option<u64>,
    /// `None`: the font's own glyphs.
    pub typeface: Option<Arc<Typeface>>,
    /// Whether the pages carry their digests, which costs time: elsewhere [`digest`] gives that of a file.
    pub digests: bool,
    /// 0: as many as pay.
    pub threads: usize,
    /// Does without instructions that only some processors have. The bytes are the same; for tests.
    pub portable: bool,
}

impl Options {
    /// Flowing lines, default level, numbered from 1, no digests, the last page as high as its rows.
    pub fn new(cell: Cell, ink: Ink, width: u32, height: u32) -> Options {
        Options {
            cell,
            ink,
            width,
            height,
            grid: 1,
            min_height: 0,
            lines: Lines::default(),
            level: Level::default(),
            first_page: 1,
            inside: None,
            typeface: None,
            digests: false,
            threads: 0,
            portable: false,
        }
    }
}

/// A drawn page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    pub png: Vec<u8>,
    pub width: u32,
    pub height: u32,
    pub number: u64,
    /// Cells in use under the legend.
    pub cells: usize,
    /// Turns on the page in order, the one it begins inside of first.
    pub turns: Vec<u64>,
    /// What of the source stands on it: from here up to, not including, there.
    pub start: Position,
    pub end: Position,
    /// Code points written as escapes, and how often.
    pub escapes: Vec<(u32, u64)>,
    /// SHA-256 of the unfiltered packed scanlines, where it was asked for; see [`digest`].
    pub digest: Option<[u8; 32]>,
}

/// Why a document cannot be drawn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "a page of {columns} × {rows} cells is too small: it takes 12 columns and 96 cells under the legend"
    )]
    PageTooSmall { columns: usize, rows: usize },
    #[error("a page of {width} × {height} pixels is too large: at most {MAX_PIXELS} pixels are drawn")]
    PageTooLarge { width: u32, height: u32 },
    #[error("segment {segment}: the bar's tool name is not 1 to 64 of A-Z a-z 0-9 _ . : -")]
    BadKind { segment: usize },
    #[error("segment {segment}, byte {byte}: not generalised UTF-8")]
    BadText { segment: usize, byte: usize },
    #[error("segment {segment}: an empty text, or a text after a text; merge them first")]
    NotNormal { segment: usize },
    #[error("the atlas is of another cell or ink")]
    OtherForm,
}

/// Draws segments in normal form. The bytes are the same for any number of threads.
pub fn render(segments: &[Segment<'_>], options: &Options) -> Result<Vec<Page>, Error> {
    let mut pages = Vec::new();
    render_each(segments, options, |page| pages.push(page))?;
    Ok(pages)
}

/// Draws segments as [`render`] does and gives each page away as soon as it and those before it are drawn. Some may
/// have been given when an error shows.
pub fn render_each(segments: &[Segment<'_>], options: &Options, sink: impl FnMut(Page)) -> Result<(), Error> {
    let Options { width, height, .. } = *options;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(Error::PageTooLarge { width, height });
    }
    let own;
    let atlas = match &options.typeface {
        None => Atlas::get(options.cell, options.ink),
        Some(typeface) if (typeface.cell(), typeface.ink()) == (options.cell, options.ink) => {
            own = typeface.atlas(segments);
            &own
        }
        Some(_) => return Err(Error::OtherForm),
    };
    let form = Form {
        columns: width as usize / options.cell.width as usize,
        rows: height as usize / options.cell.height as usize,
        lines: options.lines,
        first: options.first_page,
        inside: options.inside,
    };
    let mut press =
        Press { segments, atlas, form: &form, options, encoders: Vec::new(), spare: Vec::new(), sink };
    let mut batch: Vec<Sheet> = Vec::new();
    // On one thread a sheet is drawn while it is warm.
    let mut batch_size = if press.threads() == 1 { 1 } else { PAGES_FOR_THREADS };
    lay_out(segments, atlas, &form, |sheet| {
        batch.push(sheet);
        if batch.len() == batch_size {
            if batch_size > 1 {
                batch_size = press.threads() * SHEETS_PER_THREAD;
            }
            press.print(batch.drain(..));
        }
        Ok(press.spare.pop().unwrap_or_default())
    })?;
    press.print(batch.drain(..));
    Ok(())
}

/// Turns sheets into pages, on several threads where there are enough of them.
struct Press<'a, S> {
    segments: &'a [Segment<'a>],
    atlas: &'a Atlas,
    form: &'a Form,
    options: &'a Options,
    /// One for each thread, used again from batch to batch.
    encoders: Vec<Encoder<'a>>,
    /// Buffers of sheets that were drawn.
    spare: Vec<Vec<Tile>>,
    /// Where pages go, in order.
    sink: S,
}

impl<S: FnMut(Page)> Press<'_, S> {
    fn threads(&self) -> usize {
        match self.options.threads {
            0 => *THREADS_THAT_PAY,
            asked => asked.min(THREADS_MAX),
        }
    }

    fn print(&mut self, sheets: std::vec::Drain<'_, Sheet>) {
        let threads = if sheets.len() < PAGES_FOR_THREADS { 1 } else { self.threads().min(sheets.len()) };
        while self.encoders.len() < threads {
            self.encoders.push(Encoder::new(self.segments, self.atlas, self.form, self.options));
        }
        let Press { encoders, spare, sink, .. } = self;
        if threads == 1 {
            for sheet in sheets {
                sink(encoders[0].encode(&sheet));
                spare.push(sheet.tiles);
            }
            return;
        }
        let mut slots: Vec<Option<(Page, Vec<Tile>)>> = sheets.as_slice().iter().map(|_| None).collect();
        let work = Mutex::new(sheets.zip(&mut slots));
        let draw = |encoder: &mut Encoder<'_>| {
            loop {
                let next = work.lock().expect("taking the next sheet does not panic").next();
                let Some((sheet, slot)) = next else { break };
                *slot = Some((encoder.encode(&sheet), sheet.tiles));
            }
        };
        thread::scope(|scope| {
            let (own, others) = encoders[..threads].split_first_mut().expect("one thread at least");
            for encoder in others {
                // Where no thread can be started the others draw its share.
                let _ = thread::Builder::new().spawn_scoped(scope, || draw(encoder));
            }
            draw(own);
        });
        drop(work);
        for slot in slots {
            let (page, tiles) = slot.expect("every sheet was drawn");
            sink(page);
            spare.push(tiles);
        }
    }
}

/// Everything that is used again from page to page.
struct Encoder<'a> {
    segments: &'a [Segment<'a>],
    atlas: &'a Atlas,
    form: &'a Form,
    options: &'a Options,
    strip: Strip<'a>,
    stage: Stage,
    /// The zlib stream of a page, so that a file is only as large as it has to be.
    stream: Vec<u8>,
}

/// The stage behind the strip.
enum Stage {
    /// Our own, row by row.
    Rows(Repeats),
    /// A library's, which compresses a page's filtered scanlines in one piece.
    Library(Deflater, Vec<u8>),
}

impl<'a> Encoder<'a> {
    fn new(
        segments: &'a [Segment<'a>],
        atlas: &'a Atlas,
        form: &'a Form,
        options: &'a Options,
    ) -> Encoder<'a> {
        let strip = Strip::new(atlas, options.width as usize, options.portable);
        let stage = match Deflater::new(options.level) {
            Some(deflater) => Stage::Library(deflater, Vec::new()),
            None => Stage::Rows(strip.repeats(form.columns)),
        };
        Encoder { segments, atlas, form, options, strip, stage, stream: Vec::new() }
    }

    fn encode(&mut self, sheet: &Sheet) -> Page {
        let Options { width, cell, ink, .. } = *self.options;
        let rows = (sheet.tiles.len() / self.form.columns) as u32;
        let height = if sheet.last { self.hug(rows * u32::from(cell.height)) } else { self.options.height };

        let digest = self.compress(&sheet.tiles, height as usize);
        let mut file = Container::new(width, height, ink.bits(), self.stream.len());
        file.chunk(b"tEXt", &[b"microfiche\0", self.note(sheet).as_bytes()]);
        file.chunk(b"IDAT", &[&self.stream]);
        Page {
            png: file.finish(),
            width,
            height,
            number: sheet.number,
            cells: sheet.used,
            turns: sheet.turns.clone(),
            start: sheet.start.into(),
            end: sheet.end.into(),
            escapes: sheet.escapes.iter().map(|(&code_point, &count)| (code_point, count)).collect(),
            digest,
        }
    }

    /// Makes the zlib stream of a page of these cells and `height` scanlines; returns the pixels' digest
    /// where it is wanted.
    fn compress(&mut self, tiles: &[Tile], height: usize) -> Option<[u8; 32]> {
        let Encoder { atlas, strip, stage, stream, .. } = self;
        let columns = self.form.columns;
        let pitch = strip.height();
        let rows = tiles.len() / columns;
        let mut pixels = self.options.digests.then(Sha256::new);
        // The cells of each strip and its scanlines, then white below the last row.
        let white = (rows * pitch..height).step_by(pitch).map(|top| (None, pitch.min(height - top)));
        let strips = tiles.chunks_exact(columns).map(|cells| (Some(cells), pitch)).chain(white);
        let mut draw = |strip: &mut Strip<'_>, cells: Option<&[Tile]>, lines| {
            match cells {
                Some(cells) => strip.draw(cells),
                None => strip.clear(),
            }
            if let Some(pixels) = &mut pixels {
                pixels.update(strip.pixels(lines));
            }
        };
        match stage {
            Stage::Rows(repeats) => {
                let own = trained::unlike(tiles, atlas).then(|| trained::own(tiles, columns, strip, repeats));
                let mut zlib = Zlib::new(own.as_ref().unwrap_or_else(|| atlas.code()), stream);
                repeats.clear();
                for (row, (cells, lines)) in strips.enumerate() {
                    draw(strip, cells, lines);
                    strip.encode(lines, cells.map(|_| (tiles, row)), repeats, &mut zlib);
                }
                zlib.finish();
            }
            Stage::Library(deflater, scanlines) => {
                scanlines.clear();
                for (cells, lines) in strips {
                    draw(strip, cells, lines);
                    scanlines.extend_from_slice(strip.filter(lines));
                }
                deflater.compress(scanlines, stream);
            }
        }
        pixels.map(|pixels| pixels.finalize().into())
    }

    /// Height of the last page: its rows, rounded up, but never over a full page.
    fn hug(&self, rows: u32) -> u32 {
        let Options { height, grid, min_height, .. } = *self.options;
        match grid {
            0 => height,
            _ => rows.max(min_height).div_ceil(grid).saturating_mul(grid).min(height),
        }
    }

    /// The value of the text chunk: for people and tools, never for read-back.
    fn note(&self, sheet: &Sheet) -> String {
        let Options { cell, ink, .. } = *self.options;
        let mut lines = vec![format!("grammar={GRAMMAR}"), format!("page={}", sheet.number)];
        if let (Some(low), Some(high)) = (sheet.turns.iter().min(), sheet.turns.iter().max()) {
            lines.push(format!("turns={low}-{high}"));
        }
        lines.push(format!("cell={}x{}", cell.width, cell.height));
        lines.push(format!("ink={}", ink.name()));
        let source = source_digest(self.segments, sheet.start, sheet.end);
        let hex: String = source.iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push(format!("source={hex}"));
        lines.join("\n")
    }
}

/// SHA-256 of the packed scanlines of a page that was drawn here; for pages without their digest.
pub fn digest(png: &[u8]) -> Result<[u8; 32], ReadError> {
    let broken = |error: ::png::DecodingError| ReadError::Png(error.to_string());
    let mut decoder = ::png::Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(::png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().map_err(broken)?;
    let mut pixels = Sha256::new();
    while let Some(row) = reader.next_row().map_err(broken)? {
        pixels.update(row.data());
    }
    Ok(pixels.finalize().into())
}

/// SHA-256 of what stands on a page: a bar as `bar TURN KIND` and a line feed, a text as `text BYTES`,
/// a line feed and its bytes.
fn source_digest(segments: &[Segment<'_>], start: Place, end: Place) -> [u8; 32] {
    let mut digest = Sha256::new();
    for (index, segment) in segments.iter().enumerate().take(end.segment + 1).skip(start.segment) {
        match segment {
            Segment::Bar { turn, kind } if index < end.segment => {
                digest.update(format!("bar {turn} {kind}\n"))
            }
            Segment::Bar { .. } => {}
            Segment::Text(bytes) => {
                let from = if index == start.segment { start.byte } else { 0 };
                let to = if index == end.segment { end.byte } else { bytes.len() };
                if from < to {
                    digest.update(format!("text {}\n", to - from));
                    digest.update(&bytes[from..to]);
                }
            }
        }
    }
    digest.finalize().into()
}
