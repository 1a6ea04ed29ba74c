//! Setters of structs that others fill and that may grow.

/// Writes a setter for each field that is named.
///
/// The struct has public fields, and `#[non_exhaustive]`: whoever reads it names the fields, and nobody outside its crate writes all of them in a
/// literal. So a field can be added later, and no program breaks. `const` in front of the type makes the setters `const`, which works
/// where no field has to be dropped.
///
/// ```
/// #[derive(Default)]
/// #[non_exhaustive]
/// pub struct Limits {
///     /// In bytes.
///     pub memory: usize,
/// }
///
/// transom_base::setters! {
///     Limits:
///     with_memory = memory: usize,
/// }
///
/// assert_eq!(Limits::default().with_memory(4096).memory, 4096);
/// ```
#[macro_export]
macro_rules! setters {
    (const $type:ident: $($name:ident = $field:ident: $value:ty,)*) => {
        impl $type {$(
            #[doc = concat!("Sets [`", stringify!($field), "`](", stringify!($type), "::", stringify!($field), ").")]
            #[must_use]
            pub const fn $name(mut self, $field: $value) -> Self {
                self.$field = $field;
                self
            }
        )*}
    };
    ($type:ident: $($name:ident = $field:ident: $value:ty,)*) => {
        impl $type {$(
            #[doc = concat!("Sets [`", stringify!($field), "`](", stringify!($type), "::", stringify!($field), ").")]
            #[must_use]
            pub fn $name(mut self, $field: $value) -> Self {
                self.$field = $field;
                self
            }
        )*}
    };
}
