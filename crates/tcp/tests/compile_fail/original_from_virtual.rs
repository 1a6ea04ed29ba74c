//! TCP's own window is not computed from a virtual one: not by arithmetic, not by conversion, not by taking it apart.

use transom_tcp::congestion::Window;
use transom_tcp::extension::safe::Effective;

pub fn grow(window: &mut Window, effective: Effective<u64>) {
    window.cwnd = effective + 1; //~ E0369
    window.cwnd = 1 + effective; //~ E0277
    window.cwnd = effective; //~ E0308
    window.ssthresh = effective.into(); //~ E0277
    window.cwnd_cnt = effective.0; //~ E0616
    window.cwnd += effective; //~ E0277
    // To compare with it, and to ask what is left of it, is what it is for.
    if effective.is_below(window.cwnd) && effective.left_after(window.cwnd) == 0 {
        window.cwnd_cnt = 0;
    }
}
