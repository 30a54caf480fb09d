//! The validated types: once one of these exists, its text is safe to put into a file or an argv.
//!
//! Each type takes an allow-list of characters, so quotes, blanks, control characters and shell
//! syntax cannot get through, whatever comes later.

mod acs_bit;
mod choices;
mod duration;
mod fleetlock;
mod kernel_arg;
mod name;
mod path;
mod peer;
mod selector;
mod wall_message;
mod window;

pub use acs_bit::AcsBit;
pub use choices::{
    AcsMethod, AcsScope, AfterFailure, Bake, BusyGpu, CheckGroup, Coordinator, Fallback, GdrPath,
    IommuMode,
};
pub use duration::Duration;
pub use fleetlock::{FleetlockGroup, FleetlockUrl};
pub use kernel_arg::KernelArg;
pub use name::{ModuleName, PackageName, PeermemPackage};
pub use path::FilePath;
pub use peer::Peer;
pub use selector::Selector;
pub use wall_message::WallMessage;
pub use window::{TimeZone, Window};

/// Why a text is not a value of the type that it was meant for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// What is wrong; the text is quoted, shortened and free of control characters.
    pub message: String,
    /// What to write instead, where that is known.
    pub help: Option<String>,
}

impl Invalid {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A type that the policy spells as a string.
pub(crate) trait Text: std::str::FromStr<Err = Invalid> {}

/// Gives a type with `FromStr` and `Display` its string form in serde and in the JSON schema.
macro_rules! string_form {
    ($name:ident, $description:literal, $pattern:expr) => {
        impl $crate::types::Text for $name {}

        impl TryFrom<&str> for $name {
            type Error = $crate::types::Invalid;
            fn try_from(text: &str) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": $description,
                    "pattern": $pattern,
                })
            }
        }
    };
}

/// A newtype over `String` whose text has passed `check`.
macro_rules! checked_text {
    ($(#[$meta:meta])* $name:ident, $check:path, $description:literal, $pattern:expr) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// The text as the policy spells it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::types::Invalid;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        $crate::types::string_form!($name, $description, $pattern);
    };
}

pub(crate) use {checked_text, string_form};
