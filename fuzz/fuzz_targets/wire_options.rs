//! The TCP option codec: both readers agree, and lists and values survive being written and read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use transom_wire::*;

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(40)];
    let listed: Vec<_> = OptionIter::new(bytes).collect();
    assert!(listed.len() <= bytes.len());

    // What is listed up to a defect can always be written, and is the same when read again.
    let mut out = [0xee; 40];
    let len = emit_options(&mut out, listed.iter().copied()).unwrap();
    assert!(len.is_multiple_of(4));
    assert!(OptionIter::new(&out[..len]).eq(listed.iter().copied()));
    // Byte for byte, but for what follows the end of the list.
    let plain: usize = out[..len].iter().zip(bytes).take_while(|(a, b)| a == b).count();
    let ended = out[plain..len].iter().all(|&byte| byte == 0);
    assert!(plain == len.min(bytes.len()) || ended);

    let Ok(options) = Options::parse(bytes) else { return };
    // Fields and list tell the same: the first of each kind.
    let first = |wanted: fn(&TcpOption<'_>) -> bool| listed.iter().copied().find(wanted);
    assert_eq!(options.mss.map(TcpOption::Mss), first(|o| matches!(o, TcpOption::Mss(_))));
    assert_eq!(
        options.window_scale.map(TcpOption::WindowScale),
        first(|o| matches!(o, TcpOption::WindowScale(_)))
    );
    assert_eq!(
        options.sack_permitted.then_some(TcpOption::SackPermitted),
        first(|o| matches!(o, TcpOption::SackPermitted))
    );
    assert_eq!(
        options.timestamps.map(TcpOption::Timestamps),
        first(|o| matches!(o, TcpOption::Timestamps(_)))
    );
    assert_eq!(
        (!options.sack.is_empty()).then_some(TcpOption::Sack(options.sack)),
        first(|o| matches!(o, TcpOption::Sack(_)))
    );
    assert_eq!(
        options.user_timeout.map(TcpOption::UserTimeout),
        first(|o| matches!(o, TcpOption::UserTimeout(_)))
    );
    assert_eq!(
        options.fast_open.map(TcpOption::FastOpen),
        first(|o| matches!(o, TcpOption::FastOpen(_)))
    );
    assert_eq!(
        options.partial.map(TcpOption::Partial),
        first(|o| matches!(o, TcpOption::Partial(_)))
    );

    match options.emit(&mut out) {
        Ok(len) => {
            assert_eq!(len, options.encoded_len());
            assert_eq!(Options::parse(&out[..len]), Ok(options));
        }
        // Aligned, they may need more than the 40 bytes there are.
        Err(error) => {
            assert_eq!(error, Error::TooLong);
            assert!(options.encoded_len() > 40);
        }
    }
});
