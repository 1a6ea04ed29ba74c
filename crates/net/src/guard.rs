//! Guards around extensions: an extension that fails does not stop the host.
//!
//! The connections of a host share a lock, so a slow extension delays all of them. Besides panics ([`Guarded`]), the guard limits the time
//! of each call, and of all calls of the host together ([`Budget`]).

use std::sync::Arc;
use transom_extensions::{Budget, Guarded};
use transom_tcp::Profile;
use transom_tcp::extension::{Extension, ExtensionChoice};

/// An extension that is guarded, and charged to its host's budget.
pub(crate) fn guard(
    make: impl FnOnce() -> Box<dyn Extension>,
    budget: &Arc<Budget>,
) -> Box<dyn Extension> {
    Box::new(Guarded::by_the_clock(make, Arc::clone(budget)))
}

/// A profile whose extensions are guarded.
pub(crate) fn guarded(mut profile: Profile, budget: &Arc<Budget>) -> Profile {
    let wrapped = |choice: ExtensionChoice| {
        let budget = Arc::clone(budget);
        choice.wrapped(move |make| guard(make, &budget))
    };
    profile.extensions = profile.extensions.into_iter().map(wrapped).collect();
    profile
}

/// The same, of a shared one: most have no extensions and stay as they are.
pub(crate) fn guarded_shared(profile: Arc<Profile>, budget: &Arc<Budget>) -> Arc<Profile> {
    if profile.extensions.is_empty() {
        return profile;
    }
    Arc::new(guarded(Arc::unwrap_or_clone(profile), budget))
}
