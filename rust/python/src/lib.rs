//! Module `microfiche._core`: converts arguments and results, releases the lock.
use microfiche_core as core;
use pyo3::prelude::*;

mod errors {
    pyo3::import_exception!(microfiche.errors, BadInput);
    pyo3::import_exception!(microfiche.errors, BadPage);
    pyo3::import_exception!(microfiche.errors, PageTooSmall);
}

#[pymodule]
mod _core {
    use std::sync::Arc;

    use super::*;
    use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
    use pyo3::types::{PyBytes, PyString};

    #[pymodule_export]
    const GRAMMAR: u32 = core::GRAMMAR;

    /// A drawn page; see `microfiche.pages.Page`, which is made of it.
    #[pyclass(frozen, get_all)]
    struct Sheet {
        png: Py<PyBytes>,
        width: u32,
        height: u32,
        number: u64,
        cells: usize,
        turns: Vec<u64>,
        start: (usize, usize),
        end: (usize, usize),
        escapes: Vec<(u32, u64)>,
        digest: Option<[u8; 32]>,
    }

    impl Sheet {
        fn new(py: Python<'_>, page: core::Page) -> Sheet {
            Sheet {
                png: PyBytes::new(py, &page.png).unbind(),
                width: page.width,
                height: page.height,
                number: page.number,
                cells: page.cells,
                turns: page.turns,
                start: (page.start.segment, page.start.offset),
                end: (page.end.segment, page.end.offset),
                escapes: page.escapes,
                digest: page.digest,
            }
        }
    }

    /// A bar as (turn, kind), or text.
    #[derive(FromPyObject)]
    enum Source {
        Text(Text),
        Bar(u64, PyBackedStr),
    }

    /// A Python string as generalised UTF-8, without a copy where it is sound UTF-8.
    enum Text {
        Sound(PyBackedStr),
        Surrogates(PyBackedBytes),
    }

    impl<'a, 'py> FromPyObject<'a, 'py> for Text {
        type Error = PyErr;

        fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Text> {
            let text = object.cast::<PyString>()?;
            if let Ok(sound) = text.extract::<PyBackedStr>() {
                return Ok(Text::Sound(sound));
            }
            let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
            Ok(Text::Surrogates(bytes.extract()?))
        }
    }

    impl AsRef<[u8]> for Text {
        fn as_ref(&self) -> &[u8] {
            match self {
                Text::Sound(text) => text.as_bytes(),
                Text::Surrogates(bytes) => bytes,
            }
        }
    }

    /// Every glyph that pages of one cell and ink may hold; see `microfiche.pages.atlas`.
    #[pyclass(frozen)]
    struct Atlas(Arc<core::Typeface>);

    #[pymethods]
    impl Atlas {
        /// The font's own glyphs, and those of `glyphs` that the law lets in: (code point, cells, width, height, coverage).
        #[new]
        fn new(
            py: Python<'_>,
            cell: (u32, u32),
            ink: &str,
            glyphs: Vec<(u32, usize, usize, usize, PyBackedBytes)>,
        ) -> PyResult<Atlas> {
            let (cell, ink) = (to_cell(cell)?, to_ink(ink)?);
            Ok(Atlas(Arc::new(py.detach(|| {
                let mut typeface = core::Typeface::own(cell, ink);
                for (code_point, cells, width, height, coverage) in &glyphs {
                    typeface.offer(*code_point, *cells, (*width, *height), coverage);
                }
                typeface
            }))))
        }

        /// Reads what `data` gave.
        #[staticmethod]
        fn load(py: Python<'_>, data: PyBackedBytes) -> PyResult<Atlas> {
            match py.detach(|| core::Typeface::from_bytes(&data)) {
                Ok(typeface) => Ok(Atlas(Arc::new(typeface))),
                Err(error) => Err(errors::BadInput::new_err((
                    error.to_string(),
                    "atlas",
                    "give the bytes of an atlas, whole and unchanged",
                ))),
            }
        }

        fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            let bytes = py.detach(|| self.0.to_bytes());
            PyBytes::new(py, &bytes)
        }

        #[getter]
        fn cell(&self) -> (u8, u8) {
            (self.0.cell().width, self.0.cell().height)
        }

        #[getter]
        fn ink(&self) -> &'static str {
            self.0.ink().name()
        }

        /// How many cells a code point takes, 0 if it is written as an escape.
        fn cells(&self, code_point: u32) -> usize {
            self.0.cells(code_point).unwrap_or(0)
        }

        fn drawable(&self) -> Vec<u32> {
            self.0.drawable().collect()
        }
    }

    fn to_cell((width, height): (u32, u32)) -> PyResult<core::Cell> {
        core::Cell::new(width, height).map_err(|error| errors::BadInput::new_err((error.to_string(),)))
    }

    fn to_ink(ink: &str) -> PyResult<core::Ink> {
        match ink {
            "grey" => Ok(core::Ink::Grey),
            "mono" => Ok(core::Ink::Mono),
            _ => {
                Err(errors::BadInput::new_err((format!("no ink is called {ink:?}"), "", "use grey or mono")))
            }
        }
    }

    /// Pages that wait until the lock is taken to hand them over: so many files are held twice.
    const PAGES_HELD: usize = 64;

    /// Draws segments in normal form.
    #[pyfunction]
    #[pyo3(signature = (segments, cell, ink, width, height, grid, min_height, lines, level, first, inside, digests, threads, atlas))]
    #[expect(clippy::too_many_arguments, reason = "the private border of one Python function")]
    fn render(
        py: Python<'_>,
        segments: Vec<Source>,
        cell: (u32, u32),
        ink: &str,
        width: u32,
        height: u32,
        grid: u32,
        min_height: u32,
        lines: &str,
        level: &str,
        first: u64,
        inside: Option<u64>,
        digests: bool,
        threads: usize,
        atlas: Option<&Bound<'_, Atlas>>,
    ) -> PyResult<Vec<Sheet>> {
        let options = core::Options {
            cell: to_cell(cell)?,
            ink: to_ink(ink)?,
            width,
            height,
            grid,
            min_height,
            lines: match lines {
                "flow" => core::Lines::Flow,
                "hard" => core::Lines::Hard,
                _ => {
                    let what = format!("no form of lines is called {lines:?}");
                    return Err(errors::BadInput::new_err((what, "", "use flow or hard")));
                }
            },
            level: match level {
                "fastest" => core::Level::Fastest,
                "default" => core::Level::Default,
                "smallest" => core::Level::Smallest,
                _ => {
                    let what = format!("no level is called {level:?}");
                    return Err(errors::BadInput::new_err((what, "", "use fastest, default or smallest")));
                }
            },
            first_page: first,
            inside,
            typeface: atlas.map(|atlas| atlas.get().0.clone()),
            digests,
            threads,
            portable: false,
        };
        let mut sheets = Vec::new();
        let mut drawn = Vec::new();
        let outcome = py.detach(|| {
            let kind = |segment, words| core::Kind::parse(words).ok_or(core::Error::BadKind { segment });
            let segments = segments.iter().enumerate().map(|(index, source)| match source {
                Source::Text(text) => Ok(core::Segment::Text(text.as_ref())),
                Source::Bar(turn, words) => {
                    kind(index, words).map(|kind| core::Segment::Bar { turn: *turn, kind })
                }
            });
            core::render_each(&segments.collect::<Result<Vec<_>, _>>()?, &options, |page| {
                drawn.push(page);
                if drawn.len() == PAGES_HELD {
                    Python::attach(|py| sheets.extend(drawn.drain(..).map(|page| Sheet::new(py, page))));
                }
            })
        });
        outcome.map_err(|error| match error {
            core::Error::PageTooSmall { .. } => {
                errors::PageTooSmall::new_err((error.to_string(), "", "use a larger page or a smaller cell"))
            }
            _ => errors::BadInput::new_err((error.to_string(),)),
        })?;
        sheets.extend(drawn.into_iter().map(|page| Sheet::new(py, page)));
        Ok(sheets)
    }

    /// An image: a PNG file, or width, height and 8-bit grey pixels.
    #[derive(FromPyObject)]
    enum Image {
        Png(PyBackedBytes),
        Grey(usize, usize, PyBackedBytes),
    }

    impl Image {
        fn pixels(&self) -> Result<core::Pixels, core::ReadError> {
            match self {
                Image::Png(file) => core::Pixels::from_png(file),
                Image::Grey(width, height, grey) => core::Pixels::new(*width, *height, grey.to_vec()),
            }
        }
    }

    fn read_error(error: core::ReadError, place: String) -> PyErr {
        let cure = match error {
            core::ReadError::Png(_) => "give a PNG file",
            core::ReadError::NoGlyph(_) | core::ReadError::HalfGlyph(_) => {
                "give pages that this package drew, unscaled and whole, and the font if they were drawn with another"
            }
            core::ReadError::TooLong(..) => "raise the limit if the page is to be trusted",
            _ => "give pages that this package drew, unscaled and whole",
        };
        errors::BadPage::new_err((error.to_string(), place, cure))
    }

    /// Reads pages in the order given: bars as (turn, kind), text as str.
    #[pyfunction]
    fn read<'py>(
        py: Python<'py>,
        images: Vec<Image>,
        cell: Option<(u32, u32)>,
        ink: Option<&str>,
        limit: usize,
        atlas: Option<&Bound<'_, Atlas>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let options = core::ReadOptions {
            cell: cell.map(to_cell).transpose()?,
            ink: ink.map(to_ink).transpose()?,
            limit,
            typeface: atlas.map(|atlas| atlas.get().0.clone()),
        };
        let pieces = py.detach(|| {
            let mut reader = core::Reader::new(options);
            for (index, image) in images.iter().enumerate() {
                image.pixels().and_then(|pixels| reader.page(&pixels)).map_err(|error| (index, error))?;
            }
            Ok(reader.finish())
        });
        let pieces = pieces.map_err(|(index, error)| read_error(error, format!("image {}", index + 1)))?;
        let object = |piece| match piece {
            core::Piece::Bar { turn, kind } => Ok((turn, kind).into_pyobject(py)?.into_any()),
            core::Piece::Text(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => Ok(PyString::new(py, text).into_any()),
                Err(_) => {
                    let bytes = PyBytes::new(py, &bytes);
                    Ok(PyString::from_encoded_object(&bytes, Some(c"utf-8"), Some(c"surrogatepass"))?
                        .into_any())
                }
            },
        };
        pieces.into_iter().map(object).collect()
    }

    /// Width and height of a page's cell, its columns, and its bars: (turn, kind, row, column, cells).
    #[pyfunction]
    #[expect(clippy::type_complexity, reason = "the private border of one Python function")]
    fn bars(
        py: Python<'_>,
        image: Image,
        atlas: Option<&Bound<'_, Atlas>>,
    ) -> PyResult<(usize, usize, usize, Vec<(u64, String, usize, usize, usize)>)> {
        let typeface = atlas.map(|atlas| atlas.get().0.clone());
        let found = py.detach(|| {
            let pixels = image.pixels()?;
            let options = core::ReadOptions { typeface, ..core::ReadOptions::default() };
            let (cell, bars) = core::bars(&pixels, &options)?;
            Ok((usize::from(cell.width), usize::from(cell.height), pixels.width(), bars))
        });
        let (width, height, across, bars) = found.map_err(|error| read_error(error, String::new()))?;
        let told = |bar: core::PlacedBar| (bar.turn, bar.kind, bar.at.row, bar.at.column, bar.cells);
        Ok((width, height, across / width, bars.into_iter().map(told).collect()))
    }

    /// Decodes a PNG: width, height, 8-bit grey pixels.
    #[pyfunction]
    fn pixels<'py>(py: Python<'py>, png: PyBackedBytes) -> PyResult<(usize, usize, Bound<'py, PyBytes>)> {
        let pixels = py.detach(|| core::Pixels::from_png(&png));
        let pixels = pixels.map_err(|error| read_error(error, String::new()))?;
        Ok((pixels.width(), pixels.height(), PyBytes::new(py, pixels.grey())))
    }

    /// The cell and ink of a page, by its legend.
    #[pyfunction]
    fn form(
        py: Python<'_>,
        image: Image,
        cell: Option<(u32, u32)>,
        ink: Option<&str>,
    ) -> PyResult<Option<((u8, u8), &'static str)>> {
        let options = core::ReadOptions {
            cell: cell.map(to_cell).transpose()?,
            ink: ink.map(to_ink).transpose()?,
            ..core::ReadOptions::default()
        };
        let pixels = image.pixels().map_err(|error| read_error(error, "image 1".into()))?;
        let found = py.detach(|| core::form_of(&pixels, &options));
        Ok(found.map(|(cell, ink)| ((cell.width, cell.height), ink.name())))
    }

    /// Bytes as base64 with padding (RFC 4648, 4).
    #[pyfunction]
    fn base64<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyString> {
        PyString::new(py, &base64_simd::STANDARD.encode_to_string(data))
    }

    /// SHA-256 of the packed scanlines of a page that was drawn here.
    #[pyfunction]
    fn digest(py: Python<'_>, png: PyBackedBytes) -> PyResult<[u8; 32]> {
        py.detach(|| core::digest(&png)).map_err(|error| read_error(error, String::new()))
    }

    /// Whether a code point is drawn as a glyph at a cell and ink.
    #[pyfunction]
    fn drawable(code_point: u32, cell: (u32, u32), ink: &str) -> PyResult<bool> {
        Ok(core::Atlas::get(to_cell(cell)?, to_ink(ink)?).glyph(code_point).is_some())
    }
}
