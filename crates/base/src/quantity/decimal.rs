//! A decimal number read from text, scaled to an integer without floating point.

/// `mantissa × 10^exponent`, exactly as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    mantissa: u64,
    exponent: i32,
}

impl Decimal {
    /// Splits `text` into a leading unsigned decimal number and the trimmed rest (its unit). `None` if the
    /// text does not start with one, or if it has more significant digits than 64 bits hold.
    pub fn split(text: &str) -> Option<(Decimal, &str)> {
        let text = text.trim();
        let mut mantissa: u64 = 0;
        let mut exponent: i32 = 0;
        let mut digits = 0;
        let mut in_fraction = false;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some(digit) = c.to_digit(10) {
                mantissa = mantissa.checked_mul(10)?.checked_add(u64::from(digit))?;
                exponent -= i32::from(in_fraction);
                digits += 1;
            } else if c == '.' && !in_fraction {
                in_fraction = true;
            } else {
                break;
            }
            rest = &rest[c.len_utf8()..];
        }
        if digits == 0 {
            return None;
        }
        if let Some((written, after)) = split_exponent(rest) {
            exponent = exponent.checked_add(written)?;
            rest = after;
        }
        Some((Decimal { mantissa, exponent }, rest.trim()))
    }

    /// The value divided by a hundred, for a percentage.
    pub const fn hundredth(self) -> Decimal {
        Decimal { mantissa: self.mantissa, exponent: self.exponent.saturating_sub(2) }
    }

    /// Whether the value is zero.
    pub(crate) const fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The value times `factor`, rounded to the nearest integer (halves up); `None` if it does not fit, or if nothing is left of
    /// a number that is not zero.
    pub fn scaled(self, factor: u64) -> Option<u64> {
        // At most 2^128 - 2^65 + 1: the product of two 64-bit numbers always fits.
        let product = u128::from(self.mantissa) * u128::from(factor);
        if product == 0 {
            return Some(0);
        }
        let scaled = match u32::try_from(self.exponent) {
            Ok(up) => product.checked_mul(10u128.checked_pow(up)?)?,
            Err(_) => match 10u128.checked_pow(self.exponent.unsigned_abs()) {
                Some(divisor) => {
                    let (quotient, remainder) = (product / divisor, product % divisor);
                    quotient + u128::from(remainder >= divisor - remainder)
                }
                // The divisor exceeds 3·10^38, hence the product's every possible value.
                None => 0,
            },
        };
        u64::try_from(scaled).ok().filter(|scaled| *scaled > 0)
    }
}

/// Splits "e-5 rest" into -5 and " rest". An `e` without digits belongs to the unit.
fn split_exponent(text: &str) -> Option<(i32, &str)> {
    let after = text.strip_prefix(['e', 'E'])?;
    let (negative, digits) = match after.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, after.strip_prefix('+').unwrap_or(after)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let value: i32 = digits.get(..end)?.parse().ok()?;
    Some((if negative { -value } else { value }, digits.get(end..)?))
}
