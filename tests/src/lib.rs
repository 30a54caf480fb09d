//! gdr-tests
