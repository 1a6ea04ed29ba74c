//! Rust source as tokens and comments: just enough to know what is a comment and where items begin.
//!
//! Literals lose their content, so that a marker quoted in a string is not one. Broken source gives
//! odd tokens and never an error; the compiler is the one to complain about it.

/// A token, without its position in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword.
    Word(String),
    /// A string, character or number.
    Literal,
    /// `->` or `=>`, kept whole so that their `>` closes no angle bracket.
    Arrow,
    /// Any other character.
    Punct(char),
}

/// A token and the line it ends on.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

impl Token {
    /// Whether this is that character.
    pub(crate) fn is_punct(&self, punct: char) -> bool {
        self.kind == Kind::Punct(punct)
    }

    /// The identifier or keyword, if it is one.
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// A comment and where it stands among the tokens.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) text: String,
    /// The line it begins on.
    pub(crate) line: usize,
    /// How many tokens come before it.
    pub(crate) before: usize,
    pub(crate) doc: Doc,
}

/// Whether a comment is documentation, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doc {
    /// A plain comment.
    No,
    /// Of what encloses it: `//!`, `/*!`.
    Inner,
    /// Of what follows: `///`, `/**`.
    Outer,
}

/// The tokens and the comments of a file, each in order.
pub(crate) fn lex(source: &str) -> (Vec<Token>, Vec<Comment>) {
    let mut lexer =
        Lexer { chars: source.chars().collect(), at: 0, line: 1, tokens: vec![], comments: vec![] };
    while lexer.peek(0).is_some() {
        lexer.step();
    }
    (lexer.tokens, lexer.comments)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn push(&mut self, kind: Kind) {
        self.tokens.push(Token { kind, line: self.line });
    }

    fn step(&mut self) {
        let Some(c) = self.peek(0) else { return };
        match (c, self.peek(1)) {
            ('/', Some('/')) => self.line_comment(),
            ('/', Some('*')) => self.block_comment(),
            ('"', _) => self.string(),
            ('\'', _) => self.quote(),
            ('-' | '=', Some('>')) => {
                self.at += 2;
                self.push(Kind::Arrow);
            }
            _ if c.is_whitespace() => {
                self.bump();
            }
            _ if c.is_ascii_digit() => {
                self.take_word();
                self.push(Kind::Literal);
            }
            _ if is_word(c) => self.word_or_prefixed_literal(),
            _ => {
                self.at += 1;
                self.push(Kind::Punct(c));
            }
        }
    }

    fn line_comment(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
        self.comment(start, self.line);
    }

    fn block_comment(&mut self) {
        let (start, line) = (self.at, self.line);
        let mut depth = 0_usize;
        while let Some(c) = self.bump() {
            match (c, self.peek(0)) {
                ('/', Some('*')) => {
                    self.bump();
                    depth += 1;
                }
                ('*', Some('/')) => {
                    self.bump();
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        self.comment(start, line);
    }

    fn comment(&mut self, start: usize, line: usize) {
        let text: String = self.chars[start..self.at].iter().collect();
        let starts = |start: [&str; 2]| start.into_iter().any(|start| text.starts_with(start));
        let doc = if starts(["//!", "/*!"]) {
            Doc::Inner
        } else if starts(["///", "/**"]) && !starts(["////", "/***"]) && text != "/**/" {
            Doc::Outer
        } else {
            Doc::No
        };
        self.comments.push(Comment { text, line, before: self.tokens.len(), doc });
    }

    /// A string from its opening quote on.
    fn string(&mut self) {
        self.bump();
        while let Some(c) = self.bump() {
            match c {
                '\\' => {
                    self.bump();
                }
                '"' => break,
                _ => {}
            }
        }
        self.push(Kind::Literal);
    }

    /// A raw string from the `#`s or the quote that follow its prefix on.
    fn raw_string(&mut self) {
        let mut hashes = 0;
        while self.peek(0) == Some('#') {
            self.at += 1;
            hashes += 1;
        }
        self.bump();
        while let Some(c) = self.bump() {
            if c == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                self.at += hashes;
                break;
            }
        }
        self.push(Kind::Literal);
    }

    /// A character literal, or a lifetime, which is dropped: nothing here asks for one.
    fn quote(&mut self) {
        self.at += 1;
        if self.peek(0) == Some('\\') {
            self.at += 1;
            self.bump();
            while self.bump().is_some_and(|c| c != '\'') {}
            self.push(Kind::Literal);
        } else if self.peek(1) == Some('\'') {
            self.bump();
            self.at += 1;
            self.push(Kind::Literal);
        } else {
            self.take_word();
        }
    }

    fn word_or_prefixed_literal(&mut self) {
        let word = self.take_word();
        match (word.as_str(), self.peek(0)) {
            ("b" | "c", Some('"')) => self.string(),
            ("b", Some('\'')) => self.quote(),
            ("r" | "br" | "cr", Some('"')) => self.raw_string(),
            ("r", Some('#')) if self.peek(1).is_some_and(is_word) => {
                self.at += 1;
                let raw = self.take_word();
                self.push(Kind::Word(format!("r#{raw}")));
            }
            ("r" | "br" | "cr", Some('#')) => self.raw_string(),
            _ => self.push(Kind::Word(word)),
        }
    }

    fn take_word(&mut self) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
