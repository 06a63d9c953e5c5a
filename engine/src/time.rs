//! Times on the wire, RFC 3339 UTC with milliseconds, and the calendar they need. By hand, because
//! that is all of a calendar that is used, and a library of them is 20 KB of a Worker.

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The years that four digits can say, in days since 1970.
const FIRST_DAY: i64 = -719_528;
const LAST_DAY: i64 = 2_932_896;

/// `1750000000123` → `2025-06-15T15:06:40.123Z`. A time before the year 0 or after 9999 is told as the
/// nearest one within.
pub fn format(ms: i64) -> String {
    let ms = ms.clamp(FIRST_DAY * DAY_MS, (LAST_DAY + 1) * DAY_MS - 1);
    let (year, month, day) = date(ms.div_euclid(DAY_MS));
    let ms = ms.rem_euclid(DAY_MS);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

/// An optional time.
pub fn format_optional(ms: Option<i64>) -> Option<String> {
    ms.map(format)
}

/// Whether there is such a day.
pub fn is_date(year: i64, month: i64, day: i64) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=12).contains(&month) && (1..=days).contains(&day)
}

/// Year, month and day of a day since 1970. Years begin in March here, so that the leap day is the
/// last one and months follow one pattern; 400 of them, an era, always have the same days.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_FROM_YEAR_0_MARCH: i64 = 719_468;
    const ERA_DAYS: i64 = 146_097;
    let days = days + DAYS_FROM_YEAR_0_MARCH;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_written() {
        assert_eq!(format(1_750_000_000_123), "2025-06-15T15:06:40.123Z");
        assert_eq!(format(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(format(951_782_400_000), "2000-02-29T00:00:00.000Z");
    }

    #[test]
    fn what_no_four_digits_can_say_is_the_nearest_that_they_can() {
        assert_eq!(format(i64::MIN), "0000-01-01T00:00:00.000Z");
        assert_eq!(format(i64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_the_calendar_follows_the_one_before() {
        let mut days = FIRST_DAY..=LAST_DAY;
        for year in 0..=9999 {
            for month in 1..=12 {
                for day in (1..=31).filter(|day| is_date(year, month, *day)) {
                    assert_eq!(date(days.next().unwrap()), (year, month, day));
                }
            }
        }
        assert_eq!(days.next(), None);
        assert!(
            is_date(2024, 2, 29) && !is_date(2023, 2, 29) && is_date(2000, 2, 29) && !is_date(1900, 2, 29)
        );
        assert!(
            !is_date(2024, 13, 1) && !is_date(2024, 0, 1) && !is_date(2024, 4, 31) && !is_date(2024, 4, 0)
        );
    }
}
