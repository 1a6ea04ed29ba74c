//! Dates as HTTP writes them: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).

use std::time::{SystemTime, UNIX_EPOCH};

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The date and time `seconds` after 1970 began.
pub(super) fn http_date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let weekday = WEEKDAYS[(days % 7) as usize];
    let (year, month, day) = civil(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let month = MONTHS.get(month).unwrap_or(&"Jan");
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{:02} GMT", second % 60)
}

/// Now.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    http_date(since.as_secs())
}

/// Year, month (from 0) and day (from 1) of the day `days` after 1 January 1970.
fn civil(days: u64) -> (u64, usize, u64) {
    // Counted from 1 March of the year 0, so that the leap day is a year's last: 146,097 days make 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era + u64::from(month >= 10);
    (year, ((month + 2) % 12) as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), // the RFC's example
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (2_147_483_647, "Tue, 19 Jan 2038 03:14:07 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds), text);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = civil(0);
        for days in 1..200_000 {
            let (year, month, day) = civil(days);
            let (y, m, d) = last;
            let next_day = (year, month, day) == (y, m, d + 1);
            let next_month = day == 1 && (year * 12 + month as u64) == y * 12 + m as u64 + 1;
            assert!(next_day || (next_month && d >= 28), "{last:?} then {:?}", (year, month, day));
            last = (year, month, day);
        }
    }
}
