//! Only the one place that coerces a request into its safe range makes a value that is used.

use transom_tcp::extension::safe::Effective;

pub fn forge(effective: Effective<u64>) -> Effective<u64> {
    let effective: Effective<u64> = Effective(1 << 40); //~ E0423
    let effective: Effective<u64> = Effective { 0: 1 << 40 }; //~ E0451
    let effective: Effective<u64> = Effective::new(1 << 40); //~ E0624
    let effective: Effective<u64> = (1u64 << 40).into(); //~ E0277
    let effective: Effective<u64> = Default::default(); //~ E0277
    effective
}
