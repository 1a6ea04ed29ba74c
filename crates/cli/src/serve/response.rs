//! Responses: which one a request gets, and how it is written.

use std::fs::File;

use super::files::{Found, FoundFile, Root};
use super::range::{Selection, select};
use super::request::{Method, Request, Status, path};
use super::{date, listing, media_type};

/// A response, ready to be sent.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: Status,
    /// The method and target it answers, for the log.
    pub(super) method: String,
    pub(super) target: String,
    /// Its own header fields.
    fields: Vec<(&'static str, String)>,
    /// The Content-Length, of which a response to HEAD sends nothing.
    pub(super) length: u64,
    pub(super) body: Body,
    /// Whether the connection persists.
    pub(super) keep_alive: bool,
    /// Whether the response must announce that.
    say_keep_alive: bool,
}

/// The body after the header fields.
#[derive(Debug)]
pub(super) enum Body {
    None,
    Bytes(Vec<u8>),
    /// This many bytes of a file, from its current position.
    File {
        file: File,
        length: u64,
    },
}

/// Answers a request.
pub(super) fn respond(root: &Root, request: Request) -> Response {
    let found = match request.method {
        Method::Other => Err(Status::MethodNotAllowed),
        Method::Get | Method::Head => answer(root, &request),
    };
    let mut response = found.unwrap_or_else(|status| Response::error(status, false));
    if request.method == Method::Head {
        response.body = Body::None;
    }
    response.keep_alive = request.keep_alive;
    response.say_keep_alive = request.is_http_10;
    response.method = request.method_name;
    response.target = request.target;
    response
}

fn answer(root: &Root, request: &Request) -> Result<Response, Status> {
    let (mut segments, is_directory) = path(&request.target).ok_or(Status::BadRequest)?;
    match root.find(&segments)? {
        Found::File(_) if is_directory => Err(Status::NotFound),
        Found::File(file) => {
            let name = segments.pop().unwrap_or_default();
            serve_file(request, file, media_type::of(&name))
        }
        // Without the slash, the links on the page would lead beside the directory.
        Found::Directory(_) if !is_directory => {
            let path: Vec<_> = segments.iter().map(|s| listing::percent_encode(s)).collect();
            let mut response = Response::page(Status::MovedPermanently);
            response.fields.push(("Location", format!("/{}/", path.join("/"))));
            Ok(response)
        }
        Found::Directory(directory) => {
            segments.push(b"index.html".to_vec());
            if let Ok(Found::File(file)) = root.find(&segments) {
                return serve_file(request, file, "text/html; charset=utf-8");
            }
            segments.pop();
            let entries =
                root.list(&segments, &directory).map_err(|_| Status::InternalServerError)?;
            let page = listing::page(&segments, &entries);
            Ok(Response::html(Status::Ok, page))
        }
    }
}

fn serve_file(request: &Request, file: FoundFile, media_type: &str) -> Result<Response, Status> {
    let tag = file.entity_tag();
    let modified = date::http_date(file.modified.0);
    let whole = file.length;
    let mut fields = vec![
        ("Last-Modified", modified.clone()),
        ("ETag", tag.clone()),
        ("Accept-Ranges", "bytes".into()),
    ];
    if request.if_none_match.as_deref().is_some_and(|tags| matches_any(tags, &tag)) {
        return Ok(Response { fields, ..Response::new(Status::NotModified, 0, Body::None) });
    }
    // A range of something else than what the client has the other parts of would be of no use to it.
    let same = request.if_range.as_deref().is_none_or(|known| known == tag || known == modified);
    // Ranges are defined for GET alone (RFC 9110, section 14.2).
    let wanted = request.range.as_deref().filter(|_| same && request.method == Method::Get);
    let selection = wanted.map_or(Selection::All, |range| select(range, whole));
    let (status, first, length) = match selection {
        Selection::All => (Status::Ok, 0, whole),
        Selection::Part { first, last } => {
            fields.push(("Content-Range", format!("bytes {first}-{last}/{whole}")));
            (Status::PartialContent, first, last - first + 1)
        }
        Selection::Unsatisfiable => {
            let mut response = Response::page(Status::RangeNotSatisfiable);
            response.fields.push(("Content-Range", format!("bytes */{whole}")));
            return Ok(response);
        }
    };
    fields.push(("Content-Type", media_type.into()));
    let body = match length {
        0 => Body::None,
        _ => {
            let file = file.from(first).map_err(|_| Status::InternalServerError)?;
            Body::File { file, length }
        }
    };
    Ok(Response { fields, ..Response::new(status, length, body) })
}

/// Whether an If-None-Match field names the tag (weak comparison: RFC 9110, section 13.1.2).
fn matches_any(tags: &str, tag: &str) -> bool {
    tags.trim() == "*"
        || tags.split(',').any(|known| {
            let known = known.trim();
            known.strip_prefix("W/").unwrap_or(known) == tag
        })
}

impl Response {
    fn new(status: Status, length: u64, body: Body) -> Self {
        Response {
            status,
            method: String::new(),
            target: String::new(),
            fields: Vec::new(),
            length,
            body,
            keep_alive: true,
            say_keep_alive: false,
        }
    }

    fn html(status: Status, page: String) -> Self {
        let body = page.into_bytes();
        let mut response = Response::new(status, body.len() as u64, Body::Bytes(body));
        response.fields.push(("Content-Type", "text/html; charset=utf-8".into()));
        response
    }

    /// A page that says no more than the status.
    fn page(status: Status) -> Self {
        let (code, reason) = status.line();
        let page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<title>{code} {reason}</title>\n\
             <h1>{code} {reason}</h1>\n"
        );
        Response::html(status, page)
    }

    /// Refuses a request; if `last`, the connection ends with it.
    pub(super) fn error(status: Status, last: bool) -> Self {
        let mut response = Response::page(status);
        if status == Status::MethodNotAllowed {
            response.fields.push(("Allow", "GET, HEAD".into()));
        }
        response.keep_alive = !last;
        response
    }

    /// The status line and the header fields.
    pub(super) fn head(&self) -> Vec<u8> {
        let (code, reason) = self.status.line();
        let version = env!("CARGO_PKG_VERSION");
        let date = date::now();
        let mut head =
            format!("HTTP/1.1 {code} {reason}\r\nServer: transom/{version}\r\nDate: {date}\r\n");
        // A 304 describes the representation it does not send, and has no length of its own.
        if self.status != Status::NotModified {
            head.push_str(&format!("Content-Length: {}\r\n", self.length));
        }
        for (name, value) in &self.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match (self.keep_alive, self.say_keep_alive) {
            (false, _) => head.push_str("Connection: close\r\n"),
            (true, true) => head.push_str("Connection: keep-alive\r\n"),
            (true, false) => {}
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

#[cfg(test)]
mod tests;
