//! The number of a layer comes from attaching it: nobody detaches another's by guessing.

use transom_tcp::extension::LayerId;
use transom_tcp::time::Instant;
use transom_tcp::Connection;

pub fn detach(connection: &mut Connection, layer: LayerId) {
    let layer = LayerId(0); //~ E0423
    let layer = LayerId { 0: 0 }; //~ E0451
    let layer: LayerId = 0u32.into(); //~ E0277
    let layer: LayerId = Default::default(); //~ E0277
    connection.detach(Instant::ZERO, layer);
}
