//! Scripts, and the stylesheet of the dashboard, as they are served: without the lines that only explain them, and without
//! indentation. They are a seventh of the bytes that a browser loads, and of what a Worker holds of them.

/// A script without comments and indentation, at compile time: `script!("assets/app.js", …)`, as many files as are joined.
/// In these files a comment has its line for itself, and no text reaches over a line.
macro_rules! script {
    ($($file:literal),+ $(,)?) => {{
        const SOURCE: &str = concat!($(include_str!($file)),+);
        const BYTES: [u8; $crate::base::script::length(SOURCE)] = $crate::base::script::stripped(SOURCE);
        match ::std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => SOURCE,
        }
    }};
}
pub(crate) use script;

/// Where the line that begins at `from` ends, after its line break.
const fn line_end(text: &[u8], mut from: usize) -> usize {
    while from < text.len() && text[from] != b'\n' {
        from += 1;
    }
    if from < text.len() { from + 1 } else { from }
}

/// Where the text of the line that begins at `from` begins; its end, if it is a comment or empty.
const fn line_start(text: &[u8], mut from: usize, end: usize) -> usize {
    while from < end && (text[from] == b' ' || text[from] == b'\n') {
        from += 1;
    }
    let is_comment =
        from + 1 < end && text[from] == b'/' && (text[from + 1] == b'/' || text[from + 1] == b'*');
    if is_comment { end } else { from }
}

/// The length of [`stripped`].
pub(crate) const fn length(text: &str) -> usize {
    let text = text.as_bytes();
    let (mut at, mut length) = (0, 0);
    while at < text.len() {
        let end = line_end(text, at);
        length += end - line_start(text, at, end);
        at = end;
    }
    length
}

/// The text without comments, empty lines and indentation.
pub(crate) const fn stripped<const N: usize>(text: &str) -> [u8; N] {
    let text = text.as_bytes();
    let mut bytes = [0; N];
    let (mut at, mut length) = (0, 0);
    while at < text.len() {
        let end = line_end(text, at);
        let mut from = line_start(text, at, end);
        while from < end {
            bytes[length] = text[from];
            length += 1;
            from += 1;
        }
        at = end;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_explains_is_left_out() {
        const SOURCE: &str = "// Why.\nlet a = 1; // here\n\n  /** What. */\n  go('http://x', a / 2);\n}";
        const BYTES: [u8; length(SOURCE)] = stripped(SOURCE);
        assert_eq!(str::from_utf8(&BYTES), Ok("let a = 1; // here\ngo('http://x', a / 2);\n}"));
    }

    /// What [`script!`] takes for granted.
    #[test]
    fn a_comment_has_its_line_for_itself_and_no_text_reaches_over_a_line() {
        let folders = ["src/dashboard/assets", "src/live/page"];
        let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let scripts = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "js"));
        let mut count = 0;
        for path in scripts {
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let whole = !line.trim_start().starts_with("/*") || line.trim_end().ends_with("*/");
                assert!(whole && line.matches('`').count() % 2 == 0, "{}: {line}", path.display());
            }
            count += 1;
        }
        assert!(count >= 10, "{count} scripts");
    }
}
