//! `gdr-agent boot`: what the units call. Not for people, so it is hidden.

use std::time::Duration;

use grub_config_parser::cmdline::CommandLine;

use super::status;
use super::{CliError, Context, Exit, apply as apply_verb};
use crate::apply::{self, Asks, Engine, EngineError, boot_id};
use crate::facts::gdr::PEERMEM;
use crate::journal::{DIR, Record, leftovers};
use crate::machine::{Boot, Event, GrubView, Marker, State};
use crate::measure::write_record;
use crate::plan::{self, GdrPath, MARKER};
use crate::reboot::{Bus, ShutdownKind, asked_apart, pending_shutdown};
use crate::service;
use crate::state;
use crate::sys::last_resort::LastResort;
use crate::sys::{Root, SysError, clock, freeze, module, notify, process};
use crate::world::World;

/// What a unit wants.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Early: clear ACS as the committed policy, or the trial's, says.
    Acs,
    /// Every boot: find out where the machine is, disarm, go on with what was interrupted.
    Settle,
    /// Trial boots: have perftest run where the policy wants it, for `verify` to judge.
    Measure,
    /// Trial boots: verify, then commit or roll back.
    Verify,
    /// At shutdown: arm the trial if a reboot was granted.
    Arm,
    /// Trial boots: reset the machine when nothing was verified in time.
    Deadline,
    /// The RDMA stack was started: load nvidia-peermem, if the policy of every boot goes through it.
    Peermem,
    /// The RDMA stack is about to be stopped, which a client would keep from it: unload nvidia-peermem.
    PeermemOff,
    /// Now and then: ask again for an outstanding reboot, repair ACS.
    Reconcile,
    /// Now and then, where asking takes a network: ask again, give back what a server holds for the node.
    Ask,
    /// The package is being removed: nothing stays armed or half done, and no reboot is asked for.
    Uninstall {
        /// Take back what is committed too, and remove everything that the agent has left.
        #[arg(long)]
        purge: bool,
    },
    /// Started by the bus: answer for `org.gdr_agent.Agent1` until nobody asks any more.
    Bus {
        /// End after so many seconds without a call.
        #[arg(long, default_value_t = 30)]
        idle: u64,
    },
    /// Thaws a file system when its parent dies.
    ThawGuard {
        /// The directory.
        dir: String,
    },
}

/// How long a unit waits for a person's command to end.
const LOCK_WAIT: Duration = Duration::from_secs(60);

pub(super) fn run(context: &Context, verb: Verb) -> Result<Exit, CliError> {
    match verb {
        Verb::ThawGuard { dir } => {
            freeze::guard(&dir).map_err(|e| {
                CliError::new(Exit::Internal, "freeze", format!("cannot guard {dir}: {e}"))
            })?;
            return Ok(Exit::Done);
        }
        Verb::Deadline => return deadline(context),
        _ => {}
    }
    if crash_kernel(context)? {
        tracing::warn!("this is a crash kernel: nothing is done");
        return Ok(Exit::Done);
    }
    match verb {
        Verb::Acs => acs(context),
        Verb::Settle => settle(context),
        Verb::Measure => measure(context),
        Verb::Verify => verify(context),
        Verb::Arm => arm(context),
        Verb::Peermem => peermem(context),
        Verb::PeermemOff => Ok(module::unload(&context.root, PEERMEM).map(|()| Exit::Done)?),
        Verb::Reconcile => reconcile(context),
        Verb::Ask => ask(context),
        Verb::Bus { idle } => bus(context, Duration::from_secs(idle)),
        Verb::Uninstall { purge } => uninstall(context, purge),
        Verb::Deadline | Verb::ThawGuard { .. } => Ok(Exit::Done),
    }
}

/// A crash kernel may have the marker of the kernel that crashed, and must only save its memory.
fn crash_kernel(context: &Context) -> Result<bool, CliError> {
    Ok(context.root.stat("/proc/vmcore")?.is_some())
}

fn acs(context: &Context) -> Result<Exit, CliError> {
    let record = status::last(&context.root)?;
    let trial = record.filter(|r| marker(context, r) == Marker::Ours && !r.txn.state.is_final());
    let report = apply::early_acs(&context.root, trial.map(|r| r.work.policy).as_ref())?;
    for line in report {
        notify::status(&line);
        tracing::warn!("{line}");
    }
    Ok(Exit::Done)
}

fn settle(context: &Context) -> Result<Exit, CliError> {
    let left = leftovers::any(&context.root).unwrap_or_else(|e| {
        tracing::warn!("{e}");
        false
    });
    if status::last(&context.root)?.is_none() && !left {
        return Ok(Exit::Done);
    }
    let mut engine = open(context, "boot settle")?;
    if let Some(record) = engine.last().cloned() {
        let event = Event::Booted(look(context, &record));
        engine.send(event)?;
        say(&engine);
    }
    // Here, since nothing of the agent runs yet that writes without the lock.
    if left && let Err(e) = leftovers::clear(&context.root) {
        tracing::warn!("what was left by interrupted work stays: {e}");
    }
    Ok(Exit::Done)
}

/// Not under the lock: it changes nothing, and takes minutes.
fn measure(context: &Context) -> Result<Exit, CliError> {
    let Some(record) = status::last(&context.root)? else {
        return Ok(Exit::Done);
    };
    let on_trial = record.txn.state == State::TrialBooted;
    if !on_trial || marker(context, &record) != Marker::Ours {
        return Ok(Exit::Done);
    }
    let policy = &record.work.policy;
    let world = World::read(&context.root, policy)?;
    let tell = |text: &str| tracing::info!("{text}");
    if let Some(measured) = world.measure(&context.root, policy, true, &tell) {
        let txn = record.txn.id.as_str();
        write_record(&context.root, txn, &boot_id(&context.root), &measured)?;
    }
    Ok(Exit::Done)
}

fn verify(context: &Context) -> Result<Exit, CliError> {
    let mut engine = open(context, "boot verify")?;
    let Some(record) = engine.last().cloned() else {
        return Ok(Exit::Done);
    };
    if record.txn.state == State::TrialBooted && marker(context, &record) == Marker::Ours {
        notify::status("waiting for the boot to be complete, then asking the policy's checks");
        engine.verify_trial()?;
    }
    say(&engine);
    Ok(Exit::Done)
}

/// Not under the lock: the RDMA stack waits for this, and it may be a command of the agent that started it.
fn peermem(context: &Context) -> Result<Exit, CliError> {
    let Some(committed) = state::committed(&context.root)? else {
        return Ok(Exit::Done);
    };
    let policy = committed.policy;
    let world = World::read(&context.root, &policy)?;
    let decision = plan::decide(&plan::gdr::Input {
        policy: &policy,
        facts: &world.facts,
        functions: &world.functions,
    });
    if decision.path != GdrPath::Peermem || !policy.peermem.load {
        for link in &decision.evidence {
            tracing::info!("{link}");
        }
        return Ok(Exit::Done);
    }
    module::load(&context.root, PEERMEM)?
        .map(|()| Exit::Done)
        .map_err(|refused| {
            let why = apply::why_not_loaded(&refused, &world.facts);
            CliError::new(Exit::Pending, "module", why)
        })
}

fn arm(context: &Context) -> Result<Exit, CliError> {
    if status::last(&context.root)?.is_none_or(|r| r.txn.state != State::Granted) {
        return Ok(Exit::Done);
    }
    let reboot = if context.root.is_live() {
        match pending_shutdown(&[Bus::system(), Bus::peer("/run/systemd/private")]) {
            Ok(kind) => kind == ShutdownKind::Reboot,
            Err(e) => {
                // Not knowing is no leave: the known-good entry boots, and the trial is asked for again.
                tracing::warn!(
                    "the trial is not armed, since the kind of shutdown is not known: {e}"
                );
                false
            }
        }
    } else {
        true
    };
    let mut engine = open(context, "boot arm")?;
    engine.send(Event::Shutdown { reboot })?;
    say(&engine);
    Ok(Exit::Done)
}

/// While the journal cannot be read (it may be on a disk that the trial broke), this is the limit.
const BLIND_LIMIT: Duration = Duration::from_secs(600);

/// How long the reset waits for its record.
const COURTESY: Duration = Duration::from_secs(30);

fn deadline(context: &Context) -> Result<Exit, CliError> {
    // Reading the journal, writing it and the sync before a reset all wait for a disk that may be what the trial broke.
    let last_resort = LastResort::start(&context.root, BLIND_LIMIT);
    loop {
        last_resort.alive();
        let record = status::last(&context.root)
            .ok()
            .flatten()
            .filter(|r| marker(context, r) == Marker::Ours);
        let limit = match &record {
            Some(r)
                if !matches!(
                    r.txn.state,
                    State::Armed | State::Granted | State::TrialBooted
                ) =>
            {
                return Ok(Exit::Done);
            }
            Some(r) => Duration::from_secs(r.work.policy.trial.deadline.as_secs()),
            None => BLIND_LIMIT,
        };
        if let Some(left) = limit
            .checked_sub(context.root.since_boot())
            .filter(|left| !left.is_zero())
        {
            context.root.sleep(left.min(Duration::from_secs(1)));
            continue;
        }
        // A marker that somebody copied into a permanent command line is no trial.
        if record.is_none() && !taken_now(context) {
            tracing::error!(
                "the command line has a trial's marker, and neither the journal nor grubenv knows it"
            );
            return Ok(Exit::Done);
        }
        break;
    }
    tracing::error!("the trial was not verified before its deadline: the machine is reset");
    // The record is a courtesy: whoever holds the lock may hang, and the reset must come.
    last_resort.shorten(COURTESY);
    if let Ok(mut engine) = context.engine("boot deadline")
        && let Err(e) = engine.send(Event::DeadlineOver)
    {
        tracing::error!("the journal does not have it: {e}");
    }
    process::reboot_now(&context.root)?;
    Ok(Exit::Done)
}

fn reconcile(context: &Context) -> Result<Exit, CliError> {
    acs(context)?;
    let boot = boot_id(&context.root);
    let over = |r: Record| r.txn.state.is_final() && !r.txn.awaits_reboot(&boot);
    if status::last(&context.root)?.is_none_or(over) {
        return Ok(Exit::Done);
    }
    let Some(mut engine) = open_if_free(context, "boot reconcile")? else {
        return Ok(Exit::Done);
    };
    engine.ask(Asks::Locally);
    let Some(record) = engine.last().cloned() else {
        return Ok(Exit::Done);
    };
    match record.txn.state {
        // Staged with leave to reboot: the machine went down before the wish was recorded.
        State::RebootRequested | State::Staged if wants_reboot(&record) => {
            engine.send(Event::RebootWanted)?;
        }
        State::Granted | State::Armed => engine.look_after()?,
        State::RollingBack if record.txn.granted => engine.look_after()?,
        // A person ended it, and the reboot that had been granted could not be called back then.
        state if state.is_final() => engine.release()?,
        State::Staged | State::RollingBack | State::Verified | State::Committing => {
            let event = Event::Booted(look(context, &record));
            engine.send(event)?;
        }
        _ => {}
    }
    Ok(Exit::Done)
}

/// Staged whole, with leave to reboot, and in need of a trial.
fn wants_reboot(record: &Record) -> bool {
    record.txn.ready && record.txn.budget.allowed && record.txn.trial
}

/// What [`reconcile`] leaves to a unit that has a network and may not write under /boot.
fn ask(context: &Context) -> Result<Exit, CliError> {
    let Some(record) = status::last(&context.root)? else {
        return Ok(Exit::Done);
    };
    let outstanding =
        !record.txn.state.is_final() && asked_apart(&context.root, &record.work.policy);
    let comes = record.txn.state.is_final() && record.txn.awaits_reboot(&boot_id(&context.root));
    if !outstanding && !comes && record.work.lock.is_none() {
        return Ok(Exit::Done);
    }
    let Some(mut engine) = open_if_free(context, "boot ask")? else {
        return Ok(Exit::Done);
    };
    engine.ask(Asks::WhenDue);
    notify::status("asking the fleet");
    let Some(record) = engine.last().cloned() else {
        return Ok(Exit::Done);
    };
    match record.txn.state {
        State::RebootRequested | State::Staged if wants_reboot(&record) => {
            engine.send(Event::RebootWanted)?;
        }
        State::RollingBack => engine.send(Event::RebootWanted)?,
        state if state.is_final() => engine.release()?,
        _ => {}
    }
    Ok(Exit::Done)
}

fn bus(context: &Context, idle: Duration) -> Result<Exit, CliError> {
    let status = |root: &Root| status::public(root).map_err(|e| e.message);
    service::serve(&context.root, &Bus::system(), &status, idle)
        .map(|()| Exit::Done)
        .map_err(|why| CliError::new(Exit::Internal, "bus", why))
}

/// Needs no systemd, no D-Bus, and nothing of the package but this binary.
fn uninstall(context: &Context, purge: bool) -> Result<Exit, CliError> {
    apply_verb::needs_root(context, "boot uninstall")?;
    let root = &context.root;
    let record = match status::last(root) {
        Ok(record) => record,
        // What GRUB could boot goes whatever the journal says; the rest cannot be known without it.
        Err(e) if e.kind == "journal" => {
            apply::strip_boot_files(root)?;
            if purge {
                return Err(e);
            }
            tracing::warn!("{}", e.message);
            return Ok(Exit::Done);
        }
        Err(e) => return Err(e),
    };
    // Looking first keeps a node that never had a transaction free of a lock file.
    if record.is_none() && root.stat(DIR)?.is_none() {
        apply::strip_boot_files(root)?;
        return Ok(Exit::Done);
    }
    let mut engine = open(context, "boot uninstall")?;
    let said = if purge {
        engine.purge()?
    } else {
        engine.end_unfinished()?
    };
    for line in said {
        tracing::warn!("{line}");
    }
    Ok(Exit::Done)
}

/// Opens the engine unless somebody is at work; the next run comes soon.
fn open_if_free<'r>(context: &'r Context, who: &str) -> Result<Option<Engine<'r>>, CliError> {
    match context.engine(who) {
        Ok(engine) => Ok(Some(engine)),
        Err(EngineError::Sys(SysError::Locked { .. })) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Opens the engine, waiting a while for a command that is at work.
fn open<'r>(context: &'r Context, who: &str) -> Result<Engine<'r>, CliError> {
    let until = clock::now() + LOCK_WAIT;
    loop {
        match context.engine(who) {
            Err(EngineError::Sys(SysError::Locked { .. })) if clock::now() < until => {
                clock::sleep(Duration::from_millis(200));
            }
            Ok(mut engine) => {
                engine.ask(Asks::Locally);
                return Ok(engine);
            }
            Err(e) => return Err(e.into()),
        }
    }
}

fn look(context: &Context, record: &Record) -> Boot {
    Boot {
        boot_id: boot_id(&context.root),
        marker: marker(context, record),
        grub: apply::read_env(&context.root, record.txn.id.as_str()),
    }
}

/// The transaction whose trial the running command line says it is.
fn running_txn(context: &Context) -> Option<String> {
    let text = context.root.text_if_there("/proc/cmdline").ok()??;
    let line = CommandLine::parse(&text);
    let marker = line.last(MARKER)?;
    marker.value().map(str::to_owned)
}

/// The marker in the running command line: the only truth about what booted.
fn marker(context: &Context, record: &Record) -> Marker {
    match running_txn(context) {
        None => Marker::None,
        Some(id) if id == record.txn.id.as_str() => Marker::Ours,
        Some(_) => Marker::Foreign,
    }
}

/// Whether GRUB says that this boot is a trial; if even that cannot be read, it is taken for one.
fn taken_now(context: &Context) -> bool {
    let Some(id) = running_txn(context) else {
        return false;
    };
    matches!(
        apply::read_env(&context.root, &id),
        GrubView::Taken | GrubView::Unreadable
    )
}

fn say(engine: &Engine) {
    if let Some(record) = engine.last() {
        let why = record
            .txn
            .failure
            .as_ref()
            .map_or(String::new(), |f| format!(": {}", f.text));
        let text = format!("transaction {} is {}{why}", record.txn.id, record.txn.state);
        notify::status(&text);
        tracing::info!("{text}");
    }
}
