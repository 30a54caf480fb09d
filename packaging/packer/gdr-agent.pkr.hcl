# An image whose first boot is the trial. The package and the policy lie beside this file.
#
# Packer is not run by the project's tests: they run the two commands of the last provisioner in a chroot.

# For `packer init`: Packer 1.10 and later bring no plugin along.
packer {
  required_plugins {
    qemu = {
      source  = "github.com/hashicorp/qemu"
      version = ">= 1.1.0"
    }
  }
}

variable "package" {
  type    = string
  default = "gdr-agent.deb"
}

source "qemu" "node" {
  iso_url          = "debian-12-genericcloud-amd64.qcow2"
  iso_checksum     = "none"
  disk_image       = true
  ssh_username     = "root"
  shutdown_command = "systemctl poweroff"
}

build {
  sources = ["source.qemu.node"]

  provisioner "file" {
    source      = var.package
    destination = "/tmp/gdr-agent.deb"
  }

  provisioner "shell" {
    inline = [
      "apt-get install -y /tmp/gdr-agent.deb",
      "rm /tmp/gdr-agent.deb",
    ]
  }

  provisioner "file" {
    source      = "policy.toml"
    destination = "/etc/gdr-agent/policy.toml"
  }

  # After everything that changes kernels or GRUB. 8: the trial is outstanding.
  provisioner "shell" {
    inline           = ["gdr-agent policy check", "gdr-agent apply --bake"]
    valid_exit_codes = [0, 8]
  }
}
