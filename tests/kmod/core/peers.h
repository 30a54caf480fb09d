/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The interface between the RDMA core and whoever owns memory that is not the system's. */
#ifndef PEERS_H
#define PEERS_H

struct peer_memory_client {
	char name[64];
	char version[16];
#ifdef OTHER_INTERFACE
	/* One member more is another type, and so another symbol version. */
	unsigned long flags;
#endif
};

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     int (**invalidate)(void *, unsigned long long));
void ib_unregister_peer_memory_client(void *handle);

#endif
