/*
 * The calls of "User-level TCP" (TCPU), by their names, over libtransom.
 *
 * They are those of BSD sockets, but that accept_tcpu listens too, and that send_tcpu has a flag for short messages. What differs from the
 * paper: protocol is 0 or IPPROTO_TCP, as what lies below TCP is chosen by the stack's device; recv_tcpu waits for as long as SO_RCVTIMEO
 * says, and gives 0 only at the end of the stream.
 */
#ifndef TRANSOM_TCPU_H
#define TRANSOM_TCPU_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <transom/transom.h>

/* send_tcpu: send now, and do not wait for more to send with it. */
#define TF_NODELAY 0x01000000

#ifdef __cplusplus
extern "C" {
#endif

static inline int socket_tcpu(int domain, int type, int protocol)
{
    return transom_socket(domain, type, protocol);
}

static inline int bind_tcpu(int socket, const struct sockaddr_in *addr, socklen_t addrlen)
{
    return transom_bind(socket, (const struct sockaddr *)addr, addrlen);
}

/* listen and accept in one. */
static inline int accept_tcpu(int socket, struct sockaddr_in *addr, socklen_t *addrlen)
{
    int listens = 0;
    socklen_t len = sizeof listens;

    if (transom_getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0)
        return -1;
    if (!listens && transom_listen(socket, SOMAXCONN) != 0)
        return -1;
    return transom_accept(socket, (struct sockaddr *)addr, addrlen);
}

static inline int connect_tcpu(int socket, const struct sockaddr_in *addr, socklen_t addrlen)
{
    return transom_connect(socket, (const struct sockaddr *)addr, addrlen);
}

static inline int close_tcpu(int socket)
{
    return transom_close(socket);
}

/* Without TF_NODELAY, what does not fill a segment may wait until earlier data is acknowledged. */
static inline ssize_t send_tcpu(int socket, const void *buffer, size_t length, int flags)
{
    int now = (flags & TF_NODELAY) != 0;

    if (transom_setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now) != 0)
        return -1;
    return transom_send(socket, buffer, length, flags & ~TF_NODELAY);
}

static inline ssize_t recv_tcpu(int socket, void *buffer, size_t length, int flags)
{
    return transom_recv(socket, buffer, length, flags);
}

/* The eighth: ends one direction, or both, and keeps the descriptor. */
static inline int shutdown_tcpu(int socket, int how)
{
    return transom_shutdown(socket, how);
}

#ifdef __cplusplus
}
#endif

#endif
