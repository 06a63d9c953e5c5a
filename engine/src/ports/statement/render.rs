//! Renders named parameters as numbers, at compile time where the text is a literal.

/// The length of the result of [`render`]. Fails to compile unless the parameters of `text`, `:ws` aside, are
/// exactly `names`.
#[doc(hidden)]
pub const fn rendered_length(text: &str, names: &[&str]) -> usize {
    let (bytes, mut at, mut length, mut used) = (text.as_bytes(), 0, 0, 0u128);
    while at < bytes.len() {
        let (end, index) = parameter(bytes, at, names);
        match index {
            Some(index) => {
                used |= 1 << index;
                length += 1 + digits(index + 1);
            }
            None => {
                assert!(
                    end == at || is_workspace(bytes, at, end),
                    "a parameter of the statement has no value"
                );
                length += if end > at { end - at } else { 1 };
            }
        }
        at = if end > at { end } else { at + 1 };
    }
    assert!(used == (1 << names.len()) - 1, "a value has no parameter in the statement");
    length
}

/// `text` with `?1`, `?2`, … in place of its `names`.
#[doc(hidden)]
pub const fn render<const LENGTH: usize>(text: &str, names: &[&str]) -> [u8; LENGTH] {
    let (bytes, mut at, mut rendered, mut length) = (text.as_bytes(), 0, [0; LENGTH], 0);
    while at < bytes.len() {
        let (end, index) = parameter(bytes, at, names);
        if let Some(index) = index {
            let number = index + 1;
            rendered[length] = b'?';
            if number >= 10 {
                rendered[length + 1] = b'0' + (number / 10) as u8;
            }
            rendered[length + digits(number)] = b'0' + (number % 10) as u8;
            length += 1 + digits(number);
            at = end;
        } else {
            // A name that stays as it is, or one byte.
            let end = if end > at { end } else { at + 1 };
            while at < end {
                rendered[length] = bytes[at];
                length += 1;
                at += 1;
            }
        }
    }
    rendered
}

/// The rendered text.
#[doc(hidden)]
#[allow(clippy::panic, reason = "runs at compile time only")]
pub const fn utf8(rendered: &'static [u8]) -> &'static str {
    match std::str::from_utf8(rendered) {
        Ok(text) => text,
        Err(_) => panic!("rendering keeps UTF-8"),
    }
}

const fn digits(number: usize) -> usize {
    assert!(number < 100, "a statement takes fewer values");
    if number < 10 { 1 } else { 2 }
}

/// Appends a number without `format!`, which would take longer than the rest of the rendering.
pub(super) fn push_number(text: &mut String, number: usize) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// The end of the name whose colon is at `at`, and its index in `names`.
const fn parameter(bytes: &[u8], at: usize, names: &[&str]) -> (usize, Option<usize>) {
    let end = name_end(bytes, at);
    let mut index = 0;
    while end > at && index < names.len() {
        if is_name(bytes, at + 1, end, names[index].as_bytes()) {
            return (end, Some(index));
        }
        index += 1;
    }
    (end, None)
}

/// Whether the name from `at` to `end` is `:ws`, which the statement of an operation leaves open.
pub(super) const fn is_workspace(bytes: &[u8], at: usize, end: usize) -> bool {
    end > at && is_name(bytes, at + 1, end, b"ws")
}

/// The end of the name whose colon is at `at`; `at` itself if no name begins there.
pub(super) const fn name_end(bytes: &[u8], at: usize) -> usize {
    let starts = bytes[at] == b':'
        && at + 1 < bytes.len()
        && (bytes[at + 1].is_ascii_lowercase() || bytes[at + 1] == b'_');
    if !starts {
        return at;
    }
    let mut end = at + 1;
    while end < bytes.len() && (bytes[end].is_ascii_alphanumeric() || bytes[end] == b'_') {
        end += 1;
    }
    end
}

const fn is_name(bytes: &[u8], start: usize, end: usize, name: &[u8]) -> bool {
    if end - start != name.len() {
        return false;
    }
    let mut offset = 0;
    while offset < name.len() {
        if bytes[start + offset] != name[offset] {
            return false;
        }
        offset += 1;
    }
    true
}
