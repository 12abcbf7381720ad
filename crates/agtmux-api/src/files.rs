//! Reads small files written by the user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The maximum number of files that are read. A directory with more files is probably the wrong one.
const MAX_FILES: usize = 256;

/// A file that the user wrote, with its text or the reason why it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFile {
    pub path: PathBuf,
    pub text: Result<String, String>,
    /// Whether the file is a symbolic link. A link's target may change without an event in the directory.
    pub is_link: bool,
}

/// Reads the files with this extension, sorted by name, up to `MAX_FILES`. A missing directory counts as empty. Hidden
/// files are skipped, because editors leave temporary files with hidden names.
pub fn read_dir_files(dir: &Path, extension: &str, largest: u64) -> io::Result<Vec<UserFile>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let is_candidate = |path: &PathBuf| {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !hidden && path.extension().is_some_and(|found| found == extension)
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_candidate).collect();
    paths.sort();
    paths.truncate(MAX_FILES);
    let found = |path: PathBuf| {
        let text = read_plain(&path, largest).map_err(|error| error.to_string());
        UserFile { text, is_link: path.is_symlink(), path }
    };
    Ok(paths.into_iter().map(found).collect())
}

/// Reads a regular file that belongs to the current user. Fails if the file is larger than `largest` bytes. Follows
/// symbolic links, and never blocks on a FIFO or device.
pub fn read_plain(path: &Path, largest: u64) -> io::Result<String> {
    read_text(open_plain(path, OFlags::empty())?, largest)
}

/// Like [`read_plain`], but rejects symbolic links.
pub fn read_plain_no_follow(path: &Path, largest: u64) -> io::Result<String> {
    read_text(open_no_follow(path)?, largest)
}

fn read_text(file: File, largest: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(refuse(format!("is larger than {} KiB", largest >> 10)));
    }
    String::from_utf8(bytes).map_err(|_| refuse("is not UTF-8 text".into()))
}

/// Opens a regular file of any size that belongs to the current user. Rejects symbolic links.
pub fn open_no_follow(path: &Path) -> io::Result<File> {
    open_plain(path, OFlags::NOFOLLOW)
}

fn open_plain(path: &Path, more: OFlags) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refuse("is not a regular file".into()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse("belongs to another user".into()));
    }
    Ok(file)
}

fn refuse(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let dir = std::env::temp_dir().join(format!("agtmux-files-{}", std::process::id()));
        fs::create_dir_all(dir.join("e.toml")).expect("made");
        let write = |name: &str, text: &[u8]| fs::write(dir.join(name), text).expect("written");
        write("a.toml", b"a");
        write("b.toml", &[b'#'; 2000]);
        write("c.toml", b"\xff");
        write(".hidden.toml", b"");
        write("a.toml~", b"");
        std::os::unix::fs::symlink(dir.join("a.toml"), dir.join("d.toml")).expect("linked");
        std::os::unix::fs::symlink("/dev/zero", dir.join("f.toml")).expect("linked");
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("g.toml"), rustix::fs::Mode::RUSR).expect("a fifo");
        let found = read_dir_files(&dir, "toml", 1024).expect("read");
        let results: Vec<_> = found.iter().map(|f| (f.text.as_deref().map_err(String::as_str), f.is_link)).collect();
        assert_eq!(
            results,
            [
                (Ok("a"), false),
                (Err("is larger than 1 KiB"), false),
                (Err("is not UTF-8 text"), false),
                (Ok("a"), true),
                (Err("is not a regular file"), false),
                // /dev/zero: the file type is checked before the owner.
                (Err("is not a regular file"), true),
                (Err("is not a regular file"), false),
            ]
        );
        let opens = |name: &str| open_no_follow(&dir.join(name)).is_ok();
        assert_eq!(["b.toml", "d.toml", "e.toml", "g.toml"].map(opens), [true, false, false, false]);
        fs::remove_dir_all(&dir).expect("removed");
        assert_eq!(read_dir_files(&dir, "toml", 1024).expect("no directory"), []);
    }
}
