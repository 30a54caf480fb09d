use gdr_agent::reboot::{Answer, Coordinator, FleetLock, HttpError, Lock, NoCoordinator, Wire};
use gdr_policy::{FleetlockGroup, FleetlockUrl};

#[derive(Debug)]
struct Says(u16, Vec<u8>);

impl Wire for Says {
    fn post(&self, _: &str, _: &[(&str, &str)], _: &[u8]) -> Result<Answer, HttpError> {
        Ok(Answer {
            status: self.0,
            location: None,
            body: self.1.clone(),
        })
    }
}

/// FleetLock servers' answers: yes is 200 and nothing else, and a no can be shown whatever its words are.
pub fn fleetlock(data: &[u8]) {
    let Some((status, body)) = data.split_first_chunk::<2>() else {
        return;
    };
    let status = u16::from_le_bytes(*status) % 600;
    let lock = Lock {
        url: "http://192.0.2.1".parse::<FleetlockUrl>().unwrap(),
        group: "default".parse::<FleetlockGroup>().unwrap(),
        id: "node".into(),
        ca: None,
        held: true,
        since: 0,
    };
    let server = FleetLock::new(Says(status, body.to_vec()), lock, Box::new(NoCoordinator));
    match server.release() {
        Ok(()) => assert_eq!(status, 200),
        Err(refusal) => {
            assert_ne!(status, 200);
            super::shown(&refusal.to_string());
        }
    }
}
