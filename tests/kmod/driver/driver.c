// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Stands in for the GPU's driver: is loaded, and does nothing. */
#include <linux/module.h>

MODULE_DESCRIPTION("Stand-in for NVIDIA's driver");
MODULE_VERSION("570.148.08");
MODULE_LICENSE("Dual MIT/GPL");
