/* Packets at the network devices, with their headers. */
#pragma once

#include "running.h"

#define ETHERTYPE_IPV4 0x0008 /* In memory order, which is big endian. */
#define ETHERTYPE_IPV6 0xdd86
#define NO_HEADER 0xffff

#define PROTOCOL_ICMP 1
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

#define IPV4_SIZE 20
#define IPV6_SIZE 40
#define IPV4_FRAGMENT 6
#define IPV4_PROTOCOL 9
#define IPV6_NEXT 6
#define TCP_SIZE 20
#define SHORT_SIZE 8

/* Selectors of the variants in events.tsdl. */
enum network_header { NETWORK_UNKNOWN, NETWORK_IPV4, NETWORK_IPV6 };
enum transport_header { TRANSPORT_UNKNOWN, TRANSPORT_TCP, TRANSPORT_UDP, TRANSPORT_ICMP };

struct name {
	u64 words[NAME_SLOT / 8];
} __attribute__((packed, aligned(4)));

/* The headers follow in the order of the wire, each after its selector. */
struct packet {
	struct head head;
	u64 skbaddr;
	u32 len;
	struct name name;
	u8 network;
	u8 headers[IPV6_SIZE + 1 + TCP_SIZE];
} PACKED;

#define UP_TO_HEADERS offset_of(struct packet, headers)

/* Copies the selector and the header that follow the network header; returns their size. */
INLINE u32 copy_transport(u8 *to, u8 protocol, const u8 *from)
{
	to[0] = TRANSPORT_UNKNOWN;
	if (protocol == PROTOCOL_TCP) {
		if (!bpf_probe_read_kernel(to + 1, TCP_SIZE, from)) {
			to[0] = TRANSPORT_TCP;
			return 1 + TCP_SIZE;
		}
	} else if (protocol == PROTOCOL_UDP || protocol == PROTOCOL_ICMP) {
		if (!bpf_probe_read_kernel(to + 1, SHORT_SIZE, from)) {
			to[0] = protocol == PROTOCOL_UDP ? TRANSPORT_UDP : TRANSPORT_ICMP;
			return 1 + SHORT_SIZE;
		}
	}
	return 1;
}

INLINE u32 copy_headers(struct packet *record, u16 type, const u8 *from)
{
	u8 *to = record->headers;

	if (type == ETHERTYPE_IPV4 && !bpf_probe_read_kernel(to, IPV4_SIZE, from)) {
		record->network = NETWORK_IPV4;
		/* Only the first fragment contains the transport header. */
		if ((to[IPV4_FRAGMENT] & 0x1f) | to[IPV4_FRAGMENT + 1]) {
			to[IPV4_SIZE] = TRANSPORT_UNKNOWN;
			return IPV4_SIZE + 1;
		}
		return IPV4_SIZE + copy_transport(to + IPV4_SIZE, to[IPV4_PROTOCOL], from + (to[0] & 15) * 4);
	}
	if (type == ETHERTYPE_IPV6 && !bpf_probe_read_kernel(to, IPV6_SIZE, from)) {
		record->network = NETWORK_IPV6;
		return IPV6_SIZE + copy_transport(to + IPV6_SIZE, to[IPV6_NEXT], from + IPV6_SIZE);
	}
	return 0;
}

INLINE void copy_device(struct name *to, struct net_device *device)
{
	/* All 16 bytes, since readers stop at the first null, and copying up to it would take longer. */
	to->words[0] = device ? ((u64 *)device->name)[0] : 0;
	to->words[1] = device ? ((u64 *)device->name)[1] : 0;
}

/* `network` is the offset of the network header from the buffer's head. */
INLINE int send_packet(struct sk_buff *skb, u16 kind, u32 network)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct packet *record = reserve(cpu, kind, 0, sizeof(struct packet));
	u32 size = 0;

	if (!record)
		return 0;
	record->skbaddr = (u64)skb;
	record->len = skb->len;
	copy_device(&record->name, skb->dev);
	record->network = NETWORK_UNKNOWN;
	if (network != NO_HEADER)
		size = copy_headers(record, skb->protocol, skb->head + network);
	end_after(record, UP_TO_HEADERS + size);
	return 0;
}

SEC("tp_btf/net_dev_queue")
int on_net_dev_queue(u64 *args)
{
	struct sk_buff *skb = (void *)args[0];

	return send_packet(skb, KIND_net_dev_queue, skb->network_header);
}

/* The link-layer header has been removed, and the network header's offset is not set before the
 * next layer. */
SEC("tp_btf/netif_receive_skb")
int on_netif_receive_skb(u64 *args)
{
	struct sk_buff *skb = (void *)args[0];

	return send_packet(skb, KIND_net_if_receive_skb, skb->data - skb->head);
}

struct transmitted {
	struct head head;
	u64 skbaddr;
	s32 rc;
	u32 len;
	struct name name;
} PACKED;

SEC("tp_btf/net_dev_xmit")
int on_net_dev_xmit(u64 *args)
{
	BEGIN(record, transmitted, net_dev_xmit);
	record->skbaddr = args[0];
	record->rc = args[1];
	record->len = args[3];
	copy_device(&record->name, (void *)args[2]);
	end(record);
	return 0;
}

/* A connection, or an attempt to connect, with the types of the kernel's `inet_sock_set_state`. */
struct addresses {
	u8 saddr[4];
	u8 daddr[4];
	u8 saddr_v6[16];
	u8 daddr_v6[16];
};

#define FAMILY_IPV4 2
#define FAMILY_IPV6 10

/* Zeros if the address family has no such address. */
INLINE void copy_addresses(struct addresses *to, struct sock *sock)
{
	__builtin_memset(to, 0, sizeof(*to));
	if (sock->__sk_common.skc_family == FAMILY_IPV4) {
		*(u32 *)to->saddr = sock->__sk_common.skc_rcv_saddr;
		*(u32 *)to->daddr = sock->__sk_common.skc_daddr;
	} else if (sock->__sk_common.skc_family == FAMILY_IPV6) {
		bpf_probe_read_kernel(to->saddr_v6, 16, &sock->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(to->daddr_v6, 16, &sock->__sk_common.skc_v6_daddr);
	}
}

struct socket_state {
	struct head head;
	u64 skaddr;
	s32 oldstate;
	s32 newstate;
	u16 sport;
	u16 dport;
	u16 family;
	u16 protocol;
	struct addresses addresses;
} PACKED;

SEC("tp_btf/inet_sock_set_state")
int on_inet_sock_set_state(u64 *args)
{
	struct sock *sock = (void *)args[0];

	BEGIN(record, socket_state, inet_sock_set_state);
	record->skaddr = args[0];
	record->oldstate = args[1];
	record->newstate = args[2];
	record->sport = sock->__sk_common.skc_num;
	record->dport = __builtin_bswap16(sock->__sk_common.skc_dport);
	record->family = sock->__sk_common.skc_family;
	record->protocol = sock->sk_protocol;
	copy_addresses(&record->addresses, sock);
	end(record);
	return 0;
}

struct retransmitted {
	struct head head;
	u64 skbaddr;
	u64 skaddr;
	s32 state;
	u16 sport;
	u16 dport;
	u16 family;
	struct addresses addresses;
} PACKED;

SEC("tp_btf/tcp_retransmit_skb")
int on_tcp_retransmit_skb(u64 *args)
{
	struct sock *sock = (void *)args[0];

	BEGIN(record, retransmitted, tcp_retransmit_skb);
	record->skbaddr = args[1];
	record->skaddr = args[0];
	record->state = sock->__sk_common.skc_state;
	record->sport = sock->__sk_common.skc_num;
	record->dport = __builtin_bswap16(sock->__sk_common.skc_dport);
	record->family = sock->__sk_common.skc_family;
	copy_addresses(&record->addresses, sock);
	end(record);
	return 0;
}
