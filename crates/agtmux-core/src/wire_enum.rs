//! Closed sets of words.

/// A closed set of words that reads and prints the way it goes over the wire. A word is a `tt`: derives that get it as a
/// `literal` see a group, and not the word in it.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $word:tt,)+ }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::wire_enum::UnknownVariantError;

            fn from_str(s: &str) -> Result<Self, $crate::wire_enum::UnknownVariantError> {
                Self::ALL.iter().copied().find(|v| v.as_str() == s).ok_or_else(|| $crate::wire_enum::UnknownVariantError {
                    given: s.to_owned(),
                    known: &[$($word,)+],
                })
            }
        }
    };
}

pub(crate) use wire_enum;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not one of {}", known.join(", "))]
pub struct UnknownVariantError {
    pub given: String,
    pub known: &'static [&'static str],
}
