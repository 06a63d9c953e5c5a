//! Unicode character properties, from the tables that international domain names need anyway.

use icu_properties::props::{
    Alphabetic, AsciiHexDigit, BinaryProperty, Emoji, EmojiComponent, EmojiModifier, EmojiModifierBase,
    EmojiPresentation, ExtendedPictographic, GeneralCategory, GeneralCategoryGroup, HexDigit, IdContinue,
    IdStart, Ideographic, Lowercase, RegionalIndicator, Script, Uppercase, WhiteSpace,
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
    ("ASCII_Hex_Digit", "AHex", ranges::<AsciiHexDigit>),
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
    ("Hex_Digit", "Hex", ranges::<HexDigit>),
    ("ID_Continue", "IDC", ranges::<IdContinue>),
    ("ID_Start", "IDS", ranges::<IdStart>),
    ("Ideographic", "Ideo", ranges::<Ideographic>),
    ("Lowercase", "Lower", ranges::<Lowercase>),
    ("Regional_Indicator", "RI", ranges::<RegionalIndicator>),
    ("Uppercase", "Upper", ranges::<Uppercase>),
    ("White_Space", "space", ranges::<WhiteSpace>),
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

fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}
