//! Running the short scripts that `blscfg` makes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::body::is_linux;
use super::machine::{Code, Files, Machine};
use super::script::parse_text;
use super::traced::{LineTrace, Places};
use crate::room::Room;

/// Runs a script as an entry's body and gives the arguments of its last `linux` command, less the
/// kernel's path, and where they come from. Nothing from a script that does not parse: GRUB boots
/// nothing then.
pub(crate) fn linux_args(
    source: &str,
    scope: &[String],
    env: &BTreeMap<String, String>,
) -> (Vec<String>, LineTrace) {
    let Some(ast) = parse_text(source.as_bytes().to_vec()) else {
        return (Vec::new(), LineTrace::default());
    };
    let files = Files {
        env: Some(env),
        existing: &[],
        keep_saved: false,
        bls: None,
    };
    let input = source.len() + env.values().map(String::len).sum::<usize>();
    let mut machine = Machine::new(&files, Room::new(input, ast.bytes()));
    for (name, value) in env {
        machine.env.set(name.as_bytes(), value.as_bytes(), None);
    }
    machine.scope = Some(scope.iter().map(|arg| arg.as_bytes().to_vec()).collect());
    machine.record = true;
    machine.own = Some(ast.clone());
    machine.run(Code {
        list: ast.root(),
        ast: ast.clone(),
    });
    let linux = machine
        .ran
        .iter()
        .rev()
        .find(|ran| ran.argv.first().is_some_and(|n| is_linux(n)));
    let args = linux.into_iter().flat_map(|ran| ran.argv.iter().skip(2));
    let args = args
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect();
    let places = Places {
        own: &ast,
        offset: &|at| at,
        line: &|_| 1,
    };
    let trace = linux.map_or_else(LineTrace::default, |ran| places.line_trace(ran, 2));
    (args, trace)
}
