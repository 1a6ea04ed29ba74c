//! The object and its sources.

#[test]
fn the_object_was_compiled_from_the_sources() {
    transom_testkit::digests::assert_unchanged(
        include_str!("../../../bpf/tcpk.sha256"),
        &[
            ("types.h", include_bytes!("../../../bpf/types.h")),
            ("shared.h", include_bytes!("../../../bpf/shared.h")),
            ("packet.h", include_bytes!("../../../bpf/packet.h")),
            ("arrival.h", include_bytes!("../../../bpf/arrival.h")),
            ("kernel.h", include_bytes!("../../../bpf/kernel.h")),
            ("demux.h", include_bytes!("../../../bpf/demux.h")),
            ("guard.h", include_bytes!("../../../bpf/guard.h")),
            ("tcpk.bpf.c", include_bytes!("../../../bpf/tcpk.bpf.c")),
            ("tcpk.bpf.o", &super::OBJECT.0),
        ],
    );
}
