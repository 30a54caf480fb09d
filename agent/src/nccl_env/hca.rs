//! `NCCL_IB_HCA`: which RDMA devices NCCL uses (`parseStringList` and `matchIfList` in `src/misc/utils.cc`).

/// Whether a device's port is used: `^` before the list excludes, `=` wants whole names, else a name's beginning is enough; `name:port` is one
/// port.
#[must_use]
pub(super) fn uses(list: &str, device: &str, port: u32) -> bool {
    let (exclude, rest) = match list.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, list),
    };
    let (exact, rest) = match rest.strip_prefix('=') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut names = rest
        .split(',')
        .filter(|name| !name.is_empty())
        .take(1024)
        .peekable();
    if names.peek().is_none() {
        return true;
    }
    let fits = names.any(|name| {
        let (name, wanted) = match name.split_once(':') {
            Some((name, port)) => (name, port.parse::<u32>().ok()),
            None => (name, None),
        };
        let named = if exact {
            name == device
        } else {
            device.starts_with(name)
        };
        named && wanted.is_none_or(|wanted| wanted == port)
    });
    fits != exclude
}

#[cfg(test)]
mod tests {
    use super::uses;

    #[test]
    fn prefixes_exact_names_and_exclusion() {
        assert!(uses("mlx5", "mlx5_10", 1));
        assert!(uses("mlx5_1", "mlx5_10", 1));
        assert!(!uses("=mlx5_1", "mlx5_10", 1));
        assert!(uses("=mlx5_0:1,mlx5_1:1", "mlx5_1", 1));
        assert!(!uses("=mlx5_0:1,mlx5_1:2", "mlx5_1", 1));
        assert!(!uses("^mlx5_2", "mlx5_2", 1));
        assert!(uses("^=mlx5_2", "mlx5_20", 1));
        assert!(uses("", "mlx5_0", 1));
        assert!(!uses("ib0", "mlx5_0", 1));
    }
}
