//! TCP's own window is not computed from a virtual one: not by arithmetic, not by conversion, not by taking it apart.

use transom_tcp::congestion::Window;
use transom_tcp::extension::safe::Used;

pub fn grow(window: &mut Window, used: Used<u64>) {
    window.cwnd = used + 1; //~ E0369
    window.cwnd = 1 + used; //~ E0277
    window.cwnd = used; //~ E0308
    window.ssthresh = used.into(); //~ E0277
    window.cwnd_cnt = used.0; //~ E0616
    window.cwnd += used; //~ E0277
    // To compare with it, and to ask what is left of it, is what it is for.
    if used.is_below(window.cwnd) && used.left_after(window.cwnd) == 0 {
        window.cwnd_cnt = 0;
    }
}
