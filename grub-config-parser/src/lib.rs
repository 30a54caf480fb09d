//! grub-config-parser
