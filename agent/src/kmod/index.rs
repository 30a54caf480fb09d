//! What depmod wrote about a kernel's modules: `modules.dep`, `modules.alias`, `modules.builtin`.
//!
//! libkmod reads the binary forms of the same; depmod writes both at once.

use super::fold;

/// The three files of one kernel, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// `modules.dep`: `FILE: DEPENDENCIES`, paths from the directory unless absolute.
    pub dep: String,
    /// `modules.alias`: `alias PATTERN MODULE`.
    pub alias: String,
    /// `modules.builtin`: a path a line.
    pub builtin: String,
}

/// The module name that a file stands for, folded: `kernel/a/nvidia-peermem.ko.zst` is `nvidia_peermem`.
#[must_use]
pub fn stem(file: &str) -> Option<String> {
    let name = file.rsplit('/').next()?;
    let (stem, packing) = name.split_once(".ko")?;
    matches!(packing, "" | ".gz" | ".xz" | ".zst").then(|| fold(stem))
}

impl Index {
    /// The file of a module, as `modules.dep` has it.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&str> {
        self.files().find(|file| is(file, name))
    }

    /// All files that `modules.dep` names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let text = &self.dep;
        let mut start = 0;
        // By memchr: there are thousands of lines, most of them long.
        std::iter::from_fn(move || {
            let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
            let end = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            start += end + 1;
            let line = rest.get(..end)?;
            let colon = memchr::memchr(b':', line.as_bytes()).unwrap_or(line.len());
            line.get(..colon)
        })
    }

    /// Whether the kernel has it inside.
    #[must_use]
    pub fn is_builtin(&self, name: &str) -> bool {
        self.builtin.lines().any(|file| is(file.trim(), name))
    }

    /// The modules that claim a name as their alias.
    pub fn aliases<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.alias.lines().filter_map(move |line| {
            let (pattern, module) = line.strip_prefix("alias ")?.rsplit_once(' ')?;
            // Device ids have colons in them, and no name of a module has.
            (!pattern.contains(':') && matches(&fold(pattern), name)).then_some(module)
        })
    }
}

/// Without making a copy of each of some thousand names.
fn is(file: &str, name: &str) -> bool {
    let file = file.as_bytes();
    let base = memchr::memrchr(b'/', file).map_or(0, |slash| slash + 1);
    let base = file.get(base..).unwrap_or_default();
    let dash = |b: &u8| if *b == b'-' { b'_' } else { *b };
    let Some((stem, packing)) = base.split_at_checked(name.len()) else {
        return false;
    };
    packing.starts_with(b".ko") && stem.iter().map(dash).eq(name.as_bytes().iter().map(dash))
}

/// `fnmatch(3)` without flags, as libkmod asks it: `*`, `?` and `[...]`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    // The usual way without recursion: on a mismatch the last star takes one byte more.
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n, mut star) = (0, 0, None);
    while let Some(byte) = name.get(n) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(b'?') => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            Some(b'[') => {
                if let Some((inside, length)) = class(pattern.get(p..).unwrap_or_default(), *byte)
                    && inside
                {
                    (p, n) = (p + length, n + 1);
                    continue;
                }
            }
            Some(c) if c == byte => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            _ => {}
        }
        match star {
            Some((after, at)) => {
                star = Some((after, at + 1));
                (p, n) = (after, at + 1);
            }
            None => return false,
        }
    }
    pattern
        .get(p..)
        .unwrap_or_default()
        .iter()
        .all(|c| *c == b'*')
}

/// Whether a bracket expression has the byte, and how long the expression is.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = if negated { 2 } else { 1 };
    // A closing bracket right at the start is one of the characters.
    let end = first + 1 + pattern.get(first + 1..)?.iter().position(|c| *c == b']')?;
    let mut rest = pattern.get(first..end)?;
    let mut inside = false;
    while let [low, tail @ ..] = rest {
        if let [b'-', high, more @ ..] = tail {
            inside |= (low..=high).contains(&&byte);
            rest = more;
        } else {
            inside |= *low == byte;
            rest = tail;
        }
    }
    Some((inside != negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_for_names() {
        assert_eq!(stem("a/nvidia-peermem.ko").unwrap(), "nvidia_peermem");
        assert_eq!(stem("nvidia_peermem.ko.zst").unwrap(), "nvidia_peermem");
        assert_eq!(stem("nvidia-peermem.ko.bak"), None);
        assert_eq!(stem("modules.dep"), None);
        let index = Index {
            dep: "updates/dkms/nvidia.ko:\nupdates/dkms/nvidia-peermem.ko.xz: updates/dkms/nvidia.ko\n".into(),
            builtin: "kernel/fs/ext4/ext4.ko\n".into(),
            alias: "alias pci:v000010DE* nvidia\nalias net-pf-1? ipv6\nalias peer-* nvidia_peermem\n".into(),
        };
        assert_eq!(
            index.file("nvidia_peermem"),
            Some("updates/dkms/nvidia-peermem.ko.xz")
        );
        assert_eq!(index.file("nvidia_peer"), None);
        assert!(index.is_builtin("ext4") && !index.is_builtin("ext"));
        assert_eq!(
            index.aliases("peer_x").collect::<Vec<_>>(),
            ["nvidia_peermem"]
        );
        assert_eq!(index.aliases("net_pf_10").collect::<Vec<_>>(), ["ipv6"]);
    }

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("nvidia", "nvidia", true),
            ("nvidia", "nvidia_uvm", false),
            ("nvidia*", "nvidia_uvm", true),
            ("n*m*m", "nvidia_peermem", true),
            ("n*x", "nvidia", false),
            ("nvidi?", "nvidia", true),
            ("nv[hij]dia", "nvidia", true),
            ("nv[!i]dia", "nvidia", false),
            ("nv[a-k]dia", "nvidia", true),
            ("nv[]i]dia", "nvidia", true),
            ("nv[i", "nvi", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
