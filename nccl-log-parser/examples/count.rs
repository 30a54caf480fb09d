//! Prints how many network records a log holds, and how many of them with GPUDirect RDMA.
//!
//! ```text
//! count FILE
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a program for the command line, not part of the library"
)]

use std::error::Error;
use std::fs::File;
use std::io::Read;

use nccl_log_parser::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which log?")?;
    let mut file = File::open(path)?;
    let mut piece = vec![0; 128 << 10];
    let mut reader = Reader::new();
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        reader.push(piece.get(..length).unwrap_or_default());
    }
    let log = reader.finish();
    println!("net {}\ngdr {}", log.tally.net.total, log.tally.net.gdr);
    Ok(())
}
