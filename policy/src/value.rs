//! From one spanned TOML value to one typed value, with every problem found on the way.

use std::ops::{Range, RangeInclusive};

use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};

use crate::check;
use crate::problems::{Problem, Problems};
use crate::types::{Invalid, Text};

/// A TOML value and the bytes it takes.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// What is known while a value is read.
pub(crate) struct Context<'a> {
    pub(crate) key: &'static str,
    /// The spans of the entries of a list that were read.
    pub(crate) entries: Vec<Range<usize>>,
    /// Whether something was refused.
    pub(crate) failed: bool,
    problems: &'a mut Problems,
}

impl<'a> Context<'a> {
    pub(crate) fn new(key: &'static str, problems: &'a mut Problems) -> Self {
        Self {
            key,
            entries: Vec::new(),
            failed: false,
            problems,
        }
    }

    /// Reports that the value, or a part of it, is refused.
    pub(crate) fn refuse(&mut self, problem: Problem) {
        self.failed = true;
        self.problems.push(problem.key(self.key));
    }

    /// Reports a value of the right type that is not allowed.
    fn invalid(&mut self, value: &Value<'_>, why: Invalid) {
        let problem = Problem::error(value.span(), format!("{}: {}", self.key, why.message));
        self.refuse(Problem {
            help: why.help,
            ..problem
        });
    }

    /// Reports a value of the wrong type.
    fn wrong_type(&mut self, value: &Value<'_>, expected: &str) {
        let found = article(value.get_ref().type_str());
        let message = format!("{} must be {expected}, found {found}", self.key);
        self.refuse(Problem::error(value.span(), message).label(format!("expected {expected}")));
    }
}

/// A type that a key can have. `None` means that nothing could be read, and why has been reported.
pub(crate) trait FromToml: Sized {
    /// The type, for messages about a value and about the entries of a list.
    const EXPECTED: &'static str;
    const EXPECTED_LIST: &'static str;

    fn from_toml(value: &Value<'_>, context: &mut Context<'_>) -> Option<Self>;
}

impl FromToml for bool {
    const EXPECTED: &'static str = "true or false";
    const EXPECTED_LIST: &'static str = "an array of booleans";

    fn from_toml(value: &Value<'_>, context: &mut Context<'_>) -> Option<Self> {
        let found = value.get_ref().as_bool();
        if found.is_none() {
            context.wrong_type(value, Self::EXPECTED);
        }
        found
    }
}

/// Whole numbers are taken as well: `min_gbps = 380`.
impl FromToml for f64 {
    const EXPECTED: &'static str = "a number";
    const EXPECTED_LIST: &'static str = "an array of numbers";

    fn from_toml(value: &Value<'_>, context: &mut Context<'_>) -> Option<Self> {
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => i32::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .map(Self::from),
            _ => {
                context.wrong_type(value, Self::EXPECTED);
                return None;
            }
        };
        let finite = number.filter(|number: &Self| number.is_finite());
        if finite.is_none() {
            context.invalid(
                value,
                Invalid::new("the number must be finite and of a usual size"),
            );
        }
        finite
    }
}

impl<T: Text> FromToml for T {
    const EXPECTED: &'static str = "a string";
    const EXPECTED_LIST: &'static str = "an array of strings";

    fn from_toml(value: &Value<'_>, context: &mut Context<'_>) -> Option<Self> {
        let Some(text) = value.get_ref().as_str() else {
            context.wrong_type(value, Self::EXPECTED);
            return None;
        };
        text.parse().map_err(|why| context.invalid(value, why)).ok()
    }
}

impl<T: FromToml> FromToml for Vec<T> {
    const EXPECTED: &'static str = T::EXPECTED_LIST;
    const EXPECTED_LIST: &'static str = "an array of arrays";

    fn from_toml(value: &Value<'_>, context: &mut Context<'_>) -> Option<Self> {
        let Some(array) = value.get_ref().as_array() else {
            context.wrong_type(value, Self::EXPECTED);
            return None;
        };
        if array.len() > check::LIST {
            let why = format!(
                "a list of {} entries, the limit is {}",
                array.len(),
                check::LIST
            );
            context.invalid(value, Invalid::new(why));
            return None;
        }
        // The good entries are kept beside a bad one, so that they are judged in the same run.
        let mut list = Vec::new();
        for entry in array {
            if let Some(item) = T::from_toml(entry, context) {
                list.push(item);
                context.entries.push(entry.span());
            }
        }
        Some(list)
    }
}

impl<T: FromToml> FromToml for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const EXPECTED_LIST: &'static str = T::EXPECTED_LIST;

    fn from_toml(value: &Value<'_>, context: &mut Context<'_>) -> Option<Self> {
        T::from_toml(value, context).map(Some)
    }
}

/// A whole number in a range.
pub(crate) fn whole_number(
    value: &Value<'_>,
    range: &RangeInclusive<u32>,
    context: &mut Context<'_>,
) -> Option<u32> {
    let DeValue::Integer(integer) = value.get_ref() else {
        context.wrong_type(value, "a whole number");
        return None;
    };
    let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
    let inside = number.filter(|number| range.contains(number));
    if inside.is_none() {
        context.invalid(value, Invalid::new(check::outside(integer, range)));
    }
    inside
}

/// Problem for something other than a table where a table belongs.
pub(crate) fn not_a_table(path: &str, value: &Value<'_>) -> Problem {
    let entries = value
        .get_ref()
        .as_array()
        .filter(|array| !array.is_empty() && array.iter().all(|entry| entry.get_ref().is_table()));
    let problem = if entries.is_some() {
        Problem::error(
            value.span(),
            format!("{path} is one table, not an array of tables"),
        )
    } else {
        let found = article(value.get_ref().type_str());
        Problem::error(
            value.span(),
            format!("{path} must be a table, found {found}"),
        )
        .label("expected a table")
    };
    problem
        .help(format!(
            "write [{path}] on a line of its own, and its keys below it"
        ))
        .key(path)
}

/// The key of the same name that stands before `offset`, nearest to it: the first definition of
/// what is defined again there.
pub(crate) fn defined_before(table: &DeTable<'_>, name: &str, offset: usize) -> Option<usize> {
    let mut nearest = None;
    for (key, value) in table {
        if key.get_ref() == name && key.span().start < offset {
            nearest = nearest.max(Some(key.span().start));
        }
        if let DeValue::Table(inner) = value.get_ref() {
            nearest = nearest.max(defined_before(inner, name, offset));
        }
    }
    nearest
}

fn article(type_name: &str) -> String {
    let article = if type_name.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {type_name}")
}
