/*
 * Makes a program that was written for the system's sockets use libtransom for TCP: compile it with
 *
 *     cc -include transom/compat.h …
 *
 * Sockets of other kinds, and files, stay the system's: the functions here tell them apart by their descriptors. What is not covered: dup(2),
 * fdopen(3) and other ways of the C library to a descriptor, passing a socket to another process, sockets across fork(2) and execve(2).
 */
#ifndef TRANSOM_COMPAT_H
#define TRANSOM_COMPAT_H

/* The system's own declarations come first, so that the names below do not change them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <transom/transom.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TCP sockets are Transom's, and all others the system's. */
static inline int transom_compat_socket(int domain, int type, int protocol)
{
    int internet = domain == AF_INET || domain == AF_INET6;
    int stream = (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM;

    if (internet && stream && (protocol == 0 || protocol == IPPROTO_TCP))
        return transom_socket(domain, type, protocol);
    return (socket)(domain, type, protocol);
}

static inline int transom_compat_fcntl(int fd, int command, ...)
{
    va_list arguments;
    long argument;

    va_start(arguments, command);
    argument = va_arg(arguments, long);
    va_end(arguments);
    return transom_fcntl(fd, command, argument);
}

static inline int transom_compat_ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    void *argument;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return transom_ioctl(fd, request, argument);
}

#ifdef __cplusplus
}
#endif

#define socket transom_compat_socket
#define fcntl transom_compat_fcntl
#define ioctl transom_compat_ioctl
#define bind transom_bind
#define listen transom_listen
#define accept transom_accept
#define accept4 transom_accept4
#define connect transom_connect
#define getsockname transom_getsockname
#define getpeername transom_getpeername
#define getsockopt transom_getsockopt
#define setsockopt transom_setsockopt
#define shutdown transom_shutdown
#define close transom_close
#define read transom_read
#define readv transom_readv
#define recv transom_recv
#define recvfrom transom_recvfrom
#define recvmsg transom_recvmsg
#define write transom_write
#define writev transom_writev
#define send transom_send
#define sendto transom_sendto
#define sendmsg transom_sendmsg
#define sendfile transom_sendfile
#define poll transom_poll
#define ppoll transom_ppoll
#define select transom_select
#define pselect transom_pselect
#define epoll_ctl transom_epoll_ctl

#endif
