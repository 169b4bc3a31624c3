//! Enums with a text for people.

/// Makes an enum of words. Each is shown as the text that stands beside it.
macro_rules! worded {
    ($(#[$meta:meta])* pub enum $type:ident {
        $($(#[$doc:meta])* $word:ident => $text:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$doc])* $word,)+
        }

        impl $type {
            /// Every one, in this order.
            pub const ALL: &'static [Self] = &[$(Self::$word),+];
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$word => $text,)+
                })
            }
        }
    };
}
pub(crate) use worded;
