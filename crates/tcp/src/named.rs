//! Names of an enum's values, for whoever reads and writes them: one list, and not one for each direction.

/// Gives an enum all of its values, and the ways from a value to its name and back; with a second text for each value, what is displayed of it. The
/// compiler refuses a list that lacks one.
macro_rules! named {
    ($enum:ident: $($value:ident = $name:literal, $displayed:literal;)+) => {
        named! { $enum: $($value = $name,)+ }

        impl core::fmt::Display for $enum {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    $($enum::$value => $displayed,)+
                })
            }
        }
    };
    ($enum:ident: $($value:ident = $name:literal,)+) => {
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
