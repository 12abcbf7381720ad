//! Enums with a fixed name per variant, used in JSON, SQL and on the command line.

/// Defines an enum whose variants serialize, print and parse by a fixed name. The macro matches the name as `tt`,
/// because a derive macro sees a `literal` fragment as a token group and not as a literal.
#[macro_export]
macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $word:tt,)+ }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
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

/// Like [`named_enum`], for the enums of this crate. With the feature `schema`, the enum also derives its schemas.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident { $($variants:tt)+ }) => {
        $crate::named_enum! {
            $(#[$doc])*
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
            $name { $($variants)+ }
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
