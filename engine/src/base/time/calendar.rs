//! The Gregorian calendar for the years 0 to 9999.
//!
//! Internally, years start in March, so that the leap day is the last day of the year and the lengths of months follow one
//! pattern. 400 years (an era) always have the same number of days.

/// 1 January of the year 0, in days since 1970.
pub(super) const FIRST_DAY: i64 = -719_528;
/// 31 December of the year 9999.
pub(super) const LAST_DAY: i64 = 2_932_896;

const ERA_DAYS: i64 = 146_097;
const DAYS_FROM_YEAR_0_MARCH: i64 = 719_468;

/// Whether the date exists.
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

/// Year, month and day of a day since 1970.
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_FROM_YEAR_0_MARCH;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The days from 1970 to an existing date.
pub(super) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA_DAYS + day_of_era - DAYS_FROM_YEAR_0_MARCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_days_are_consecutive_dates() {
        let mut days = FIRST_DAY..=LAST_DAY;
        for year in 0..=9999 {
            for month in 1..=12 {
                for day in (1..=31).filter(|day| is_date(year, month, *day)) {
                    let number = days.next().unwrap();
                    assert_eq!(date(number), (year, month, day));
                    assert_eq!(day_number(year, month, day), number);
                }
            }
        }
        assert_eq!(days.next(), None);
    }

    #[test]
    fn leap_years_follow_the_gregorian_rules() {
        assert!(is_date(2024, 2, 29) && !is_date(2023, 2, 29));
        assert!(is_date(2000, 2, 29) && !is_date(1900, 2, 29));
        assert!(
            !is_date(2024, 13, 1) && !is_date(2024, 0, 1) && !is_date(2024, 4, 31) && !is_date(2024, 4, 0)
        );
    }
}
