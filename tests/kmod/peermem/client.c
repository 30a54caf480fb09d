// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Stands in for nvidia-peermem: registers the client nv_mem, and serves no memory. */
#include <linux/module.h>

#include "peers.h"

#ifdef OTHER_KERNEL
/* The first vermagic of a module counts, and this comes before the one that the build adds. */
MODULE_INFO(vermagic, "5.10.0-1-other SMP mod_unload modversions ");
#endif

#ifdef STUB

static int __init client_init(void)
{
	return -EINVAL;
}

static void __exit client_exit(void)
{
}

#else

static const struct peer_memory_client client = {
	.name = "nv_mem",
	.version = "1.0",
};
static int (*invalidate)(void *, unsigned long long);
static void *handle;

static int __init client_init(void)
{
	handle = ib_register_peer_memory_client(&client, &invalidate);
	if (handle)
		return 0;
	pr_err("nvidia-peermem %s:%d ERROR error while registering client\n",
	       __func__, __LINE__);
	return -EINVAL;
}

static void __exit client_exit(void)
{
	ib_unregister_peer_memory_client(handle);
}

#endif

module_init(client_init);
module_exit(client_exit);

MODULE_DESCRIPTION("Stand-in for NVIDIA's GPU memory plug-in");
MODULE_VERSION("570.148.08");
MODULE_LICENSE("Dual MIT/GPL");
