//! The additional data of an emulated run: `emulation.json` in the run's directory.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use transom_device::own_file;

use super::{Fidelity, ProgramReport};

/// The file.
const FILE: &str = "emulation.json";

/// The fidelity of an emulated run, and how its programs ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// How far it can be believed.
    pub fidelity: Fidelity,
    /// The ends of the programs.
    pub programs: Vec<ProgramReport>,
}

impl Record {
    /// Writes it to a run's directory.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        text.push('\n');
        own_file::write_output(&directory.join(FILE), text.as_bytes())
    }

    /// Reads it from a run's directory; `None` of a run that was not emulated.
    ///
    /// # Errors
    /// The system's, and [`io::ErrorKind::InvalidData`] if the file is not what was written.
    pub fn read(directory: &Path) -> io::Result<Option<Record>> {
        match fs::read(directory.join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The programs that did not do what they were there for.
    pub fn failed(&self) -> impl Iterator<Item = &ProgramReport> {
        self.programs.iter().filter(|one| !one.succeeded())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::fidelity::Lag;
    use crate::emulate::{ProgramEnd, Role};
    use crate::scenario::Name;
    use transom_tcp::time::Duration;

    #[test]
    fn written_records_are_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(directory.path()).unwrap(), None);
        let program = |role, end| ProgramReport {
            flow: Name::new("web").unwrap(),
            role,
            command: vec!["curl".into(), "-sS".into()],
            end,
        };
        let lag = Lag {
            events: 7,
            median: Duration::from_nanos(1500),
            p99: Duration::from_millis(2),
            max: Duration::from_millis(3),
        };
        let record = Record {
            fidelity: Fidelity {
                lag,
                cpu_share: 0.25,
                late: vec!["it was".into()],
                ..Fidelity::default()
            },
            programs: vec![
                program(Role::Client, ProgramEnd::Exited(22)),
                program(Role::Server, ProgramEnd::Stopped),
            ],
        };
        record.write(directory.path()).unwrap();
        assert_eq!(Record::read(directory.path()).unwrap().as_ref(), Some(&record));
        let failed: Vec<Role> = record.failed().map(|one| one.role).collect();
        assert_eq!(failed, [Role::Client]);
        fs::write(directory.path().join(FILE), "{").unwrap();
        assert!(Record::read(directory.path()).is_err());
    }
}
