//! Prints what the crate reads from a boot configuration as one JSON object, so that it can be
//! compared with the programs that read it for real.
//!
//! ```text
//! grub-dump defaults FILE...                            vars and where sourcing stops
//! grub-dump cfg FILE [GRUBENV]                          the menu of a grub.cfg
//! grub-dump bls [--order filevercmp|rpm] DIR [GRUBENV]  the menu of a folder of entries
//! grub-dump env FILE                                    an environment block
//! grub-dump env-set FILE OUT KEY=VALUE...               an edited environment block
//! grub-dump cmdline                                     one kernel command line, from stdin
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the command line, not part of the library"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::process::ExitCode;

use grub_config_parser::bls::{Order, Snippet, menu};
use grub_config_parser::cfg::{Context, Script};
use grub_config_parser::cmdline::split_bytes;
use grub_config_parser::defaults::{Document, File, Kind, evaluate};
use grub_config_parser::grubenv::EnvBlock;
use serde_json::{Value, json};

type Outcome = Result<Value, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(value) => match writeln!(std::io::stdout(), "{value}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("grub-dump: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Outcome {
    match words {
        ["defaults", files @ ..] if !files.is_empty() => defaults(files),
        ["cfg", file] => cfg(file, None),
        ["cfg", file, env] => cfg(file, Some(env)),
        ["bls", "--order", order, rest @ ..] => match (*order, rest) {
            ("filevercmp", [dir, env @ ..]) => bls(dir, env.first(), Order::FileVerCmp),
            ("rpm", [dir, env @ ..]) => bls(dir, env.first(), Order::Rpm),
            _ => Err("usage: grub-dump bls [--order filevercmp|rpm] DIR [GRUBENV]".into()),
        },
        ["bls", dir, env @ ..] => bls(dir, env.first(), Order::FileVerCmp),
        ["env", file] => env(file),
        ["env-set", file, out, pairs @ ..] => env_set(file, out, pairs),
        ["cmdline"] => cmdline(),
        _ => Err("usage: grub-dump defaults|cfg|bls|env|env-set|cmdline ...".into()),
    }
}

fn read(path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}").into())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last value of each variable; none from a block that GRUB refuses.
fn variables(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    EnvBlock::parse(bytes)
        .ok()
        .map(|block| block.iter().collect())
}

fn defaults(names: &[&str]) -> Outcome {
    let mut documents = Vec::new();
    for name in names {
        documents.push(Document::parse(&read(name)?));
    }
    let files: Vec<File<'_>> = names
        .iter()
        .zip(&documents)
        .map(|(name, doc)| File { name, doc })
        .collect();
    let evaluation = evaluate(&files);
    let vars: BTreeMap<String, Value> = evaluation
        .vars
        .into_iter()
        .map(|(name, variable)| {
            let kind = match variable.kind {
                Kind::Literal => "literal",
                Kind::Derived => "derived",
                Kind::Computed => "computed",
            };
            (name, json!({"value": variable.value, "kind": kind}))
        })
        .collect();
    let aborts = evaluation
        .aborts
        .map(|abort| json!({"file": abort.file, "line": abort.line}));
    Ok(json!({"vars": vars, "aborts": aborts}))
}

fn cfg(file: &str, env: Option<&str>) -> Outcome {
    let context = match env {
        Some(path) => Context::with_env(variables(&read(path)?).unwrap_or_default()),
        None => Context::default(),
    };
    let script = match Script::parse(&read(file)?) {
        Ok(script) => script,
        Err(error) => {
            return Ok(json!({
                "ok": false,
                "error": {"line": error.line, "message": error.message},
                "entries": [],
                "default": null,
            }));
        }
    };
    let menu = script.menu(&context);
    let entries = menu.entries.iter().map(|entry| {
        json!({
            "title": entry.title,
            "id": entry.id,
            "kernel": entry.kernel,
            "raw": entry.raw,
            "args": split_bytes(entry.raw.as_bytes()).iter().map(|arg| lossy(arg.raw)).collect::<Vec<_>>(),
        })
    });
    let entries: Vec<Value> = entries.collect();
    Ok(json!({"ok": true, "error": null, "entries": entries, "default": menu.default}))
}

fn bls(dir: &str, env: Option<&&str>, order: Order) -> Outcome {
    let vars = match env {
        Some(path) => variables(&read(path)?).unwrap_or_default(),
        None => BTreeMap::new(),
    };
    let listed = std::fs::read_dir(dir).map_err(|error| format!("cannot list {dir}: {error}"))?;
    let mut names = Vec::new();
    for item in listed {
        names.push(item?.file_name());
    }
    names.sort();
    let mut files = Vec::new();
    for name in names {
        let path = std::path::Path::new(dir).join(&name);
        let name = name.to_string_lossy().into_owned();
        if name.ends_with(".conf") && path.is_file() {
            files.push(Snippet::parse(&name, &std::fs::read(&path)?));
        }
    }
    let entries: Vec<Value> = menu(&files, order, &vars)
        .iter()
        .map(|entry| {
            json!({
                "id": entry.id,
                "title": entry.title,
                "linux": entry.linux,
                "raw": entry.raw,
                "args": split_bytes(entry.raw.as_bytes()).iter().map(|arg| lossy(arg.raw)).collect::<Vec<_>>(),
            })
        })
        .collect();
    Ok(json!({"entries": entries}))
}

fn env(file: &str) -> Outcome {
    let vars = variables(&read(file)?);
    Ok(json!({"ok": vars.is_some(), "vars": vars.unwrap_or_default()}))
}

fn env_set(file: &str, out: &str, pairs: &[&str]) -> Outcome {
    let mut block = EnvBlock::parse(&read(file)?).map_err(|error| format!("{file}: {error}"))?;
    for pair in pairs {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("{pair}: KEY=VALUE expected"))?;
        block
            .set(name, value)
            .map_err(|error| format!("{file}: {error}"))?;
    }
    std::fs::write(out, block.as_bytes())
        .map_err(|error| format!("cannot write {out}: {error}"))?;
    Ok(json!({"ok": true, "vars": block.iter().collect::<BTreeMap<_, _>>()}))
}

fn cmdline() -> Outcome {
    let mut line = Vec::new();
    std::io::stdin().read_to_end(&mut line)?;
    let args: Vec<Value> = split_bytes(&line)
        .iter()
        .map(|arg| {
            json!({"raw": lossy(arg.raw), "name": lossy(arg.name), "value": arg.value.map(lossy)})
        })
        .collect();
    Ok(json!({"args": args}))
}
