//! Limits of one's own socket, for programs without any rights.

use std::io;
use std::net::TcpStream;

use rustix::io::Errno;
use transom_device::socket_option;
use transom_tcp::extension::Variable;

use crate::variable_forms::{Form, form};

/// The level of the socket options that set these limits.
pub(crate) const LEVEL: i32 = 0x5452;
/// The value that stands for no limit.
const NO_LIMIT: u64 = u64::MAX;

/// Why a socket cannot be limited by its own program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Nobody answers for the options.
    #[error(
        "nothing is attached to this process's control group that would limit its sockets: root does that, by `transom kernel attach --cgroup DIRECTORY`; a \
         connection that was there before is taken in unless that was with --only-new"
    )]
    NotAttached,
    /// The variable cannot be bounded on the kernel's sockets.
    #[error("{variable} has no form on the kernel's sockets: {reason}")]
    NoForm {
        /// Which.
        variable: Variable,
        /// Why not.
        reason: &'static str,
    },
    /// The system's.
    #[error("the kernel refuses the socket's limit")]
    Io(#[source] io::Error),
}

/// A connection of the kernel's with limits that its own program sets. It needs no rights: only that root has attached something to the process's control
/// group, if only no extension at all.
///
/// Limits make a connection less aggressive, and nothing else: the kernel uses the smaller of TCP's own value and the limit. They last as long as the
/// socket, whoever has it.
///
/// ```no_run
/// use std::net::TcpStream;
/// use transom_kernel::Controlled;
/// use transom_tcp::extension::Variable;
///
/// let connection = Controlled::new(TcpStream::connect("192.0.2.1:80")?)?;
/// connection.limit(Variable::PacingRate, Some(1_000_000))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Controlled(TcpStream);

impl Controlled {
    /// Takes a connected socket.
    ///
    /// # Errors
    /// [`ControlError::NotAttached`] if its control group has nothing attached.
    pub fn new(stream: TcpStream) -> Result<Self, ControlError> {
        let controlled = Controlled(stream);
        controlled.limit_of(Variable::Cwnd)?;
        Ok(controlled)
    }

    /// Sets a limit, or takes it away: of `cwnd`, `cwnd_cnt` and `ssthresh` in bytes, of `pacing_rate` in bytes per second.
    ///
    /// # Errors
    /// A variable without a form; nothing is attached any more.
    pub fn limit(&self, variable: Variable, most: Option<u64>) -> Result<(), ControlError> {
        let option = option(variable)?;
        let value = most.unwrap_or(NO_LIMIT);
        socket_option::write(&self.0, LEVEL, option, value).map_err(refused)
    }

    /// The limit that was set.
    ///
    /// # Errors
    /// As for [`Controlled::limit`].
    pub fn limit_of(&self, variable: Variable) -> Result<Option<u64>, ControlError> {
        let value = socket_option::read(&self.0, LEVEL, option(variable)?).map_err(refused)?;
        Ok((value != NO_LIMIT).then_some(value))
    }
}

impl From<Controlled> for TcpStream {
    /// The connection, which keeps its limits.
    fn from(controlled: Controlled) -> Self {
        controlled.0
    }
}

/// The number of a variable's option (`OPTION_*` in `bpf/types.h`).
fn option(variable: Variable) -> Result<i32, ControlError> {
    match variable {
        Variable::Cwnd => Ok(0),
        Variable::CwndCnt => Ok(1),
        Variable::Ssthresh => Ok(2),
        Variable::PacingRate => Ok(3),
        variable => {
            let reason = match form(variable) {
                Form::Unbounded(reason) | Form::Bounded(reason) => reason,
            };
            Err(ControlError::NoForm { variable, reason })
        }
    }
}

fn refused(error: io::Error) -> ControlError {
    let number = error.raw_os_error();
    let nobody = [Errno::NOPROTOOPT, Errno::OPNOTSUPP, Errno::INVAL];
    if nobody.iter().any(|errno| number == Some(errno.raw_os_error())) {
        ControlError::NotAttached
    } else {
        ControlError::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn where_nothing_is_attached_the_error_says_what_to_do() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let error = Controlled::new(stream).unwrap_err();
        assert!(matches!(error, ControlError::NotAttached), "{error:?}");
        assert!(error.to_string().contains("transom kernel attach"), "{error}");
    }

    #[test]
    fn each_variable_that_has_a_form_has_an_option() {
        for (variable, form) in crate::variable_forms() {
            let bounded = matches!(form, Form::Bounded(_));
            assert_eq!(option(variable).is_ok(), bounded, "{variable}");
        }
        let error = option(Variable::RcvWnd).unwrap_err().to_string();
        assert!(error.contains("rcv_wnd has no form"), "{error}");
    }
}
