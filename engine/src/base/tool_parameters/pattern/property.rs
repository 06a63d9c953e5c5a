//! Unicode character properties. One that follows from categories has no table of its own: each is 2 KB of the gzipped
//! Worker.

use icu_properties::props::{
    Alphabetic, BinaryProperty, Emoji, EmojiComponent, EmojiModifier, EmojiModifierBase, EmojiPresentation,
    ExtendedPictographic, GeneralCategory, GeneralCategoryGroup, Ideographic, Lowercase, RegionalIndicator,
    Script,
};
use icu_properties::{CodePointMapData, CodePointSetData, PropertyParser};

use crate::base::tool_parameters::pattern::set::Set;

/// Most properties in one pattern; the ranges of one take up to 6 KB.
pub(super) const PROPERTIES_MAX: usize = 64;

/// The characters with a property: `Letter`, `gc=Lu`, `Script=Greek`, `Emoji`. Case and underscores are ignored, and a
/// script may be named without `Script=`.
pub(super) fn named(name: &str) -> Option<Set> {
    match name.split_once('=') {
        None => general_category(name).or_else(|| binary(name)).or_else(|| script(name)),
        Some((property, value)) => match plain(property).as_str() {
            "gc" | "generalcategory" => general_category(value),
            "sc" | "script" => script(value),
            _ => None,
        },
    }
}

/// The names of the binary properties, for a message.
pub(super) fn binary_names() -> String {
    BINARY.map(|(name, ..)| name).join(", ")
}

type Ranges = fn() -> Vec<(u32, u32)>;

/// Name, short name, ranges.
const BINARY: [(&str, &str, Ranges); 19] = [
    ("Any", "Any", || vec![(0, char::MAX.into())]),
    ("ASCII", "ASCII", || vec![(0, 0x7f)]),
    ("ASCII_Hex_Digit", "AHex", || HEX_DIGITS.to_vec()),
    ("Alphabetic", "Alpha", ranges::<Alphabetic>),
    ("Assigned", "Assigned", || {
        of_categories(GeneralCategoryGroup::from(GeneralCategory::Unassigned).complement())
    }),
    ("Emoji", "Emoji", ranges::<Emoji>),
    ("Emoji_Component", "EComp", ranges::<EmojiComponent>),
    ("Emoji_Modifier", "EMod", ranges::<EmojiModifier>),
    ("Emoji_Modifier_Base", "EBase", ranges::<EmojiModifierBase>),
    ("Emoji_Presentation", "EPres", ranges::<EmojiPresentation>),
    ("Extended_Pictographic", "ExtPict", ranges::<ExtendedPictographic>),
    ("Hex_Digit", "Hex", || {
        // In full width, too.
        HEX_DIGITS
            .into_iter()
            .flat_map(|(first, last)| [(first, last), (first + 0xfee0, last + 0xfee0)])
            .collect()
    }),
    ("ID_Continue", "IDC", identifier_continue),
    ("ID_Start", "IDS", identifier_start),
    ("Ideographic", "Ideo", ranges::<Ideographic>),
    ("Lowercase", "Lower", ranges::<Lowercase>),
    ("Regional_Indicator", "RI", ranges::<RegionalIndicator>),
    ("Uppercase", "Upper", uppercase),
    ("White_Space", "space", || WHITE_SPACE.to_vec()),
];

fn binary(name: &str) -> Option<Set> {
    let name = plain(name);
    let (.., ranges) = BINARY.iter().find(|(long, short, _)| plain(long) == name || plain(short) == name)?;
    Some(Set::of(ranges()))
}

fn general_category(name: &str) -> Option<Set> {
    let group = PropertyParser::<GeneralCategoryGroup>::new().get_loose(name)?;
    Some(Set::of(of_categories(group)))
}

fn script(name: &str) -> Option<Set> {
    let script = PropertyParser::<Script>::new().get_loose(name)?;
    let ranges = CodePointMapData::<Script>::new().iter_ranges_for_value(script);
    Some(Set::of(ranges.map(|range| (*range.start(), *range.end())).collect()))
}

fn of_categories(group: GeneralCategoryGroup) -> Vec<(u32, u32)> {
    let ranges = CodePointMapData::<GeneralCategory>::new().iter_ranges_for_group(group);
    ranges.map(|range| (*range.start(), *range.end())).collect()
}

fn ranges<P: BinaryProperty>() -> Vec<(u32, u32)> {
    CodePointSetData::new::<P>().iter_ranges().map(|range| (*range.start(), *range.end())).collect()
}

const HEX_DIGITS: [(u32, u32); 3] = [(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)];

const WHITE_SPACE: [(u32, u32); 10] = [
    (0x9, 0xd),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xa0, 0xa0),
    (0x1680, 0x1680),
    (0x2000, 0x200a),
    (0x2028, 0x2029),
    (0x202f, 0x202f),
    (0x205f, 0x205f),
    (0x3000, 0x3000),
];

/// Upper-case letters and `Other_Uppercase`.
fn uppercase() -> Vec<(u32, u32)> {
    const OTHER: [(u32, u32); 5] = [
        (0x2160, 0x216f),
        (0x24b6, 0x24cf),
        (0x1_f130, 0x1_f149),
        (0x1_f150, 0x1_f169),
        (0x1_f170, 0x1_f189),
    ];
    let letters = of_categories(GeneralCategory::UppercaseLetter.into());
    letters.into_iter().chain(OTHER).collect()
}

/// `ID_Start`, by its definition (Unicode, UAX 31): letters, letter numbers and `Other_ID_Start`, without
/// `Pattern_Syntax`.
fn identifier_start() -> Vec<(u32, u32)> {
    const OTHER: [(u32, u32); 4] = [(0x1885, 0x1886), (0x2118, 0x2118), (0x212e, 0x212e), (0x309b, 0x309c)];
    const PATTERN_SYNTAX: (u32, u32) = (0x2e2f, 0x2e2f);
    let letters = GeneralCategoryGroup::Letter.union(GeneralCategory::LetterNumber.into());
    let mut ranges = of_categories(letters);
    ranges.retain(|range| *range != PATTERN_SYNTAX);
    ranges.extend(OTHER);
    ranges
}

/// `ID_Continue`: also marks, digits, connectors and `Other_ID_Continue`.
fn identifier_continue() -> Vec<(u32, u32)> {
    const OTHER: [(u32, u32); 7] = [
        (0xb7, 0xb7),
        (0x387, 0x387),
        (0x1369, 0x1371),
        (0x19da, 0x19da),
        (0x200c, 0x200d),
        (0x30fb, 0x30fb),
        (0xff65, 0xff65),
    ];
    let further = [
        GeneralCategory::NonspacingMark,
        GeneralCategory::SpacingMark,
        GeneralCategory::DecimalNumber,
        GeneralCategory::ConnectorPunctuation,
    ];
    let further = further.into_iter().flat_map(|category| of_categories(category.into()));
    identifier_start().into_iter().chain(further).chain(OTHER).collect()
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use icu_properties::props::{AsciiHexDigit, HexDigit, IdContinue, IdStart, Uppercase, WhiteSpace};

    use super::*;

    #[test]
    fn what_is_derived_equals_the_table() {
        let tables: [(&str, Vec<(u32, u32)>); 6] = [
            ("ASCII_Hex_Digit", ranges::<AsciiHexDigit>()),
            ("Hex_Digit", ranges::<HexDigit>()),
            ("ID_Continue", ranges::<IdContinue>()),
            ("ID_Start", ranges::<IdStart>()),
            ("Uppercase", ranges::<Uppercase>()),
            ("White_Space", ranges::<WhiteSpace>()),
        ];
        for (name, table) in tables {
            let (ours, theirs) = (named(name).unwrap(), Set::of(table));
            assert_eq!(ours.ranges(), theirs.ranges(), "{name}");
        }
    }
}
