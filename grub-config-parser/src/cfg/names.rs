//! The names of GRUB's own commands: a function of the same name is never called.

/// Sorted. From the command lists of GRUB's x86 images, and `blscfg`.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    ".", "915resolution", "[", "acpi", "appleloader", "authenticate",
    "background_color", "background_image", "backtrace", "badram", "blocklist", "blscfg", "boot",
    "break", "cat", "cbmemc", "chainloader", "clear", "cmosclean", "cmosdump", "cmosset",
    "cmostest", "cmp", "configfile", "continue", "coreboot_boottime", "cpuid", "crc",
    "cryptomount", "cutmem", "date", "distrust", "drivemap", "dump", "echo", "efiemu_loadcore",
    "efiemu_prepare", "efiemu_unload", "eval", "exit", "export", "extract_entries_configfile",
    "extract_entries_source", "extract_legacy_entries_configfile", "extract_legacy_entries_source",
    "extract_syslinux_entries_configfile", "extract_syslinux_entries_source", "fakebios", "false",
    "file", "fix_video", "freedos", "fwsetup", "gdbstub", "gdbstub_break",
    "gdbstub_stop", "gettext", "gptsync", "halt", "hashsum", "hdparm", "help", "hexdump",
    "hexdump_random", "hwmatch", "inb", "initrd", "initrd16", "initrdefi", "inl", "insmod", "inw",
    "keymap", "keystatus", "kfreebsd", "kfreebsd_loadenv", "kfreebsd_module",
    "kfreebsd_module_elf", "knetbsd", "knetbsd_module", "knetbsd_module_elf", "kopenbsd",
    "kopenbsd_ramdisk", "legacy_check_password", "legacy_configfile", "legacy_initrd",
    "legacy_initrd_nounzip", "legacy_kernel", "legacy_password", "legacy_source", "linux",
    "linux16", "linuxefi", "list_env", "list_trusted", "load_env", "loadbios", "loadfont",
    "loopback", "ls", "lsacpi", "lsapm", "lscoreboot", "lsefi", "lsefimmap", "lsefisystab",
    "lsfonts", "lsmmap", "lsmod", "lspci", "lssal", "macppcbless", "mactelbless", "md5sum",
    "menuentry", "module", "module2", "multiboot", "multiboot2", "nativedisk", "net_add_addr",
    "net_add_dns", "net_add_route", "net_bootp", "net_bootp6", "net_del_addr", "net_del_dns",
    "net_del_route", "net_dhcp", "net_get_dhcp_option", "net_ipv6_autoconf", "net_ls_addr",
    "net_ls_cards", "net_ls_dns", "net_ls_routes", "net_nslookup", "normal", "normal_exit",
    "ntldr", "outb", "outl", "outw", "parttool", "password", "password_pbkdf2", "pcidump", "plan9",
    "play", "probe", "pxechainloader", "rdmsr", "read", "read_byte", "read_dword", "read_word",
    "reboot", "regexp", "return", "rmmod", "save_env", "search", "search.file", "search.fs_label",
    "search.fs_uuid", "sendkey", "serial", "set", "setparams", "setpci", "sha1sum", "sha256sum",
    "sha512sum", "shift", "sleep", "smbios", "source", "submenu", "syslinux_configfile",
    "syslinux_source", "terminal_input", "terminal_output", "terminfo", "test", 
    "testload", "testspeed", "time", "tr", "true", "truecrypt", "trust", "unset", "usb", "vbeinfo",
    "vbetest", "verify_detached", "videoinfo", "videotest", "write_byte", "write_dword",
    "write_word", "wrmsr", "xnu_devprop_load", "xnu_kernel", "xnu_kernel64", "xnu_kext",
    "xnu_kextdir", "xnu_mkext", "xnu_ramdisk", "xnu_resume", "xnu_splash", "xnu_uuid",
    "zfs-bootfs", "zfsinfo", "zfskey",
];

/// True if GRUB itself has a command of this name.
pub(super) fn is_grub_command(name: &[u8]) -> bool {
    COMMANDS
        .binary_search_by(|known| known.as_bytes().cmp(name))
        .is_ok()
}
