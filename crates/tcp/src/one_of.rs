//! A unit as one type: an enum of its choices, and the trait of all of them for it.
//!
//! A connection has each unit in place, as an enum, and not behind a pointer: calls can be inlined, and an idle connection stays small. Every function of
//! the trait then calls the same function of the choice that is there. [`one_of!`] writes these calls, from the signatures. List functions with
//! a default too. If one is missing, the compiler is silent, and the default runs instead of the choice's own.

/// Defines an enum of units, and implements their trait for it. `enum UNIT as TRAIT` is that; `enum CHOICES as TRAIT for UNIT` implements it for
/// `UNIT(CHOICES)`, which keeps the choices private.
macro_rules! one_of {
    (@functions $enum:ident, $place:ident, $role:ident for $unit:ident, $choices:tt,
        $(fn $name:ident $arguments:tt $(-> $result:ty)?;)+) => {
        impl $role for $unit {
            $(one_of! { @function $enum, $place, $choices, $name $arguments $(-> $result)? })+
        }
    };
    (@function $enum:ident, $place:ident, $choices:tt,
        $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?) => {
        #[inline]
        fn $name(&self $(, $argument: $type)*) $(-> $result)? {
            one_of!(@call $enum, $place [&] self, $choices, $name($($argument),*))
        }
    };
    (@function $enum:ident, $place:ident, $choices:tt,
        $name:ident(&mut self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?) => {
        #[inline]
        fn $name(&mut self $(, $argument: $type)*) $(-> $result)? {
            one_of!(@call $enum, $place [&mut] self, $choices, $name($($argument),*))
        }
    };
    (@call $enum:ident, whole $borrowed:tt $self:ident, [$($choice:ident)+], $name:ident $arguments:tt) => {
        match $self {
            $($enum::$choice(one) => one.$name $arguments,)+
        }
    };
    (@call $enum:ident, inner [$($borrowed:tt)+] $self:ident, [$($choice:ident)+], $name:ident $arguments:tt) => {
        match $($borrowed)+ $self.0 {
            $($enum::$choice(one) => one.$name $arguments,)+
        }
    };
    ($(#[$about:meta])* $visible:vis enum $unit:ident as $role:ident {
        $($(#[$what:meta])* $choice:ident($type:ty),)+
    } $($functions:tt)+) => {
        $(#[$about])*
        $visible enum $unit {
            $($(#[$what])* $choice($type),)+
        }
        one_of! { @functions $unit, whole, $role for $unit, [$($choice)+], $($functions)+ }
    };
    ($(#[$about:meta])* $visible:vis enum $choices:ident as $role:ident for $unit:ident {
        $($(#[$what:meta])* $choice:ident($type:ty),)+
    } $($functions:tt)+) => {
        $(#[$about])*
        $visible enum $choices {
            $($(#[$what])* $choice($type),)+
        }
        one_of! { @functions $choices, inner, $role for $unit, [$($choice)+], $($functions)+ }
    };
}

pub(crate) use one_of;
