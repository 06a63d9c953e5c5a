//! Dates in HTTP headers, such as `Retry-After`.

use crate::base::time::calendar::{day_number, is_date};
use crate::base::time::digits;
use crate::base::time::months::MONTHS_SHORT;
use crate::base::time::rfc3339::{minutes_east, seconds};

/// `Sun, 06 Nov 1994 08:49:37 GMT` as milliseconds since 1970; `None` for any other text. As in e-mail, the zone may be an
/// offset and the day of the week may be missing; it is not checked.
pub fn from_http_date(text: &str) -> Option<i64> {
    let date = match text.split_once(',') {
        Some((weekday, date)) if weekday.len() == 3 => date,
        Some(_) => return None,
        None => text,
    };
    let mut words = date.split_ascii_whitespace();
    let day = words.next().filter(|day| day.len() <= 2).and_then(digits)?;
    let name = words.next()?;
    let month = (1..).zip(MONTHS_SHORT).find(|(_, month)| month.eq_ignore_ascii_case(name))?.0;
    let year = words.next().filter(|year| year.len() == 4).and_then(digits)?;
    let seconds = seconds(words.next()?)?;
    let minutes = match words.next()? {
        "GMT" | "UTC" | "UT" => 0,
        offset => minutes_east(offset)?,
    };
    let is_date = is_date(year, month, day) && words.next().is_none();
    is_date.then(|| (day_number(year, month, day) * 24 * 60 * 60 + seconds - minutes * 60) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_http_dates() {
        let ms = Some(784_111_777_000);
        for good in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "6 nov 1994 08:49:37 UTC",
            "Sun, 6 Nov 1994 10:49:37 +0200",
            "Mon, 06 Nov 1994 08:49:37 Z",
        ] {
            assert_eq!(from_http_date(good), ms, "{good}");
        }
        assert_eq!(from_http_date("Thu, 29 Feb 2024 00:00:00 GMT"), crate::base::time::from("2024-02-29"));
    }

    #[test]
    fn rejects_other_texts() {
        for bad in [
            "",
            ",",
            "Sun, 99 Nov 1994",
            "Thu, 29 Feb 2023 00:00:00 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 EST",
            "Sun, 06 Nov 1994 08:49:37 GMT now",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Brumaire 1994 08:49:37 GMT",
        ] {
            assert_eq!(from_http_date(bad), None, "{bad}");
        }
    }
}
