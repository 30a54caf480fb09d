//! A mirror on the loopback that dies: of one file only the first half comes, and then there is no mirror any more.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Serves a directory until somebody asks for a file with one of these endings.
pub(crate) fn dying(dir: PathBuf, endings: &'static [&'static str]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let dead = Arc::new(AtomicBool::new(false));
    // At the latest it ends with the test program.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if dead.load(Ordering::SeqCst) {
                return;
            }
            let (dir, dead) = (dir.clone(), Arc::clone(&dead));
            std::thread::spawn(move || {
                serve(stream, &dir, endings, &dead);
                if dead.load(Ordering::SeqCst) {
                    // Wakes the listener, so that it closes.
                    let _ = TcpStream::connect(("127.0.0.1", port));
                }
            });
        }
    });
    port
}

fn serve(mut stream: TcpStream, dir: &Path, endings: &[&str], dead: &AtomicBool) {
    let mut pending = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let Ok(length) = stream.read(&mut piece) else {
            return;
        };
        if length == 0 || dead.load(Ordering::SeqCst) {
            return;
        }
        pending.extend_from_slice(&piece[..length]);
        while let Some(end) = pending.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&pending[..end]).into_owned();
            pending.drain(..end + 4);
            let path = head.split_whitespace().nth(1).unwrap_or("/");
            let path = path.trim_start_matches('/').to_owned();
            let Ok(bytes) = std::fs::read(dir.join(&path)) else {
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
                continue;
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len());
            let _ = stream.write_all(head.as_bytes());
            if endings.iter().any(|end| path.ends_with(end)) {
                let _ = stream.write_all(&bytes[..bytes.len() / 2]);
                dead.store(true, Ordering::SeqCst);
                return;
            }
            let _ = stream.write_all(&bytes);
        }
    }
}
