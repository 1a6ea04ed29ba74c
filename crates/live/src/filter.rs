//! Choosing connections by the words of `ss`.
//!
//! ```text
//! EXPRESSION = TERM { or TERM }
//! TERM       = FACTOR { [and] FACTOR }
//! FACTOR     = not FACTOR | ( EXPRESSION ) | CONDITION
//! CONDITION  = state NAME | sport OP PORT | dport OP PORT | src [OP] HOST | dst [OP] HOST
//!            | process NAME-OR-PID | limit NAME | extension [NAME] | transom | kernel
//! ```
//!
//! `OP` is one of `=`, `!=`, `<`, `<=`, `>`, `>=`, or `eq`, `ne`, `lt`, `le`, `gt`, `ge`. `HOST` is an address, with a prefix length and a port if
//! wanted: `10.0.0.0/8`, `[2001:db8::]/32`, `10.0.0.1:443`, `:443`.

mod words;

use crate::row::{Row, Source, UNKNOWN};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use words::{Words, unbracketed};

/// The longest filter, in bytes.
const LONGEST: usize = 1024;
/// How many brackets and `not` may be in one another.
const DEEPEST: u32 = 32;

/// A choice of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Node);

/// A text that is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(String);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Node {
    #[default]
    Everything,
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    State(bool, &'static [&'static str]),
    Port(End, Operator, u16),
    Host(End, bool, Host),
    Process(String),
    Limit(String),
    Extension(Option<String>),
    Transom,
    Kernel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Local,
    Remote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Host {
    /// An address and how many of its bits count.
    network: Option<(IpAddr, u8)>,
    port: Option<u16>,
}

/// The states by their names here and in `ss`: these, or with `false` all that are known but these.
const STATES: &[(&str, bool, &[&str])] = &[
    ("established", true, &["established"]),
    ("estab", true, &["established"]),
    ("syn-sent", true, &["syn-sent"]),
    ("syn-recv", true, &["syn-received"]),
    ("syn-received", true, &["syn-received"]),
    ("fin-wait-1", true, &["fin-wait-1"]),
    ("fin-wait-2", true, &["fin-wait-2"]),
    ("time-wait", true, &["time-wait"]),
    ("closed", true, &["closed"]),
    ("close-wait", true, &["close-wait"]),
    ("last-ack", true, &["last-ack"]),
    ("listen", true, &["listen"]),
    ("listening", true, &["listen"]),
    ("closing", true, &["closing"]),
    ("all", false, &[UNKNOWN]),
    ("connected", false, &[UNKNOWN, "listen", "closed"]),
    ("synchronized", false, &[UNKNOWN, "listen", "closed", "syn-sent"]),
    ("bucket", true, &["time-wait", "syn-received"]),
    ("big", false, &[UNKNOWN, "time-wait", "syn-received"]),
];

impl Filter {
    /// Whether the connection is chosen.
    pub fn chooses(&self, row: &Row) -> bool {
        self.0.chooses(row)
    }

    /// Whether it chooses everything.
    pub fn is_empty(&self) -> bool {
        self.0 == Node::Everything
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        if text.len() > LONGEST {
            return Err(FilterError(format!("a filter has at most {LONGEST} characters")));
        }
        let mut parser = Parser { words: Words::of(text), depth: 0 };
        if parser.words.peek().is_none() {
            return Ok(Filter::default());
        }
        let node = parser.any()?;
        match parser.words.next() {
            None => Ok(Filter(node)),
            Some(word) => Err(FilterError(format!("`{word}` is not expected here"))),
        }
    }
}

impl Node {
    fn chooses(&self, row: &Row) -> bool {
        match self {
            Node::Everything => true,
            Node::All(nodes) => nodes.iter().all(|node| node.chooses(row)),
            Node::Any(nodes) => nodes.iter().any(|node| node.chooses(row)),
            Node::Not(node) => !node.chooses(row),
            Node::State(these, states) => states.contains(&row.state()) == *these,
            Node::Port(end, operator, port) => operator.holds(end.of(row).port(), *port),
            Node::Host(end, equal, host) => host.is(end.of(row)) == *equal,
            Node::Process(wanted) => row.source.is_of(wanted),
            Node::Limit(wanted) => row.limit() == *wanted,
            Node::Extension(None) => !row.layers.is_empty(),
            Node::Extension(Some(wanted)) => row.layers.iter().any(|layer| layer == wanted),
            Node::Transom => matches!(row.source, Source::Transom { .. }),
            Node::Kernel => matches!(row.source, Source::Kernel { .. }),
        }
    }
}

impl End {
    fn of(self, row: &Row) -> SocketAddr {
        match self {
            End::Local => row.local,
            End::Remote => row.remote,
        }
    }
}

impl Operator {
    fn named(word: &str) -> Option<Operator> {
        Some(match word {
            "=" | "==" | "eq" => Operator::Equal,
            "!=" | "ne" | "neq" => Operator::NotEqual,
            "<" | "lt" => Operator::Less,
            "<=" | "le" | "leq" => Operator::LessOrEqual,
            ">" | "gt" => Operator::Greater,
            ">=" | "ge" | "geq" => Operator::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, left: u16, right: u16) -> bool {
        match self {
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
            Operator::Greater => left > right,
            Operator::GreaterOrEqual => left >= right,
        }
    }
}

impl Host {
    fn is(self, end: SocketAddr) -> bool {
        self.port.is_none_or(|port| port == end.port())
            && self
                .network
                .is_none_or(|(network, bits)| same(network, end.ip().to_canonical(), bits))
    }

    fn parse(word: &str) -> Option<Host> {
        // Not `::1`, which begins with a colon too.
        let port = word.strip_prefix(':').or_else(|| word.strip_prefix("*:"));
        if let Some(Ok(port)) = port.map(str::parse) {
            return Some(Host { network: None, port: Some(port) });
        }
        // An IPv6 address alone has colons of its own.
        if let Ok(address) = unbracketed(word).parse::<IpAddr>() {
            return Some(Host::of(address, None, None));
        }
        if let Some((address, rest)) = word.split_once('/') {
            let address = unbracketed(address).parse::<IpAddr>().ok()?;
            let (bits, port) = match rest.split_once(':') {
                Some((bits, port)) => (bits, Some(port.parse().ok()?)),
                None => (rest, None),
            };
            let bits = bits.parse().ok().filter(|bits| *bits <= longest(address))?;
            return Some(Host::of(address, Some(bits), port));
        }
        let (address, port) = word.rsplit_once(':')?;
        let address = unbracketed(address).parse::<IpAddr>().ok()?;
        Some(Host::of(address, None, Some(port.parse().ok()?)))
    }

    fn of(address: IpAddr, bits: Option<u8>, port: Option<u16>) -> Host {
        Host { network: Some((address, bits.unwrap_or_else(|| longest(address)))), port }
    }
}

const fn longest(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Whether the first bits of two addresses are the same.
fn same(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(32 - bits.min(32)).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(128 - bits.min(128)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

struct Parser<'a> {
    words: Words<'a>,
    depth: u32,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.all()?];
        while self.words.take(&["or", "|", "||"]) {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Any(nodes) })
    }

    fn all(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.factor()?];
        loop {
            let joined = self.words.take(&["and", "&", "&&"]);
            match self.words.peek() {
                None | Some("or" | "|" | "||" | ")") if !joined => break,
                _ => nodes.push(self.factor()?),
            }
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::All(nodes) })
    }

    fn factor(&mut self) -> Result<Node, FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(FilterError(format!(
                "a filter has at most {DEEPEST} brackets in one another"
            )));
        }
        let node = if self.words.take(&["not", "!"]) {
            Node::Not(Box::new(self.factor()?))
        } else if self.words.take(&["("]) {
            let node = self.any()?;
            if !self.words.take(&[")"]) {
                return Err(FilterError("a bracket is not closed".into()));
            }
            node
        } else {
            self.condition()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn condition(&mut self) -> Result<Node, FilterError> {
        let word =
            self.words.next().ok_or_else(|| FilterError("the filter ends too early".into()))?;
        match word {
            "state" => {
                let name = self.value("state")?;
                let found = STATES.iter().find(|(known, ..)| *known == name);
                let (_, these, states) =
                    found.ok_or_else(|| FilterError(format!("there is no state `{name}`")))?;
                Ok(Node::State(*these, states))
            }
            "sport" => self.port(End::Local),
            "dport" => self.port(End::Remote),
            "src" => self.host(End::Local),
            "dst" => self.host(End::Remote),
            "process" => Ok(Node::Process(self.value("process")?.to_owned())),
            "limit" => Ok(Node::Limit(self.value("limit")?.to_owned())),
            "extension" => Ok(Node::Extension(match self.words.peek() {
                None | Some("and" | "or" | "not" | "&" | "&&" | "|" | "||" | "!" | ")" | "(") => {
                    None
                }
                Some(_) => self.words.next().map(str::to_owned),
            })),
            "transom" => Ok(Node::Transom),
            "kernel" => Ok(Node::Kernel),
            word => Err(FilterError(format!(
                "`{word}` is no condition: write state, sport, dport, src, dst, process, limit, extension, transom or kernel"
            ))),
        }
    }

    fn value(&mut self, of: &str) -> Result<&str, FilterError> {
        self.words.take(&["=", "==", "eq"]);
        self.words.next().ok_or_else(|| FilterError(format!("`{of}` needs a value")))
    }

    fn port(&mut self, end: End) -> Result<Node, FilterError> {
        let operator = self.operator();
        let word = self.words.next().unwrap_or_default();
        let port = word.strip_prefix(':').unwrap_or(word).parse();
        let port = port.map_err(|_| FilterError(format!("`{word}` is no port: write :443")))?;
        Ok(Node::Port(end, operator, port))
    }

    fn host(&mut self, end: End) -> Result<Node, FilterError> {
        let equal = match self.operator() {
            Operator::Equal => true,
            Operator::NotEqual => false,
            _ => return Err(FilterError("an address is compared by = or !=".into())),
        };
        let word = self.words.next().unwrap_or_default();
        let host = Host::parse(word);
        let host = host.ok_or_else(|| {
            FilterError(format!(
                "`{word}` is no address: write 10.0.0.0/8, 10.0.0.1:443 or [::1]:443"
            ))
        })?;
        Ok(Node::Host(end, equal, host))
    }

    fn operator(&mut self) -> Operator {
        match self.words.peek().and_then(Operator::named) {
            Some(operator) => {
                self.words.next();
                operator
            }
            None => Operator::Equal,
        }
    }
}

#[cfg(test)]
mod tests;
