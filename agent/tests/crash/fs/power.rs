//! The power is cut and comes back.

use gdr_tests::node::Boot;

use super::blocks::Blocks;
use super::film::{Film, scan};
use super::grub::{Loader, View};
use super::volume::Disks;
use crate::model::Disk;
use crate::scenario::is_trial;

/// What there is after the power was cut and came back.
#[derive(Debug)]
pub struct Afterwards {
    pub boots: Result<Vec<Boot>, String>,
    pub disk: Disk,
    /// GRUB read other files below /boot than Linux.
    pub stale: bool,
}

/// GRUB, then Linux. An image that is being made is not booted: it is made again, on the file system that Linux
/// then mounts, and unmounted before its first boot.
pub fn power_comes_back(
    film: &Film,
    cut: &Disks,
    now: &[Blocks],
    dies_late: bool,
) -> Result<Afterwards, String> {
    let scenario = &film.of.scenario;
    cut.write(now)?;
    let mut boots = Ok(Vec::new());
    let mut view = None;
    if !scenario.image {
        let images = cut.images();
        let loader = Loader {
            image: images.last().unwrap(),
            below: if images.len() == 1 { "/boot" } else { "" },
            os_release: &film.os_release,
            writable: scenario.writable,
        };
        boots = power(&loader, cut, scenario.dies, dies_late).map(|(boots, last)| {
            view = Some(last);
            boots
        });
    }
    let mounted = cut.mount()?;
    let disk = scan(&cut.root());
    let stale = view.is_some_and(|view| !view.is_that_of(&cut.root()));
    mounted.end()?;
    Ok(Afterwards { boots, disk, stale })
}

/// The power comes back. The kernel of a trial that panics may or may not have mounted its disks before.
fn power(
    loader: &Loader<'_>,
    disks: &Disks,
    dies: bool,
    late: bool,
) -> Result<(Vec<Boot>, View), String> {
    let mut boots = Vec::new();
    let (mut grub, mut view) = loader.boot()?;
    if dies && is_trial(&grub.cmdline) {
        boots.push(Boot { grub, kernel: None });
        if late {
            let mounted = disks.mount()?;
            let now = disks.read()?;
            mounted.end()?;
            disks.write(&now)?;
        }
        (grub, view) = loader.boot()?;
    }
    boots.push(Boot { grub, kernel: None });
    Ok((boots, view))
}
