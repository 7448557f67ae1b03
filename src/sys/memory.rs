//! Reading memory that may not be there.

use std::io::Read;
use std::os::fd::AsRawFd;

/// Copies bytes of this process through a pipe, so that the kernel finds out whether they are mapped.
///
/// Slow (two system calls a read), for decoding unknown structures once. It needs nothing that a
/// seccomp profile forbids, as process_vm_readv(2) does.
#[derive(Debug)]
pub struct SafeReader {
    reader: std::io::PipeReader,
    writer: std::io::PipeWriter,
}

/// The largest piece that [`SafeReader::read`] copies: what a pipe takes in one go (PIPE_BUF).
const LARGEST: usize = 4096;

impl SafeReader {
    /// Opens the pipe.
    ///
    /// # Errors
    /// As pipe(2): no file descriptors are left.
    pub fn new() -> std::io::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        Ok(Self { reader, writer })
    }

    /// Copies `N` bytes from `address`, or returns `None` where they are not all mapped and readable.
    pub fn read<const N: usize>(&mut self, address: usize) -> Option<[u8; N]> {
        const { assert!(N > 0 && N <= LARGEST) };
        // SAFETY: write(2) may be given any address: the kernel answers EFAULT where it is not
        // readable. `N` bytes fit into the empty pipe, so the call does not block.
        let written = unsafe { libc::write(self.writer.as_raw_fd(), address as *const _, N) };
        let written = usize::try_from(written).ok()?;
        let mut bytes = [0; N];
        // What was written must leave the pipe even if it is too little to be of use.
        self.reader.read_exact(&mut bytes[..written]).ok()?;
        (written == N).then_some(bytes)
    }

    /// Reads a pointer-sized word.
    pub fn word(&mut self, address: usize) -> Option<usize> {
        self.read(address).map(usize::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_copied_and_what_is_not_is_refused() {
        let mut reader = SafeReader::new().unwrap();
        let words = [7usize, 9];
        assert_eq!(reader.word(words.as_ptr() as usize + size_of::<usize>()), Some(9));
        assert_eq!(reader.word(8), None);
        assert_eq!(reader.word(usize::MAX - 64), None);
        assert_eq!(
            reader.word(words.as_ptr() as usize),
            Some(7),
            "a refusal leaves nothing behind"
        );
    }
}
