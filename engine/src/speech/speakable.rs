//! Makes text speakable: without formatting, with addresses and amounts in words.
mod address;
mod amount;
mod source_map;
#[cfg(test)]
mod tests;

use source_map::SourceMap;

/// A text as it is given to a voice, and where each of its places comes from.
///
/// Markdown loses its signs and keeps its text: emphasis, headings, lists, code, quotations, links. Emoji are removed, white
/// space is collapsed. In English, addresses, amounts of money and a few signs become words; in other languages they are left
/// to the voice. Plain text does not change.
///
/// ```
/// use sidetone_engine::speech::speakable::Speakable;
///
/// let source = "It is **$5.50**, see [our page](https://example.com/prices) 👍";
/// let speakable = Speakable::new(source, "en");
/// assert_eq!(speakable.text(), "It is 5 dollars and 50 cents, see our page ");
/// let spoken = speakable.text().find(", see").unwrap();
/// assert_eq!(&source[..speakable.source_offset(spoken)], "It is **$5.50**");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speakable {
    text: String,
    map: SourceMap,
}

impl Speakable {
    /// The speakable form of a text in a language, given as a BCP 47 tag.
    #[must_use]
    pub fn new(source: &str, language: &str) -> Self {
        let is_english = language.split(['-', '_']).next().is_some_and(|tag| tag.eq_ignore_ascii_case("en"));
        let mut scanner =
            Scanner { source, is_english, place: 0, text: String::new(), map: SourceMap::default() };
        while scanner.place < source.len() {
            scanner.step();
        }
        scanner.map.end(scanner.text.len(), source.len());
        Self { text: scanner.text, map: scanner.map }
    }

    /// The text to speak.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The position in the source that a position in [`text`](Self::text) comes from, both in bytes. What was said in other
    /// words counts only when all of it was said. A position within a character counts as its beginning, one beyond the end as
    /// the end.
    #[must_use]
    pub fn source_offset(&self, spoken_offset: usize) -> usize {
        let mut spoken_offset = spoken_offset.min(self.text.len());
        while !self.text.is_char_boundary(spoken_offset) {
            spoken_offset -= 1;
        }
        self.map.source_offset(spoken_offset)
    }
}

/// Reads the source once.
struct Scanner<'a> {
    source: &'a str,
    is_english: bool,
    /// The next position in the source.
    place: usize,
    text: String,
    map: SourceMap,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.place..]
    }

    /// The character before the next.
    fn before(&self) -> Option<char> {
        self.source[..self.place].chars().next_back()
    }

    /// Takes what is next.
    fn step(&mut self) {
        let Some(next) = self.rest().chars().next() else { return };
        let is_line_start = self.before().is_none_or(|before| before == '\n');
        if is_line_start && self.start_of_line() {
            return;
        }
        if next.is_whitespace() {
            return self.white_space();
        }
        if is_silent(next) {
            return self.skip(next.len_utf8());
        }
        if self.link(next)
            || self.tag(next)
            || self.entity(next)
            || self.mark(next)
            || (self.is_english && self.in_words(next))
        {
            return;
        }
        self.copy(next.len_utf8());
    }

    /// Takes what formats a whole line: a heading, an entry of a list, a quotation, a fence of code, a rule.
    fn start_of_line(&mut self) -> bool {
        let rest = self.rest();
        let line = rest.lines().next().unwrap_or_default();
        let content = line.trim();
        let is_rule = content.len() >= 3
            && ["-", "*", "_", "="].iter().any(|sign| content.replace(sign, "").trim().is_empty())
            || content.starts_with('|') && content.chars().all(|character| "|-: ".contains(character));
        if content.starts_with("```") || content.starts_with("~~~") || is_rule {
            self.skip(line.len());
            return true;
        }
        let indent = line.len() - line.trim_start().len();
        let heading = content.len() - content.trim_start_matches('#').len();
        let signs = match content.chars().next() {
            Some('#') if heading <= 6 => heading,
            Some('-' | '*' | '+' | '>') => 1,
            Some('•') => '•'.len_utf8(),
            _ => return false,
        };
        if !content[signs..].starts_with(char::is_whitespace) {
            return false;
        }
        // The space after the sign goes with it.
        self.skip(indent + signs + content[signs..].chars().next().map_or(0, char::len_utf8));
        true
    }

    /// White space becomes one space. At the end of a line that ends without punctuation, such as a heading or an entry of a
    /// list, the voice shall pause.
    fn white_space(&mut self) {
        let rest = self.rest();
        let length = rest.len() - rest.trim_start().len();
        let space = &rest[..length];
        let before = self.text.chars().next_back();
        let lines = space.matches('\n').count();
        if lines > 0
            && before.is_some_and(char::is_alphanumeric)
            && (lines > 1 || self.is_block_line(&rest[length..]))
        {
            self.say(". ", length);
        } else if before.is_some_and(char::is_whitespace) || (before.is_none() && self.place > 0) {
            self.skip(length);
        } else if space == " " {
            self.copy(length);
        } else {
            self.say(" ", length);
        }
    }

    /// Whether the line that ends here, or the following one, is a heading or an entry of a list.
    fn is_block_line(&self, following: &str) -> bool {
        let line = self.source[..self.place].lines().next_back().unwrap_or_default();
        [line, following].iter().any(|line| {
            let line = line.trim_start();
            let unnumbered = line.trim_start_matches(|character: char| character.is_ascii_digit());
            let is_numbered = unnumbered.len() < line.len() && unnumbered.starts_with(['.', ')']);
            is_numbered
                || line.starts_with(['#', '•', '|', '>'])
                || line.starts_with("- ")
                || line.starts_with("* ")
                || line.starts_with("+ ")
        })
    }

    /// Takes a link or image: only its text is spoken. The text itself is scanned like any other.
    fn link(&mut self, next: char) -> bool {
        let rest = self.rest();
        match next {
            '!' if rest.starts_with("![") && link_target(&rest[1..]).is_some() => self.skip(1),
            '[' if link_target(rest).is_some() => self.skip(1),
            // The end of the text of a link whose beginning was skipped.
            ']' if rest.starts_with("](") && is_in_link(&self.source[..self.place]) => match rest.find(')') {
                Some(end) => self.skip(end + 1),
                None => return false,
            },
            // An address between angle brackets.
            '<' if rest[1..].starts_with("http") || rest[1..].starts_with("mailto:") => self.skip(1),
            '>' if self.source[..self.place]
                .rsplit('<')
                .next()
                .is_some_and(|inside| inside.starts_with("http") || inside.starts_with("mailto:")) =>
            {
                self.skip(1)
            }
            _ => return false,
        }
        true
    }

    /// Takes a tag of HTML or SSML: voices that do not know it read it out.
    fn tag(&mut self, next: char) -> bool {
        let rest = self.rest();
        let Some(end) = rest.find('>').filter(|_| next == '<') else { return false };
        let inside = rest[1..end].trim_start_matches('/').trim_end_matches('/');
        let (name, attributes) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-:".contains(c));
        let is_tag = is_name && (attributes.trim().is_empty() || attributes.contains('='));
        if is_tag {
            self.skip(end + 1);
        }
        is_tag
    }

    /// Says a character that is written as in HTML.
    fn entity(&mut self, next: char) -> bool {
        let known = [("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&nbsp;", " ")];
        let found = known.iter().find(|(entity, _)| next == '&' && self.rest().starts_with(entity));
        let Some((entity, character)) = found else { return false };
        let is_word = *character == "&" && self.is_english;
        self.say(if is_word { "and" } else { character }, entity.len());
        true
    }

    /// Takes signs of emphasis and code. They touch a word on one side only; others are part of the text (`3 * 4`,
    /// `snake_case`).
    fn mark(&mut self, next: char) -> bool {
        let rest = self.rest();
        let length = rest.len() - rest.trim_start_matches(next).len();
        let is_inside = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let is_space = |character: Option<char>| character.is_none_or(char::is_whitespace);
        let (before, after) = (self.before(), rest[length..].chars().next());
        let is_mark = match next {
            '*' | '_' => !(is_inside(before) && is_inside(after) || is_space(before) && is_space(after)),
            '~' => length == 2 && !(is_space(before) && is_space(after)),
            '`' => true,
            '|' => return self.table_cell(),
            _ => false,
        };
        if is_mark {
            self.skip(length);
        }
        is_mark
    }

    /// The cells of a table are separated by a pause.
    fn table_cell(&mut self) -> bool {
        let line = self.source[..self.place].rsplit('\n').next().unwrap_or_default();
        if !line.trim_start().is_empty() && !line.trim_start().starts_with('|') {
            return false;
        }
        let is_between = self.text.trim_end().ends_with(char::is_alphanumeric) && !line.trim().is_empty();
        let is_last = self.rest()[1..].lines().next().unwrap_or_default().trim().is_empty();
        match (is_between, is_last) {
            (true, true) => self.say(".", 1),
            (true, false) => self.say(",", 1),
            (false, _) => self.skip(1),
        }
        true
    }

    /// Says an address, an amount or a sign in English words.
    fn in_words(&mut self, next: char) -> bool {
        let rest = self.rest();
        let before = self.before();
        let starts_word = before.is_none_or(|before| !before.is_alphanumeric() && !"@._-/".contains(before));
        let spoken = if starts_word { address::spoken(rest).or_else(|| amount::spoken(rest)) } else { None };
        if let Some((words, length)) = spoken {
            self.say(&words, length);
            return true;
        }
        let after = rest[next.len_utf8()..].chars().next();
        let is_alone = before.is_some_and(char::is_whitespace) && after.is_some_and(char::is_whitespace);
        let words = match next {
            '&' if is_alone => "and",
            '+' if is_alone => "plus",
            '=' if is_alone => "equals",
            '%' if before.is_some_and(|before| before.is_ascii_digit()) => " percent",
            '%' if before == Some(' ')
                && self.source[..self.place - 1].ends_with(|before: char| before.is_ascii_digit()) =>
            {
                "percent"
            }
            '#' if starts_word && after.is_some_and(|after| after.is_ascii_digit()) => "number ",
            '°' if before.is_some_and(|before| before.is_ascii_digit()) => " degrees",
            _ => return false,
        };
        self.say(words, next.len_utf8());
        true
    }

    fn skip(&mut self, length: usize) {
        self.place += length;
    }

    fn copy(&mut self, length: usize) {
        let after_space = self.text.chars().next_back().is_none_or(char::is_whitespace);
        self.map.copied(self.text.len(), self.place, length, after_space);
        self.text.push_str(&self.rest()[..length]);
        self.place += length;
    }

    fn say(&mut self, words: &str, length: usize) {
        let after_space = self.text.chars().next_back().is_none_or(char::is_whitespace);
        self.map.said(self.text.len(), self.place, length, after_space);
        self.text.push_str(words);
        self.place += length;
    }
}

/// Whether a character is an emoji, only changes how another one looks, or controls something.
const fn is_silent(character: char) -> bool {
    matches!(
        character,
        '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{1f000}'..='\u{1fbff}'
            | '\u{2600}'..='\u{27bf}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{20e3}'
            | '\u{e0020}'..='\u{e007f}'
            // Invisible. One joins emoji; between letters a voice does not need it.
            | '\u{200b}' | '\u{200d}' | '\u{2060}' | '\u{feff}'
    )
}

/// The target of a link that begins here.
fn link_target(text: &str) -> Option<&str> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, _) = rest.split_once(')')?;
    (!label.contains(['[', ']', '\n']) && !target.contains(char::is_whitespace)).then_some(target)
}

/// Whether a text ends within the text of a link.
fn is_in_link(before: &str) -> bool {
    before.rfind('[').is_some_and(|begin| !before[begin..].contains([']', '\n']))
}
