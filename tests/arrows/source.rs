//! A Rust source as far as this check needs it: words and the paths they make.

/// One path that leaves a file: its root and the first name below it.
pub struct Used {
    pub line: usize,
    pub root: String,
    pub first: String,
}

/// The code of a file, with comments and literals blanked out and lines kept.
pub struct Source {
    tokens: Vec<(usize, String)>,
    code: String,
}

impl Source {
    pub fn read(text: &str) -> Self {
        let code = blank(text);
        Self { tokens: tokens(&code), code }
    }

    /// The text without comments and literals.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Every word, with the line it is on.
    pub fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        self.tokens.iter().map(|(line, token)| (*line, token.as_str()))
    }

    /// Every path that starts at `crate`, `super`, or the name of a crate.
    pub fn paths(&self) -> Vec<Used> {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            let token = self.token(at);
            // `a::libc` is somebody's module; `::libc` and `use libc` are the crate.
            let after_name = at > 1 && self.token(at - 1) == "::" && is_name(self.token(at - 2));
            if !is_name(token) || after_name {
                continue;
            }
            let mut next = at + 1;
            if token == "super" {
                while self.token(next) == "::" && self.token(next + 1) == "super" {
                    next += 2;
                }
            }
            let mut note = |line, first: &str| {
                found.push(Used { line, root: token.to_owned(), first: first.to_owned() });
            };
            if self.token(next) == "::" {
                self.first_names(next + 1, &mut note);
            } else if at > 0 && self.token(at - 1) == "use" {
                note(self.tokens[at].0, "");
            }
        }
        found
    }

    /// `(first, last)` names of every `pub use first::...::last`, under the name it goes by outside.
    pub fn public_uses(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            if self.token(at) != "pub" || self.token(at + 1) != "use" {
                continue;
            }
            let mut from = at + 2;
            while matches!(self.token(from), "crate" | "self" | "::") {
                from += 1;
            }
            let (mut end, mut last) = (from, String::new());
            let mut names = Vec::new();
            while !matches!(self.token(end), ";" | "") {
                match self.token(end) {
                    "," | "}" => names.push(std::mem::take(&mut last)),
                    "{" => last.clear(),
                    "::" | "as" => {}
                    name => last = name.to_owned(),
                }
                end += 1;
            }
            names.push(last);
            let first = self.token(from).to_owned();
            names.retain(|name| !name.is_empty());
            found.extend(names.into_iter().map(|name| (first.clone(), name)));
        }
        found
    }

    /// Notes the first name of the use tree that starts at `at`: one, or several in braces.
    fn first_names(&self, at: usize, note: &mut dyn FnMut(usize, &str)) {
        if self.token(at) != "{" {
            if self.token(at + 1) != "!" && at < self.tokens.len() {
                note(self.tokens[at].0, self.token(at));
            }
            return;
        }
        let (mut at, mut depth, mut first) = (at + 1, 1, true);
        while depth > 0 && at < self.tokens.len() {
            match self.token(at) {
                "{" => depth += 1,
                "}" => depth -= 1,
                "," if depth == 1 => {
                    first = true;
                    at += 1;
                    continue;
                }
                "self" if depth == 1 => {}
                name if depth == 1 && first => note(self.tokens[at].0, name),
                _ => {}
            }
            first = false;
            at += 1;
        }
    }

    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |(_, token)| token)
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first == '_' || first.is_alphabetic())
}

/// Names, `::`, and single characters, each with its line.
fn tokens(code: &str) -> Vec<(usize, String)> {
    let mut tokens = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if first == '_' || first.is_alphanumeric() {
                rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            tokens.push((number + 1, token.to_owned()));
            rest = after.trim_start();
        }
    }
    tokens
}

/// The same text with comments, strings and characters replaced by blanks.
fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_word = false;
    while let Some(first) = rest.chars().next() {
        // `r"` starts a literal, the end of `expr"` in a macro would not.
        let length = if in_word { None } else { literal(rest) };
        let (skipped, after) = rest.split_at(length.unwrap_or(first.len_utf8()));
        match length {
            None => code.push(first),
            Some(_) => code.extend(skipped.chars().map(|c| if c == '\n' { c } else { ' ' })),
        }
        in_word = length.is_none() && (first == '_' || first.is_alphanumeric());
        rest = after;
    }
    code
}

/// Length of the comment or literal that `text` starts with.
fn literal(text: &str) -> Option<usize> {
    if !text.starts_with(['/', '"', '\'', 'b', 'c', 'r']) {
        return None;
    }
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let after = text.strip_prefix(prefix).unwrap_or("");
        let hashes = after.trim_start_matches('#');
        after.starts_with('"')
            || (prefix.ends_with('r') && hashes.starts_with('"'))
            || (after.starts_with('\'') && !prefix.ends_with(['r', 'c']))
    })?;
    let body = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let from = hashes + 1;
        let length = body[from..].find(&end).map_or(body.len(), |at| from + at + end.len());
        return Some(prefix.len() + length);
    }
    let quote = if body.starts_with('"') { '"' } else { '\'' };
    if quote == '\'' && !is_character(body) {
        return None;
    }
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(prefix.len() + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// Tells `'a'` and `'\n'` from the lifetime `'a`.
fn is_character(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}
