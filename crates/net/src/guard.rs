//! Extensions that fail take no host with them: what stands around each that is attached here.
//!
//! Time passes here, and one host's connections share a lock: an extension that takes too much of it holds up all of them. So besides panics
//! ([`Guarded`]) the time of each call is looked at.

use std::sync::Arc;
use transom_extensions::Guarded;
use transom_tcp::profile::Profile;

/// A profile whose extensions are guarded.
pub(crate) fn guarded(profile: Profile) -> Profile {
    let guard = |choice: transom_tcp::extension::ExtensionChoice| {
        choice.wrapped(Guarded::boxed_by_the_clock)
    };
    let extensions = profile.extensions.into_iter().map(guard).collect();
    Profile { extensions, ..profile }
}

/// The same, of a shared one: most have no extensions and stay as they are.
pub(crate) fn guarded_shared(profile: Arc<Profile>) -> Arc<Profile> {
    if profile.extensions.is_empty() {
        return profile;
    }
    Arc::new(guarded(Arc::unwrap_or_clone(profile)))
}
