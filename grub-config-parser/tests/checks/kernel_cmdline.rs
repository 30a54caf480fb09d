use grub_config_parser::cmdline::{CommandLine, Edit};
use grub_config_parser::kernel_cmdline::KernelCmdline;

use super::{done, edits, only_an_argument};

/// `/etc/kernel/cmdline`.
pub fn kernel_cmdline(data: &[u8]) {
    let Ok(file) = KernelCmdline::parse(data) else {
        assert!(data.contains(&0) || std::str::from_utf8(data).is_err());
        return;
    };
    assert_eq!(file.as_bytes(), data);
    let comments = file.comments();
    let (set, remove) = edits(&file.cmdline());
    for arg in &set {
        check(&file, &comments, &Edit::Set(arg));
    }
    for pattern in &remove {
        check(&file, &comments, &Edit::Remove(pattern));
    }
}

/// The text without comments.
fn plain(file: &KernelCmdline) -> String {
    let text = std::str::from_utf8(file.as_bytes()).unwrap();
    let lines = text.split_inclusive('\n');
    lines
        .filter(|line| !line.trim_start_matches([' ', '\t']).starts_with('#'))
        .collect()
}

fn check(file: &KernelCmdline, comments: &[usize], edit: &Edit<'_>) {
    let before = CommandLine::parse(&plain(file));
    let mut wanted = before.clone();
    edit.apply(&mut wanted);
    let edited = match file.edit(edit) {
        Ok(None) => return assert_eq!(wanted, before),
        Ok(Some(edited)) => edited,
        Err(_) => {
            return assert!(
                file.as_bytes()
                    .iter()
                    .any(|byte| matches!(byte, b'"' | b'#'))
            );
        }
    };
    only_an_argument(file.as_bytes(), edited.as_bytes(), edit);
    assert_eq!(edited.comments().len(), comments.len());
    let read = CommandLine::parse(&plain(&edited));
    assert_eq!(read, wanted);
    assert!(done(&read, edit));
}
