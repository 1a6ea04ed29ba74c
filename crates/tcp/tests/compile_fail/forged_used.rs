//! Only the one place that coerces a request into its safe range makes a value that is used.

use transom_tcp::extension::safe::Used;

pub fn forge(used: Used<u64>) -> Used<u64> {
    let used: Used<u64> = Used(1 << 40); //~ E0423
    let used: Used<u64> = Used { 0: 1 << 40 }; //~ E0451
    let used: Used<u64> = Used::new(1 << 40); //~ E0624
    let used: Used<u64> = (1u64 << 40).into(); //~ E0277
    let used: Used<u64> = Default::default(); //~ E0277
    used
}
