//! Logs of any size as streams: plain, gzip or Zstandard by their first bytes; directories of them.
//!
//! The paths are the caller's own, not under a [`super::Root`]: logs lie where the job put them.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::SysError;

/// Bytes that are read at once: large enough for the disk, small enough for the processor's cache.
pub const PIECE: usize = 128 << 10;

/// Zstandard's window: levels up to 19 need half of it, and it is held in memory.
const WINDOW: u64 = 16 << 20;

/// Directories below the one that was named.
const DEPTH: usize = 8;
/// Files in a directory.
const FILES: usize = 100_000;

/// A log that is open.
pub struct LogFile {
    stream: Box<dyn Read + Send>,
    path: PathBuf,
}

impl std::fmt::Debug for LogFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl LogFile {
    /// Opens a file, a pipe, or standard input (`-`).
    ///
    /// # Errors
    /// It is not there, may not be read, or is packed in a way that is not unpacked here.
    pub fn open(path: &Path) -> Result<Self, SysError> {
        let error = |source| failed("open", path, source);
        let stream: Box<dyn Read + Send> = if path == Path::new("-") {
            Box::new(std::io::stdin())
        } else {
            Box::new(File::open(path).map_err(error)?)
        };
        Ok(Self {
            stream: unpacked(stream).map_err(|e| failed("read", path, e))?,
            path: path.into(),
        })
    }

    /// The log as a stream of at most so many bytes, unpacked.
    #[must_use]
    pub fn limited(self, bytes: u64) -> std::io::Take<Box<dyn Read + Send>> {
        self.stream.take(bytes)
    }

    /// Reads the next piece; 0 bytes at the end.
    ///
    /// # Errors
    /// Reading failed, or what is packed is damaged.
    pub fn read(&mut self, piece: &mut [u8]) -> Result<usize, SysError> {
        loop {
            match self.stream.read(piece) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(failed("read", &self.path, e)),
                Ok(length) => return Ok(length),
            }
        }
    }
}

fn failed(action: &'static str, path: &Path, source: Error) -> SysError {
    SysError::File {
        action,
        path: path.into(),
        source,
    }
}

fn unpacked(mut stream: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, Error> {
    let mut magic = Vec::new();
    stream.by_ref().take(6).read_to_end(&mut magic)?;
    let whole = |magic: Vec<u8>| std::io::Cursor::new(magic).chain(stream);
    Ok(match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(
            BufReader::with_capacity(PIECE, whole(magic)),
        )),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            let source = BufReader::with_capacity(PIECE, whole(magic));
            Box::new(Zstd::new(source))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0] => return Err(not_here("xz", "xz -dc")),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => return Err(not_here("bzip2", "bzip2 -dc")),
        [0x04, 0x22, 0x4d, 0x18, ..] => return Err(not_here("lz4", "lz4 -dc")),
        [b'P', b'K', 3, 4, ..] => return Err(not_here("zip", "unzip -p")),
        _ => Box::new(whole(magic)),
    })
}

fn not_here(kind: &str, command: &str) -> Error {
    let text = format!(
        "it is packed with {kind}, which is not unpacked here: `{command} FILE | gdr-agent nccl-log -`"
    );
    Error::new(ErrorKind::Unsupported, text)
}

/// All frames of a Zstandard stream, skippable ones left out.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    inside: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        Self {
            source,
            decoder,
            inside: false,
        }
    }

    /// Goes to the next frame; false at the end.
    fn next_frame(&mut self) -> Result<bool, Error> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let mut skipped = self.source.by_ref().take(length);
                    if std::io::copy(&mut skipped, &mut std::io::sink())? < length {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(e @ FrameDecoderError::WindowSizeTooBig { .. }) => {
                    let text = format!(
                        "{e}; unpack it first: `zstd -dc --long=31 FILE | gdr-agent nccl-log -`"
                    );
                    return Err(Error::new(ErrorKind::Unsupported, text));
                }
                Err(e) => return Err(damaged(&e)),
            }
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, piece: &mut [u8]) -> Result<usize, Error> {
        loop {
            if !self.inside {
                if !self.next_frame()? {
                    return Ok(0);
                }
                self.inside = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|e| damaged(&e))?;
            }
            match self.decoder.read(piece)? {
                0 => self.inside = false,
                length => return Ok(length),
            }
        }
    }
}

fn damaged(e: &dyn std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidData,
        format!("the zstd data is damaged or cut short: {e}"),
    )
}

/// The regular files that a path means: itself, or what is below it if it is a directory, in order of names.
/// Links below it are not followed.
///
/// # Errors
/// It is not there, a directory may not be listed, or there are too many files.
pub fn expand(path: &Path) -> Result<Vec<PathBuf>, SysError> {
    if path == Path::new("-") {
        return Ok(vec![path.into()]);
    }
    let meta = std::fs::metadata(path).map_err(|e| failed("open", path, e))?;
    if !meta.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut files = Vec::new();
    walk(path, DEPTH, &mut files)?;
    files.sort();
    Ok(files)
}

fn walk(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), SysError> {
    let error = |e| failed("list", path, e);
    for entry in std::fs::read_dir(path).map_err(error)? {
        let entry = entry.map_err(error)?;
        let kind = entry.file_type().map_err(error)?;
        if kind.is_dir() && depth > 0 {
            walk(&entry.path(), depth - 1, files)?;
        } else if kind.is_dir() {
            let text =
                format!("more than {DEPTH} directories deep: name the one that holds the logs");
            return Err(failed("list", &entry.path(), Error::other(text)));
        } else if kind.is_file() {
            if files.len() >= FILES {
                let text = format!("more than {FILES} files: name the ones to read");
                return Err(failed("list", path, Error::other(text)));
            }
            files.push(entry.path());
        }
    }
    Ok(())
}

/// What a file measures on disk, for progress; 0 if it is a pipe or not there.
#[must_use]
pub fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn read(bytes: &[u8]) -> Result<Vec<u8>, SysError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        let mut log = LogFile::open(&path)?;
        let mut all = Vec::new();
        let mut piece = vec![0; 1000];
        loop {
            match log.read(&mut piece)? {
                0 => return Ok(all),
                length => all.extend_from_slice(&piece[..length]),
            }
        }
    }

    #[test]
    fn packed_by_first_bytes() {
        let text: Vec<u8> = (0..200_000u32)
            .flat_map(|i| (i / 7).to_le_bytes())
            .collect();
        assert_eq!(read(&text).unwrap(), text);
        assert_eq!(read(b"").unwrap(), b"");
        assert_eq!(read(b"ab").unwrap(), b"ab");
        for pack in [gzip, zstd] {
            assert_eq!(read(&pack(&text)).unwrap(), text);
            // several streams in one file are one log
            let two = [pack(b"one\n"), pack(b"two\n")].concat();
            assert_eq!(read(&two).unwrap(), b"one\ntwo\n");
            let cut = pack(&text);
            assert!(read(&cut[..cut.len() / 2]).is_err());
        }
        let skippable = [
            &[0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..],
            &zstd(b"log\n"),
        ]
        .concat();
        assert_eq!(read(&skippable).unwrap(), b"log\n");
    }

    #[test]
    fn other_packings_say_what_to_do() {
        for (magic, command) in [
            (&b"\xfd7zXZ\0"[..], "xz -dc"),
            (b"BZh91AY", "bzip2 -dc"),
            (b"PK\x03\x04xx", "unzip -p"),
        ] {
            let error = read(magic).unwrap_err().to_string();
            assert!(error.contains(command), "{error}");
        }
    }

    #[test]
    fn directories() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        std::fs::write(dir.path().join("b/2"), "").unwrap();
        std::fs::write(dir.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("loop")).unwrap();
        let found = expand(dir.path()).unwrap();
        assert_eq!(found, [dir.path().join("a"), dir.path().join("b/2")]);
        assert!(expand(&dir.path().join("none")).unwrap_err().is_not_found());
    }
}
