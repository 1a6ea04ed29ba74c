//! PNG files of pictures.
//!
//! Text is set in the program's own fonts, and the system draws nothing. So the same build makes the same bytes from the
//! same picture on every machine.

use std::io;
use std::sync::{Arc, LazyLock};

use resvg::{tiny_skia, usvg};

use super::Svg;

const FONTS: [&[u8]; 2] = [
    include_bytes!("../assets/fonts/DejaVuSans.ttf"),
    include_bytes!("../assets/fonts/DejaVuSans-Bold.ttf"),
];

/// Pixels of the file for each of the picture: sharp on screens of high resolution, and in print.
const SCALE: f32 = 2.0;

static FONT_DATABASE: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut database = usvg::fontdb::Database::new();
    for font in FONTS {
        database.load_font_data(font.to_vec());
    }
    Arc::new(database)
});

/// The picture as a PNG file.
///
/// # Errors
/// If it is no picture (text that is no XML) or too large for memory.
pub fn png(svg: &Svg) -> io::Result<Vec<u8>> {
    let options = usvg::Options {
        fontdb: FONT_DATABASE.clone(),
        font_family: "DejaVu Sans".into(),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(&svg.to_string(), &options).map_err(io::Error::other)?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let too_large = || io::Error::other("the picture is too large");
    let size = size.ok_or_else(too_large)?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or_else(too_large)?;
    let transform = tiny_skia::Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    pixels.encode_png().map_err(io::Error::other)
}
