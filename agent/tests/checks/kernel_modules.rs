use gdr_agent::kmod::{Module, UnpackError, unpack};

/// Kernel modules as files: packed in any way, an error or what an ELF file says, and never more than the limit.
pub fn kernel_modules(data: &[u8]) {
    const LIMIT: u64 = 1 << 20;
    match unpack(data.to_vec(), LIMIT) {
        Ok(bytes) => {
            assert!(bytes.len() as u64 <= LIMIT.max(data.len() as u64));
            let _ = Module::read(bytes.as_slice(), &bytes);
        }
        Err(error @ UnpackError::Damaged { .. }) => super::shown(&error.to_string()),
        Err(UnpackError::TooLarge(_)) => {}
    }
}
