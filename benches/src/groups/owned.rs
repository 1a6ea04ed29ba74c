//! Sending without a copy against sending with one: the same bytes from Transom over TUN to the kernel, a megabyte at a time.
//!
//! *Bare headers* is a program that writes headers before the same memory, which no TCP on this device can exceed. *Plain write* copies them into the send buffer. *Owned write* leaves them where they are. A file is either read and written, or sent by `send_file`;
//! it lies in the kernel's page cache.

use super::Settings;
use super::bulk::{bare_to_kernel, transfer};
use crate::harness::{Bound, Case, Group, Unit};
use crate::network::{TransomPath, patient};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use transom_device::tun::TunOffload;
use transom_net::{Bytes, Profile, TcpStream};

const PORT: u16 = 5001;
/// Bytes per write.
const CHUNK: usize = 1 << 20;
const PLAIN: &str = "plain write";
const OWNED: &str = "owned write";
const READ_AND_WRITTEN: &str = "a file, read and written";
const BARE: &str = "bare headers over TUN";
const SENT: &str = "a file, send_file";

/// How the bytes are written.
enum Way {
    Plain,
    Owned(Bytes),
    ReadAndWritten(File, Vec<u8>),
    Sent(File),
}

/// Writes as many bytes as it is given, but its own.
struct Sender {
    stream: TcpStream,
    way: Way,
}

impl Write for Sender {
    fn write(&mut self, out: &[u8]) -> io::Result<usize> {
        match &mut self.way {
            Way::Plain => self.stream.write(out),
            Way::Owned(whole) => {
                let mut bytes = whole.slice(..out.len().min(whole.len()));
                self.stream.write_owned(&mut bytes)
            }
            Way::ReadAndWritten(file, memory) => {
                let memory = memory.get_mut(..out.len()).unwrap_or_default();
                let read = file.read_at(memory, 0)?;
                self.stream.write_all(memory.get(..read).unwrap_or_default())?;
                Ok(read)
            }
            Way::Sent(file) => {
                let sent = self.stream.send_file(file, 0, out.len() as u64)?;
                Ok(usize::try_from(sent).unwrap_or(usize::MAX))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn case(
    name: &'static str,
    settings: Settings,
    way: impl Fn() -> io::Result<Way> + Send + 'static,
) -> anyhow::Result<Case> {
    let path = TransomPath::new(TunOffload::Segmentation, Profile::classic(), Duration::ZERO)?;
    let listener = path.kernel.listen(PORT)?;
    let settings = Settings { chunk: CHUNK, ..settings };
    Ok(Case::new(name, move |span| {
        let stream = path.connect(path.kernel.at(PORT))?;
        let (receiver, _) = listener.accept()?;
        patient(&receiver)?;
        transfer(Sender { stream, way: way()? }, receiver, span, settings)
    }))
}

fn file() -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(&vec![7; CHUNK])?;
    Ok(file)
}

/// Builds the group.
///
/// # Errors
/// When one of the paths or the file cannot be made.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let memory = Bytes::from(vec![7; CHUNK]);
    let (read, sent) = (file()?, file()?);
    let cases = vec![
        case(PLAIN, settings, || Ok(Way::Plain))?,
        case(OWNED, settings, move || Ok(Way::Owned(memory.clone())))?
            .figure(PLAIN, Bound::AtLeast(1.0)),
        case(READ_AND_WRITTEN, settings, move || {
            Ok(Way::ReadAndWritten(read.try_clone()?, vec![0; CHUNK]))
        })?
        .against(PLAIN),
        case(SENT, settings, move || Ok(Way::Sent(sent.try_clone()?)))?
            .figure(READ_AND_WRITTEN, Bound::AtLeast(1.0)),
        // An owned write is to have 0.95 of it.
        bare_to_kernel(BARE, settings)?.figure(OWNED, Bound::AtMost(1.0 / 0.95)),
    ];
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}
