//! Standard output, which may be closed or full. `println!` would panic then.

use std::io::{self, Write};

/// Writes `text` and waits until it is out.
///
/// # Errors
/// It cannot be written; also when the reader is gone.
pub fn say(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// The same for text that its reader may have enough of (`sslsweep libs | head`): that is no error.
///
/// # Errors
/// It cannot be written, though there is a reader.
pub fn print(text: &str) -> io::Result<()> {
    match say(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        said => said,
    }
}
