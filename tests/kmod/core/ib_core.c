// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Stands in for the RDMA core: keeps the names of its clients, each once. */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include "peers.h"

/* What every RDMA core exports. */
int ib_register_client(void *client);
int ib_register_client(void *client)
{
	return client ? 0 : -EINVAL;
}
EXPORT_SYMBOL(ib_register_client);

#ifndef WITHOUT_PEERS
static DEFINE_MUTEX(lock);
static const struct peer_memory_client *clients[8];

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     int (**invalidate)(void *, unsigned long long))
{
	void *handle = NULL;
	unsigned int i;

	mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(clients); i++)
		if (clients[i] && !strcmp(clients[i]->name, client->name))
			goto out;
	for (i = 0; i < ARRAY_SIZE(clients); i++) {
		if (clients[i])
			continue;
		clients[i] = client;
		handle = &clients[i];
		break;
	}
out:
	mutex_unlock(&lock);
	return handle;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *handle)
{
	mutex_lock(&lock);
	*(const struct peer_memory_client **)handle = NULL;
	mutex_unlock(&lock);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);
#endif

MODULE_DESCRIPTION("Stand-in for the RDMA core");
MODULE_LICENSE("Dual MIT/GPL");
