//! A real machine to test on: Debian with GRUB, systemd and an IOMMU, in QEMU, nothing mocked.
//!
//! [`Machine::start`] boots an overlay of an [`Image`]; [`Machine::run`] runs a command in it as root; a reboot is told by the
//! kernel's boot id alone ([`Machine::wait_for_boot`]); [`Machine::cut_power`] kills QEMU. What the machine says on its serial
//! line and what was done to it is kept under `GDR_VM_WORK` in `runs/NAME`.
// This is the host's side, where there is no root directory, clock or process other than the host's own.
#![allow(clippy::disallowed_methods, clippy::print_stderr)]

mod agent;
mod disk;
mod error;
mod image;
mod inventory;
mod monitor;
mod need;
mod qemu;
mod random;
mod shell;
mod transcript;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use agent::Answer;
pub use error::Error;
pub use image::{Image, Variant};
pub use inventory::Inventory;
pub use need::{SUITE, agent_image, agent_image_of, agent_package, image_of, plain_image};
pub use random::Random;

use disk::Disk;
use qemu::Qemu;
use shell::Event;
use transcript::Transcript;

/// How long a boot may take, firmware to shell. It takes half a minute on two idle cores.
const BOOT: Duration = Duration::from_secs(600);

/// How long a command may take unless it says otherwise.
const COMMAND: Duration = Duration::from_secs(180);

/// A machine that runs, or one whose plug was pulled. It ends with this value.
#[derive(Debug)]
pub struct Machine {
    image: Image,
    dir: PathBuf,
    disk: Disk,
    ports: u32,
    qemu: Option<Qemu>,
    boot_id: String,
    transcript: Transcript,
}

/// What a command in the machine did.
#[derive(Debug, Clone)]
pub struct Ran {
    /// The exit status; 124 when it was ended for taking too long.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Machine {
    /// Boots a fresh machine and waits for its shell. `name` is the folder of its logs; an earlier run's are removed.
    ///
    /// # Errors
    /// The host cannot start QEMU, or the machine does not come up.
    pub fn start(image: &Image, name: &str) -> Result<Self, Error> {
        Self::start_with_ports(image, name, 0)
    }

    /// As [`Machine::start`], with so many root ports more that have nothing behind them.
    ///
    /// # Errors
    /// As [`Machine::start`].
    pub fn start_with_ports(image: &Image, name: &str, ports: u32) -> Result<Self, Error> {
        let dir = image.runs().join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).map_err(Error::host("remove", &dir))?;
        }
        std::fs::create_dir_all(&dir).map_err(Error::host("create", &dir))?;
        let disk = Disk::over(image)?;
        let transcript = Transcript::new(&dir.join("transcript.log"))?;
        let boot_id = String::new();
        let image = image.clone();
        let mut machine = Self {
            image,
            dir,
            disk,
            ports,
            qemu: None,
            boot_id,
            transcript,
        };
        eprintln!("machine {name}: logs in {}", machine.dir.display());
        machine.power_on()?;
        machine.wait_for_boot()?;
        Ok(machine)
    }

    /// Puts the plug back in after [`Machine::cut_power`]. [`Machine::wait_for_boot`] waits for the shell.
    ///
    /// # Errors
    /// The host cannot start QEMU.
    pub fn power_on(&mut self) -> Result<(), Error> {
        self.transcript.note("power on");
        self.qemu = Some(Qemu::start(
            &self.image,
            &self.dir,
            self.disk.path(),
            self.ports,
        )?);
        Ok(())
    }

    /// Kills QEMU, at once. What the guest had not flushed to its disk is lost.
    pub fn cut_power(&mut self) {
        self.transcript.note("power cut");
        self.qemu = None;
    }

    /// Waits for the next boot, which is one with another boot id than the last that was seen, and returns its id.
    ///
    /// # Errors
    /// It takes more than ten minutes, or QEMU ends.
    pub fn wait_for_boot(&mut self) -> Result<String, Error> {
        let started = Instant::now();
        while let Some(left) = BOOT.checked_sub(started.elapsed()) {
            match self.event(left)? {
                Some(Event::Hello(boot_id)) if boot_id != self.boot_id => {
                    let took = started.elapsed().as_secs_f32();
                    self.transcript
                        .note(&format!("boot {boot_id} is up after {took:.1} s"));
                    self.boot_id.clone_from(&boot_id);
                    return Ok(boot_id);
                }
                _ => {}
            }
        }
        Err(self.timeout("the next boot", BOOT))
    }

    /// Runs a bash script as root.
    ///
    /// # Errors
    /// The machine does not answer, or goes down. A status other than 0 is none.
    pub fn run(&mut self, script: &str) -> Result<Ran, Error> {
        self.run_for(script, COMMAND)
    }

    /// As [`Machine::run`], with another time limit.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_for(&mut self, script: &str, limit: Duration) -> Result<Ran, Error> {
        let sent = self.shell()?.send_run(script.as_bytes(), limit);
        let id = sent.map_err(Error::host("write to", "the guest's shell"))?;
        self.answer(id, script, limit)
    }

    /// Standard output of a script that has to end with 0, without trailing white space.
    ///
    /// # Errors
    /// As [`Machine::run`], and any other status.
    pub fn ok(&mut self, script: &str) -> Result<String, Error> {
        let ran = self.run(script)?;
        if ran.status == 0 {
            return Ok(ran.stdout.trim_end().to_owned());
        }
        let said = if ran.stderr.trim().is_empty() {
            ran.stdout
        } else {
            ran.stderr
        };
        let stderr = said.trim().to_owned();
        Err(Error::Failed {
            command: script.to_owned(),
            status: ran.status,
            stderr,
        })
    }

    /// Writes a file in the machine, owned by root, with the folders above it.
    ///
    /// # Errors
    /// As [`Machine::ok`].
    pub fn put(&mut self, path: &str, mode: u32, content: &str) -> Result<(), Error> {
        let sent = self.shell()?.send_put(path, mode, content.as_bytes());
        let id = sent.map_err(Error::host("write to", "the guest's shell"))?;
        let command = format!("put {path}");
        let ran = self.answer(id, &command, COMMAND)?;
        if ran.status == 0 {
            return Ok(());
        }
        Err(Error::Failed {
            command,
            status: ran.status,
            stderr: ran.stderr,
        })
    }

    /// Reboots as a person does who will not wait, and waits for the next boot: by systemd itself, since logind lets nobody,
    /// not even root, past a block lock.
    ///
    /// # Errors
    /// As [`Machine::ok`] and [`Machine::wait_for_boot`].
    pub fn reboot(&mut self) -> Result<String, Error> {
        self.ok("systemctl start --no-block reboot.target")?;
        self.wait_for_boot()
    }

    /// Pulls the NIC's stand-in out of its port, as a person does who presses the button first.
    ///
    /// # Errors
    /// The guest does not let it go within two minutes.
    pub fn unplug_nic(&mut self) -> Result<(), Error> {
        self.transcript.note("the NIC is pulled out");
        let mut monitor = self.monitor()?;
        monitor.execute("device_del", &serde_json::json!({"id": "nic"}))?;
        monitor.wait("DEVICE_DELETED", "nic")
    }

    /// Puts it back.
    ///
    /// # Errors
    /// QEMU refuses.
    pub fn plug_nic(&mut self) -> Result<(), Error> {
        self.transcript.note("the NIC is put in");
        let nic = serde_json::json!({"driver": "igb", "id": "nic", "bus": "rp2", "romfile": ""});
        self.monitor()?.execute("device_add", &nic)
    }

    fn monitor(&self) -> Result<monitor::Monitor, Error> {
        let off = || Error::Ended {
            status: "the power is off".to_owned(),
            log: self.serial_log(),
        };
        self.qemu.as_ref().ok_or_else(off)?.monitor()
    }

    /// Waits until the boot is over: systemd has no job left. Says how it went: `running`, `degraded`, ...
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn settled(&mut self) -> Result<String, Error> {
        let ran = self.run_for("systemctl is-system-running --wait", BOOT)?;
        Ok(ran.stdout.trim().to_owned())
    }

    /// The boot id of the last boot whose shell was heard.
    #[must_use]
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// What came over the serial line so far, over all boots.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn serial(&self) -> Result<String, Error> {
        let path = self.serial_log();
        let bytes = std::fs::read(&path).map_err(Error::host("read", &path))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Where it is kept.
    #[must_use]
    pub fn serial_log(&self) -> PathBuf {
        self.dir.join("serial.log")
    }

    /// Waits until the serial line has said `text` after the first `from` bytes of its log.
    ///
    /// # Errors
    /// It does not within a boot's time.
    pub fn wait_for_serial(&self, from: usize, text: &str) -> Result<(), Error> {
        let started = Instant::now();
        while started.elapsed() < BOOT {
            let serial = self.serial()?;
            if serial
                .get(from.min(serial.len())..)
                .is_some_and(|new| new.contains(text))
            {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(self.timeout(&format!("{text:?} on the serial line"), BOOT))
    }

    /// Waits for the answer to command `id`.
    fn answer(&mut self, id: u64, command: &str, limit: Duration) -> Result<Ran, Error> {
        let started = Instant::now();
        // The guest ends the command itself; this is for a guest that hangs.
        let limit = limit + Duration::from_secs(60);
        while let Some(left) = limit.checked_sub(started.elapsed()) {
            match self.event(left)? {
                Some(Event::Done {
                    id: answered,
                    status,
                    stdout,
                    stderr,
                }) if answered == id => {
                    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                    let ran = Ran {
                        status,
                        stdout: text(stdout),
                        stderr: text(stderr),
                    };
                    self.transcript.command(command, &ran, started.elapsed());
                    return Ok(ran);
                }
                Some(Event::Hello(boot_id)) => {
                    self.transcript
                        .note(&format!("no answer to `{command}`: boot {boot_id}"));
                    self.boot_id = boot_id;
                    return Err(Error::Rebooted {
                        command: command.to_owned(),
                        log: self.serial_log(),
                    });
                }
                _ => {}
            }
        }
        Err(self.timeout(&format!("an answer to `{command}`"), limit))
    }

    /// The next event within `wait`, looking now and then whether QEMU is still there.
    fn event(&mut self, wait: Duration) -> Result<Option<Event>, Error> {
        let event = self.shell()?.event(wait.min(Duration::from_secs(5)))?;
        if event.is_none()
            && let Some(status) = self.qemu.as_mut().and_then(Qemu::ended)
        {
            return Err(Error::Ended {
                status,
                log: self.serial_log(),
            });
        }
        Ok(event)
    }

    fn shell(&mut self) -> Result<&mut shell::Shell, Error> {
        let log = self.serial_log();
        let off = || Error::Ended {
            status: "the power is off".to_owned(),
            log,
        };
        self.qemu.as_mut().map(Qemu::shell).ok_or_else(off)
    }

    /// Keeps what the agent and systemd say, in `transcript.log`, for whoever has to find out why something went wrong.
    fn last_words(&mut self) -> Result<(), Error> {
        const WORDS: &str = "systemctl --failed --no-legend
            journalctl --no-pager -o short-monotonic -u 'gdr-agent*' -u apply
            ls -l /var/lib/gdr-agent /boot/grub";
        self.run_for(WORDS, Duration::from_secs(60)).map(|_| ())
    }

    fn timeout(&self, what: &str, waited: Duration) -> Error {
        Error::Timeout {
            what: what.to_owned(),
            waited,
            log: self.serial_log(),
        }
    }

    /// The folder with everything that was kept of this machine.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.qemu.is_some()
            && !self.boot_id.is_empty()
            && let Err(e) = self.last_words()
        {
            self.transcript.note(&format!("no last words: {e}"));
        }
        self.qemu = None;
        if let Err(e) = self.disk.keep(&self.dir) {
            self.transcript.note(&format!("the disk is not kept: {e}"));
        }
    }
}
