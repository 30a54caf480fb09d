//! Which order the installed GRUB has.

use alloc::string::String;

use super::Order;
use crate::defaults::{Document, File, evaluate};

/// What a machine shows of its GRUB; all of it is optional.
///
/// ```
/// use grub_config_parser::bls::{Evidence, Order};
/// let el8 = Evidence {
///     os_release: b"ID=\"rocky\"\nVERSION_ID=\"8.10\"\n",
///     package_version: Some("1:2.02-156.el8"),
///     modules: &["blscfg.mod"],
///     ..Evidence::default()
/// };
/// assert_eq!(el8.order(), Some(Order::RpmVersion));
/// let sid = Evidence { modules: &["blsuki.mod"], package_version: Some("2.14-1"), ..Evidence::default() };
/// assert_eq!(sid.order(), Some(Order::FileVerCmp));
/// assert_eq!(Evidence::default().order(), None);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The text of `/etc/os-release`; empty where there is none.
    pub os_release: &'a [u8],
    /// The version of the package that has GRUB's modules, as the package manager shows it: `2.06-61.el9`,
    /// `1:2.02-156.el8`.
    pub package_version: Option<&'a str>,
    /// The names of the modules in GRUB's folder: `blscfg.mod`, `blsuki.mod`.
    pub modules: &'a [&'a str],
    /// The bytes of `blscfg.mod`, `blsuki.mod` or of the EFI image that the firmware starts, modules not
    /// compressed.
    pub image: Option<&'a [u8]>,
}

/// Who has written the `blscfg` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lineage {
    /// `blsuki.c`, from GRUB 2.14 on.
    Upstream,
    /// `blscfg.c`.
    RedHat,
}

impl Evidence<'_> {
    /// The order, or `None` where the evidence does not say or does not agree. SUSE's GRUB is never
    /// answered for: it carries a changed `blscfg`. On a machine that boots through the BIOS the boot
    /// track may hold an older GRUB than the package; only an image would show that.
    pub fn order(&self) -> Option<Order> {
        let os = Os::of(self.os_release);
        if os.suse {
            return None;
        }
        let shown = [self.by_modules()?, self.by_image()?, os.lineage()];
        let mut shown = shown.into_iter().flatten();
        let lineage = shown.next()?;
        if !shown.all(|other| other == lineage) {
            return None;
        }
        let version = match self.package_version {
            Some(text) => Some(version(text)?),
            None => None,
        };
        match lineage {
            Lineage::Upstream => match version {
                Some(version) if version < (2, 14) => None,
                Some(_) => Some(Order::FileVerCmp),
                // The command exists: it is there to be seen.
                None if self.by_image()? == Some(Lineage::Upstream) => Some(Order::FileVerCmp),
                None if self.by_modules()? == Some(Lineage::Upstream) => Some(Order::FileVerCmp),
                None => None,
            },
            Lineage::RedHat => {
                let package = version.and_then(|version| match version {
                    (2, 2) => Some(Order::RpmVersion),
                    (2, 4..) => Some(Order::Rpm),
                    _ => None,
                });
                match (package, os.order()) {
                    // Fedora's 2.02 changed its mind on the way; only EL8 has stayed with it.
                    (Some(Order::RpmVersion), None) if os.id.is_some() => None,
                    (Some(package), Some(os)) if package != os => None,
                    (package, os) => package
                        .or(os)
                        .filter(|_| version.is_none() || package.is_some()),
                }
            }
        }
    }

    /// The outer `None` means evidence for both.
    fn by_modules(&self) -> Option<Option<Lineage>> {
        let has = |name: &str| self.modules.contains(&name);
        one(has("blsuki.mod"), has("blscfg.mod"))
    }

    fn by_image(&self) -> Option<Option<Lineage>> {
        // Upstream's command has options; Red Hat's has a second name.
        let has = |text: &[u8]| self.image.is_some_and(|image| contains(image, text));
        one(
            has(b"[-f|--enable-fallback]"),
            has(b"bls_import\0") && has(b"blscfg"),
        )
    }
}

fn one(upstream: bool, red_hat: bool) -> Option<Option<Lineage>> {
    match (upstream, red_hat) {
        (true, true) => None,
        (true, false) => Some(Some(Lineage::Upstream)),
        (false, true) => Some(Some(Lineage::RedHat)),
        (false, false) => Some(None),
    }
}

fn contains(image: &[u8], text: &[u8]) -> bool {
    image.windows(text.len()).any(|window| window == text)
}

/// `2.06` and `1:2.02-156.el8` as numbers; a patch level does not matter.
fn version(text: &str) -> Option<(u32, u32)> {
    let text = text.split_once(':').map_or(text, |(_, rest)| rest);
    let (major, rest) = text.split_once('.')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((major.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

#[derive(Default)]
struct Os {
    id: Option<String>,
    major: Option<u32>,
    suse: bool,
}

impl Os {
    fn of(text: &[u8]) -> Self {
        let doc = Document::parse(text);
        let file = File {
            name: "os-release",
            doc: &doc,
        };
        let mut vars = evaluate(&[file]).vars;
        let mut value = |name: &str| vars.remove(name).and_then(|variable| variable.value);
        let id = value("ID");
        let like = value("ID_LIKE").unwrap_or_default();
        let version = value("VERSION_ID").unwrap_or_default();
        let suse = id
            .iter()
            .chain([&like])
            .any(|ids| ids.contains("suse") || ids.contains("sles"));
        Self {
            id,
            major: version
                .split('.')
                .next()
                .and_then(|major| major.parse().ok()),
            suse,
        }
    }

    fn enterprise(&self) -> bool {
        let known = ["rhel", "centos", "rocky", "almalinux", "ol"];
        self.id.as_deref().is_some_and(|id| known.contains(&id))
    }

    fn lineage(&self) -> Option<Lineage> {
        match self.id.as_deref() {
            Some("fedora") => Some(Lineage::RedHat),
            Some("debian" | "ubuntu") => Some(Lineage::Upstream),
            _ => self.enterprise().then_some(Lineage::RedHat),
        }
    }

    /// What the releases that were looked at have: EL 8 to 10, Fedora 41 and later.
    fn order(&self) -> Option<Order> {
        match self.major {
            Some(8) if self.enterprise() => Some(Order::RpmVersion),
            Some(9 | 10) if self.enterprise() => Some(Order::Rpm),
            Some(41..) if self.id.as_deref() == Some("fedora") => Some(Order::Rpm),
            _ => None,
        }
    }
}
