//! gdr-policy
