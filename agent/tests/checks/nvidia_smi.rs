use gdr_agent::gpu::topo::{Matrix, compare};
use gdr_agent::gpu::{Asked, Gpus, Smi, findings};
use gdr_agent::pci::topology::Topology;

/// `nvidia-smi -q`, XML and text, and `topo -m`: a square table, and nothing that commands a terminal.
pub fn nvidia_smi(data: &[u8]) {
    match Smi::read(data) {
        Ok(smi) => {
            for gpu in &smi.gpus {
                gpu.name.iter().for_each(|name| super::shown(name));
                gpu.sick.iter().for_each(|value| super::shown(value));
            }
            let gpus = Gpus {
                windows: Vec::new(),
                smi: Asked::Said(smi),
                topo: Asked::No,
            };
            findings(&gpus).iter().for_each(super::finding_shown);
        }
        Err(why) => super::shown(&why),
    }
    if let Some(matrix) = Matrix::read(data) {
        let count = matrix.names.len();
        assert!(matrix.rows.len() == count && matrix.cpus.len() == count);
        assert!(
            matrix
                .rows
                .iter()
                .all(|row| row.is_empty() || row.len() == count)
        );
        matrix.names.iter().for_each(|name| super::shown(name));
        for (name, device) in &matrix.nics {
            super::shown(name);
            super::shown(device);
        }
        let _ = compare(&matrix, &Topology::default(), &[], &[]);
    }
}
