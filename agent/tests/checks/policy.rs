use gdr_policy::{Source, load};

/// Policies: a policy, or problems that can be shown; two files with the same text are as good as one.
pub fn policy(data: &[u8]) {
    let source = |name: &str| Source {
        name: name.into(),
        text: data.to_vec(),
    };
    let once = load(&[source("policy.toml")]);
    let twice = load(&[source("policy.toml"), source("policy.d/again.toml")]);
    match (once, twice) {
        (Ok(once), Ok(twice)) => assert_eq!(once.policy, twice.policy),
        (Err(problems), Err(_)) => {
            assert!(problems.has_errors());
            for problem in problems.iter() {
                super::lines_shown(&problem.to_string());
            }
        }
        (once, twice) => panic!("{once:?}\n{twice:?}"),
    }
}
