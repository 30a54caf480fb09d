//! "Did you mean": the nearest known word.

/// Longer words are not compared; nobody meant a known one.
const LONGEST: usize = 40;

/// The known word nearest to `word`, if it is near enough to be a slip.
pub(crate) fn did_you_mean<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let word = fold(word);
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&word, &fold(known)), *known))
        .filter(|(distance, known)| {
            *distance <= known.len().max(word.len()) / 3
                || (word.len() >= 4 && fold(known).starts_with(&word))
        })
        .min()
        .map(|(_, known)| known)
}

/// Case and the two dashes do not tell words apart.
fn fold(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

/// `a, b and c`.
pub(crate) fn list(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}
