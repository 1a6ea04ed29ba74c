//! Enums whose values have names: the name stands with the value, so that no other list has to agree.

/// Defines an enum from values and names, with all of its values, and the way from a value to its name and back.
macro_rules! named {
    ($(#[$about:meta])* $visible:vis enum $enum:ident {
        $($(#[$what:meta])* $value:ident: $name:literal,)+
    }) => {
        $(#[$about])*
        $visible enum $enum {
            $($(#[$what])* $value,)+
        }

        impl $enum {
            /// All of them, in order.
            pub const ALL: [$enum; [$($name),+].len()] = [$($enum::$value),+];

            /// Its name, where people read and write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($enum::$value => $name,)+
                }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

pub(crate) use named;
