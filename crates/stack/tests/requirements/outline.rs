//! The items of a file: what they are called, where they begin and end, and which of them are
//! tests.
//!
//! One pass over the tokens. An item begins where a statement may begin and its keyword follows
//! (after attributes, visibility and qualifiers). It ends with its body or with its semicolon.
//! Macro bodies are read like any other braces, so the functions in a `proptest!` are found too.

use crate::lex::{Kind, Token};

/// An item, as a range of tokens.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Its name within the file (`Type::method`), without modules; `None` for a module or an
    /// unnamed `impl`.
    pub(crate) path: Option<String>,
    /// Its first token, attributes included.
    pub(crate) start: usize,
    /// Its last token.
    pub(crate) end: usize,
    /// Whether it is a function, or within one.
    pub(crate) in_fn: bool,
    /// Whether it is compiled for tests only.
    pub(crate) test: bool,
    /// Whether it is a test that is skipped by default, or within one.
    pub(crate) ignored: bool,
}

/// What [`outline`] finds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    /// Every item, in the order of their beginnings: of two that hold a token, the later is the
    /// inner one.
    pub(crate) items: Vec<Item>,
    /// Names of the modules in files of their own that are compiled for tests only.
    pub(crate) test_modules: Vec<String>,
    /// Whether the whole file is compiled for tests only (`#![cfg(test)]`).
    pub(crate) test: bool,
}

impl Outline {
    /// The innermost item that holds a token.
    pub(crate) fn at(&self, token: usize) -> Option<&Item> {
        self.items.iter().rev().find(|item| item.start <= token && token <= item.end)
    }
}

/// Outlines a file.
pub(crate) fn outline(tokens: &[Token]) -> Outline {
    let mut walk =
        Walk { tokens, found: Outline::default(), nest: vec![], open: vec![], attributes: None };
    let mut at = 0;
    let mut may_begin = true;
    while let Some(token) = tokens.get(at) {
        if may_begin && token.is_punct('#') {
            at = walk.attribute(at);
            continue;
        }
        if may_begin && let Some(header) = header(tokens, at) {
            at = header.next;
            may_begin = false;
            walk.begin(header);
            continue;
        }
        walk.attributes = None;
        match token.kind {
            Kind::Punct('(' | '[' | '{') => walk.nest_in(at),
            Kind::Punct(')' | ']' | '}') => walk.nest_out(at),
            Kind::Punct(';') => walk.semicolon(at),
            _ => {}
        }
        may_begin = matches!(token.kind, Kind::Punct('{' | '}' | ';'));
        at += 1;
    }
    walk.found
}

/// What the attributes in front of an item say.
#[derive(Clone, Copy, Debug)]
struct Attributes {
    start: usize,
    test: bool,
    ignored: bool,
}

/// The beginning of an item: all up to its name.
struct Header {
    start: usize,
    /// The first token behind what was read.
    next: usize,
    keyword: &'static str,
    name: Option<String>,
}

/// An item whose end is yet to come.
struct Open {
    item: usize,
    keyword: &'static str,
    depth: usize,
}

struct Walk<'a> {
    tokens: &'a [Token],
    found: Outline,
    /// The brackets around the current token, each with the item whose body it is.
    nest: Vec<Option<usize>>,
    /// The items begun, whose body or semicolon is yet to come.
    open: Vec<Open>,
    attributes: Option<Attributes>,
}

impl Walk<'_> {
    /// Reads the attribute at `at` and returns the token behind it.
    fn attribute(&mut self, at: usize) -> usize {
        let inner = self.tokens.get(at + 1).is_some_and(|token| token.is_punct('!'));
        let bracket = at + 1 + usize::from(inner);
        if !self.tokens.get(bracket).is_some_and(|token| token.is_punct('[')) {
            self.attributes = None;
            return at + 1;
        }
        let end = closing(self.tokens, bracket);
        let words: Vec<&str> =
            self.tokens[bracket..end].iter().filter_map(|token| token.word()).collect();
        let cfg_test = words.first() == Some(&"cfg")
            && words.contains(&"test")
            && !words.contains(&"not")
            && !words.contains(&"any");
        if inner {
            match self.nest.iter().rev().find_map(|item| *item) {
                Some(item) => self.found.items[item].test |= cfg_test,
                None => self.found.test |= cfg_test,
            }
            return end;
        }
        // `#[test]`, or another crate's: `#[tokio::test]`.
        let path = self.tokens[bracket + 1..end]
            .iter()
            .take_while(|token| token.word().is_some() || token.is_punct(':'))
            .filter_map(|token| token.word());
        let marked_test = path.last() == Some("test");
        let attributes =
            self.attributes.get_or_insert(Attributes { start: at, test: false, ignored: false });
        attributes.test |= cfg_test || marked_test;
        attributes.ignored |= words.first() == Some(&"ignore");
        end
    }

    fn begin(&mut self, header: Header) {
        let attributes = self.attributes.take();
        let parent =
            self.nest.iter().rev().find_map(|item| *item).map(|item| &self.found.items[item]);
        let own = if header.keyword == "mod" { None } else { header.name.as_deref() };
        let path = match (parent.and_then(|parent| parent.path.as_deref()), own) {
            (Some(outer), Some(own)) => Some(format!("{outer}::{own}")),
            (outer, own) => own.or(outer).map(str::to_owned),
        };
        let item = Item {
            path,
            start: attributes.map_or(header.start, |attributes| attributes.start),
            end: self.tokens.len(),
            in_fn: header.keyword == "fn" || parent.is_some_and(|parent| parent.in_fn),
            test: attributes.is_some_and(|attributes| attributes.test)
                || parent.map_or(self.found.test, |parent| parent.test),
            ignored: attributes.is_some_and(|attributes| attributes.ignored)
                || parent.is_some_and(|parent| parent.ignored),
        };
        let out_of_line = self.tokens.get(header.next).is_some_and(|token| token.is_punct(';'));
        if header.keyword == "mod" && out_of_line && item.test {
            self.found.test_modules.extend(header.name);
        }
        self.open.push(Open {
            item: self.found.items.len(),
            keyword: header.keyword,
            depth: self.nest.len(),
        });
        self.found.items.push(item);
    }

    fn nest_in(&mut self, at: usize) {
        let depth = self.nest.len();
        // The braces of a constant's value are not its end.
        let body = self.tokens[at].is_punct('{')
            && self.open.last().is_some_and(|open| {
                open.depth == depth && !matches!(open.keyword, "const" | "static" | "type")
            });
        let item = if body { self.open.pop().map(|open| open.item) } else { None };
        self.nest.push(item);
    }

    fn nest_out(&mut self, at: usize) {
        if let Some(item) = self.nest.pop().flatten() {
            self.found.items[item].end = at;
        }
        // An item left without an end by what closes around it (a macro's pattern) ends here.
        while self.open.last().is_some_and(|open| open.depth > self.nest.len()) {
            if let Some(open) = self.open.pop() {
                self.found.items[open.item].end = at;
            }
        }
    }

    fn semicolon(&mut self, at: usize) {
        if self.open.last().is_some_and(|open| open.depth == self.nest.len())
            && let Some(open) = self.open.pop()
        {
            self.found.items[open.item].end = at;
        }
    }
}

/// The item that begins at `at`, if one does.
fn header(tokens: &[Token], at: usize) -> Option<Header> {
    let word = |at: usize| tokens.get(at).and_then(Token::word);
    let mut next = at;
    if word(next) == Some("pub") {
        next += 1;
        if tokens.get(next).is_some_and(|token| token.is_punct('(')) {
            next = closing(tokens, next);
        }
    }
    loop {
        let qualifier = match word(next)? {
            "const" => matches!(word(next + 1), Some("fn" | "unsafe" | "async" | "extern")),
            "unsafe" | "async" | "default" | "safe" => word(next + 1).is_some(),
            "extern" => tokens.get(next + 1).is_some_and(|token| token.kind == Kind::Literal),
            _ => false,
        };
        if !qualifier {
            break;
        }
        next += if word(next) == Some("extern") { 2 } else { 1 };
    }
    const NAMED: [&str; 9] =
        ["fn", "struct", "enum", "union", "trait", "mod", "type", "static", "const"];
    let keyword = word(next)?;
    if keyword == "impl" {
        let (name, next) = impl_name(tokens, next + 1);
        return Some(Header { start: at, next, keyword: "impl", name });
    }
    if keyword == "macro_rules" && tokens.get(next + 1).is_some_and(|token| token.is_punct('!')) {
        let name = word(next + 2)?.to_owned();
        return Some(Header {
            start: at,
            next: next + 3,
            keyword: "macro_rules",
            name: Some(name),
        });
    }
    let keyword = NAMED.into_iter().find(|named| *named == keyword)?;
    next += 1;
    if word(next) == Some("mut") {
        next += 1;
    }
    let name = word(next)?.to_owned();
    Some(Header { start: at, next: next + 1, keyword, name: Some(name) })
}

/// The type an `impl` is for (its last path segment), and the token its braces or bounds begin at.
fn impl_name(tokens: &[Token], at: usize) -> (Option<String>, usize) {
    let mut depth = 0_usize;
    let mut name = None;
    let mut next = at;
    while let Some(token) = tokens.get(next) {
        match &token.kind {
            Kind::Punct('{' | ';' | '}' | ')' | ']') if depth == 0 => break,
            Kind::Punct('<' | '(' | '[' | '{') => depth += 1,
            Kind::Punct('>' | ')' | ']' | '}') => depth = depth.saturating_sub(1),
            Kind::Word(word) if depth == 0 => match word.as_str() {
                "where" => break,
                "for" => name = None,
                _ => name = Some(word.clone()),
            },
            _ => {}
        }
        next += 1;
    }
    (name, next)
}

/// The token behind the bracket that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Punct('(' | '[' | '{') => depth += 1,
            Kind::Punct(')' | ']' | '}') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}
