//! Text as roff: what a manual page is written in.

/// Text in a line of its own, or a part of one.
pub fn text(text: &str) -> String {
    let mut out = String::new();
    for (at, line) in text.lines().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        // A line that begins so would be a request.
        if line.starts_with(['.', '\'']) {
            out.push_str("\\&");
        }
        for c in line.chars() {
            match c {
                '\\' => out.push_str("\\e"),
                '-' => out.push_str("\\-"),
                '`' => out.push_str("\\(ga"),
                '\'' => out.push_str("\\(aq"),
                '^' => out.push_str("\\(ha"),
                '~' => out.push_str("\\(ti"),
                c => out.push(c),
            }
        }
    }
    out
}

/// A section: a heading and roff below it.
pub fn section(heading: &str, body: &str) -> String {
    format!(".SH {heading}\n{}\n", body.trim_end())
}

/// Lines that stay as they are.
pub fn verbatim(lines: &str) -> String {
    // An empty line is a warning to those who check pages.
    let body: Vec<String> = text(lines)
        .lines()
        .map(|line| {
            if line.is_empty() {
                ".sp".to_owned()
            } else {
                line.to_owned()
            }
        })
        .collect();
    format!(".nf\n{}\n.fi", body.join("\n"))
}

/// A tagged paragraph.
pub fn tagged(tag: &str, body: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", text(tag), text(body))
}
