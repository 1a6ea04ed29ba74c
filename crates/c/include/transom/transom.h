/*
 * libtransom: BSD sockets over a TCP in user space.
 *
 * Made from the sources by tests/header.rs; do not edit. The manual page is transom(3).
 *
 * Each call returns -1 and sets errno when it fails, as the system's call of the same name does. A descriptor
 * that is none of this library's goes to that system call, so that both kinds can be used side by side. A socket of this
 * library's is used with these functions alone: for others, such as read(2), its descriptor is of no use.
 */

#ifndef TRANSOM_TRANSOM_H
#define TRANSOM_TRANSOM_H

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library.
const char *transom_version(void);

// Opens a device and starts a stack on it. `device` is a word such as "tun:transom0" (docs/devices.md). `addresses` are the stack's own with
// the lengths of their prefixes, as "192.0.2.1/24,2001:db8::1/64"; NULL: those that the device gives. `tcp` are the units of TCP, as
// "cubic + sack"; NULL: the usual ones.
//
// Returns the stack's number, which is above 0. Errors: EINVAL for words that make no sense, and what is wrong with the device: EPERM,
// ENODEV, EBUSY and others. transom_message then says why, in words.
//
// What the pointers must be:
// Each of the three is null or a string that ends.
int transom_stack_open(const char *device,
                       const char *addresses,
                       const char *tcp);

// Lets go of a stack. It ends when its last socket is closed, once everything is acknowledged or two seconds have passed.
//
// Returns 0. Errors: EBADF for a number that is no stack's.
int transom_stack_close(int stack);

// Makes a stack the one on which transom_socket makes sockets, in all threads.
//
// Returns 0. Errors: EBADF for a number that is no stack's.
int transom_stack_default(int stack);

// A descriptor to wait for with poll, epoll and the like. It is readable while one of the sockets that transom_watch was called for is ready, until
// transom_ready has found none. It is the library's: do not read, write or close it. `stack` may be 0, for the default one.
//
// Returns the descriptor. Errors: EBADF for a number that is no stack's.
int transom_stack_fd(int stack);

// Copies to `text`, which has room for `room` bytes, why this thread's last call failed that could say more than a number: one that opened a stack,
// or panicked. The copy is cut if it has to be, and ends with a zero byte if there is any room.
//
// Returns the length of the whole, without the zero byte.
//
// What the pointers must be:
// `text` is null or valid for writing `room` bytes.
size_t transom_message(char *text,
                       size_t room);

// Makes a TCP socket on the default stack: AF_INET or AF_INET6, SOCK_STREAM with SOCK_NONBLOCK or SOCK_CLOEXEC, and 0 or IPPROTO_TCP.
//
// Returns a descriptor. Errors: EAFNOSUPPORT, ESOCKTNOSUPPORT, EPROTONOSUPPORT, EMFILE; as transom_stack_open, if the default stack is opened by this.
int transom_socket(int domain,
                   int kind,
                   int protocol);

// Makes a TCP socket on a stack.
//
// Returns a descriptor. Errors: EBADF for a number that is no stack's, and as transom_socket.
int transom_socket_on(int stack, int domain, int kind, int protocol);

// Whether a descriptor is a socket of this library: 1 or 0.
int transom_is_socket(int fd);

// bind(2). Port 0 takes a free one.
//
// Returns 0. Errors: EINVAL if it is bound or connected or the address too short, EAFNOSUPPORT, EADDRNOTAVAIL if the address is not the
// stack's, EADDRINUSE.
//
// What the pointers must be:
// `addr` is null or valid for reading `len` bytes.
int transom_bind(int fd,
                 const struct sockaddr *addr,
                 socklen_t len);

// listen(2).
//
// Returns 0. Errors: EINVAL for a connected socket, EADDRINUSE.
int transom_listen(int fd, int backlog);

// connect(2). A blocking socket waits for the handshake.
//
// Returns 0. Errors: EINPROGRESS, EALREADY, EISCONN, EINTR, EAFNOSUPPORT, EADDRNOTAVAIL, ENETUNREACH, EINVAL, and how the attempt failed: ECONNREFUSED,
// ETIMEDOUT and others.
//
// What the pointers must be:
// `addr` is null or valid for reading `len` bytes.
int transom_connect(int fd,
                    const struct sockaddr *addr,
                    socklen_t len);

// accept(2). The peer's address goes to `addr` unless that is NULL; `*len` is the room there and then its length.
//
// Returns a descriptor. Errors: EAGAIN, EINTR, EINVAL if the socket does not listen, EMFILE.
//
// What the pointers must be:
// `addr` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
int transom_accept(int fd,
                   struct sockaddr *addr,
                   socklen_t *len);

// accept4(2): transom_accept with SOCK_NONBLOCK or SOCK_CLOEXEC for the new socket.
//
// Returns as transom_accept.
//
// What the pointers must be:
// As for transom_accept.
int transom_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

// getsockname(2); `*len` is the room at `addr` and then the address' length.
//
// Returns 0.
//
// What the pointers must be:
// `addr` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
int transom_getsockname(int fd, struct sockaddr *addr, socklen_t *len);

// getpeername(2); `*len` is the room at `addr` and then the address' length.
//
// Returns 0. Errors: ENOTCONN.
//
// What the pointers must be:
// As for transom_getsockname.
int transom_getpeername(int fd, struct sockaddr *addr, socklen_t *len);

// getsockopt(2). `*len` is the room at `value` and then how much of it was used.
//
// Returns 0. Errors: ENOPROTOOPT, ENOTCONN for the MTU without a connection.
//
// What the pointers must be:
// `value` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
int transom_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

// setsockopt(2). docs/sockets.md lists the options.
//
// Returns 0. Errors: ENOPROTOOPT, EINVAL, ENOENT for a congestion controller there is not.
//
// What the pointers must be:
// `value` is null or valid for reading `len` bytes.
int transom_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

// shutdown(2): SHUT_RD, SHUT_WR or SHUT_RDWR. Calls of other threads that wait on the socket end.
//
// Returns 0. Errors: EINVAL, ENOTCONN.
int transom_shutdown(int fd, int how);

// close(2). The descriptor is free at once. While another thread waits in a call on the socket, the connection stays open until that call
// ends, as on Linux; transom_shutdown ends it.
//
// Returns 0. Errors: EBADF.
int transom_close(int fd);

// fcntl(2) with F_GETFL and F_SETFL (O_NONBLOCK), F_GETFD and F_SETFD. `argument` is 0 where there is none.
//
// Returns the flags, or 0. Errors: EINVAL for any other command.
int transom_fcntl(int fd, int command, long argument);

// ioctl(2) with FIONREAD, TIOCOUTQ, SIOCATMARK, SIOCOUTQNSD, whose answer goes to the integer at `argument`, and FIONBIO.
//
// Returns 0. Errors: EINVAL for a listener, ENOTTY for any other request.
//
// What the pointers must be:
// `argument` is null or valid for reading and writing an integer; for other descriptors it is what the request says.
int transom_ioctl(int fd,
                  unsigned long request,
                  void *argument);

// read(2): up to `len` bytes; 0 is the end of the stream.
//
// Returns their number. Errors: as transom_recv.
//
// What the pointers must be:
// `to` is null or valid for writing `len` bytes.
ssize_t transom_read(int fd, void *to, size_t len);

// recv(2) with MSG_PEEK, MSG_OOB, MSG_WAITALL, MSG_DONTWAIT, or MSG_TRUNC, with which `to` may be NULL.
//
// Returns the number of bytes. Errors: EAGAIN, EINTR, ENOTCONN, EINVAL for MSG_OOB without an urgent byte, EOPNOTSUPP for other flags, and once
// how the connection ended: ECONNRESET, ETIMEDOUT and others.
//
// What the pointers must be:
// `to` is null or valid for writing `len` bytes.
ssize_t transom_recv(int fd,
                     void *to,
                     size_t len,
                     int flags);

// recvfrom(2): transom_recv. A stream names no sender, so `*addr_len` becomes 0.
//
// Returns as transom_recv.
//
// What the pointers must be:
// As for transom_recv; `addr` is null or valid for writing `*addr_len` bytes, and `addr_len` is null or valid for writing.
ssize_t transom_recvfrom(int fd,
                         void *to,
                         size_t len,
                         int flags,
                         struct sockaddr *addr,
                         socklen_t *addr_len);

// readv(2).
//
// Returns the number of bytes. Errors: as transom_recv, and EINVAL for more than 1024 pieces.
//
// What the pointers must be:
// `pieces` is null or valid for reading `piece_count` structures, and what they describe for writing, without overlap.
ssize_t transom_readv(int fd,
                      const struct iovec *pieces,
                      int piece_count);

// recvmsg(2): the data alone. There are no control messages, and no sender's address.
//
// Returns the number of bytes. Errors: as transom_recv, and EMSGSIZE for more than 1024 pieces.
//
// What the pointers must be:
// `message` is null or valid for reading and writing, and what its pieces describe for writing, without overlap.
ssize_t transom_recvmsg(int fd,
                        struct msghdr *message,
                        int flags);

// write(2). A blocking socket takes all bytes, a non-blocking one what there is room for.
//
// Returns their number. Errors: as transom_send.
//
// What the pointers must be:
// `from` is null or valid for reading `len` bytes.
ssize_t transom_write(int fd, const void *from, size_t len);

// send(2) with MSG_OOB, MSG_EOR, MSG_MORE, MSG_DONTWAIT, MSG_NOSIGNAL.
//
// Returns the number of bytes. Errors: EAGAIN, EINTR, EPIPE, with SIGPIPE unless there is MSG_NOSIGNAL, EOPNOTSUPP for other flags, and once how the
// connection ended.
//
// What the pointers must be:
// `from` is null or valid for reading `len` bytes.
ssize_t transom_send(int fd,
                     const void *from,
                     size_t len,
                     int flags);

// sendto(2): transom_send, or with MSG_FASTOPEN transom_connect and transom_send in one. Without that flag the address is not looked at.
//
// Returns the number of bytes. Errors: as transom_connect and transom_send.
//
// What the pointers must be:
// `from` is null or valid for reading `len` bytes; `addr` is null or valid for reading `addr_len` bytes.
ssize_t transom_sendto(int fd,
                       const void *from,
                       size_t len,
                       int flags,
                       const struct sockaddr *addr,
                       socklen_t addr_len);

// writev(2).
//
// Returns the number of bytes. Errors: as transom_send, and EINVAL for more than 1024 pieces.
//
// What the pointers must be:
// `pieces` is null or valid for reading `piece_count` structures, and what they describe too.
ssize_t transom_writev(int fd, const struct iovec *pieces, int piece_count);

// sendmsg(2): the data, and with MSG_FASTOPEN the address. Control messages are not looked at.
//
// Returns the number of bytes. Errors: as transom_sendto, and EMSGSIZE for more than 1024 pieces.
//
// What the pointers must be:
// `message` is null or valid for reading, and so is what it describes.
ssize_t transom_sendmsg(int fd, const struct msghdr *message, int flags);

// sendfile(2) to a socket: `len` bytes of the file `in` from `*offset` on, which moves; from the file's own position if `offset` is NULL.
//
// Returns the number of bytes. Errors: as transom_send and read(2).
//
// What the pointers must be:
// `offset` is null or valid for reading and writing.
ssize_t transom_sendfile(int fd,
                         int from,
                         off_t *offset,
                         size_t len);

// poll(2) over sockets of this library and any other descriptors together.
//
// Returns how many have something in `revents`, or 0 after `timeout` milliseconds; a negative one is for ever. Errors: EINTR, EINVAL for too many
// descriptors.
//
// What the pointers must be:
// `fds` is null or valid for reading and writing `count` structures.
int transom_poll(struct pollfd *fds,
                 nfds_t count,
                 int timeout);

// ppoll(2): as transom_poll, with `timeout`, or for ever if that is NULL, and with `signals` blocked while it waits, unless that is NULL.
//
// Returns as transom_poll.
//
// What the pointers must be:
// As for transom_poll; the other two are null or valid for reading.
int transom_ppoll(struct pollfd *fds,
                  nfds_t count,
                  const struct timespec *timeout,
                  const sigset_t *signals);

// select(2) over sockets of this library and any other descriptors together. `*timeout` becomes what is left of it.
//
// Returns how many bits are set in the three sets. Errors: EINTR, EINVAL, EBADF.
//
// What the pointers must be:
// The sets and `timeout` are null or valid for reading and writing.
int transom_select(int count,
                   fd_set *read,
                   fd_set *write,
                   fd_set *except,
                   struct timeval *timeout);

// pselect(2): as transom_select, with `signals` blocked while it waits, unless that is NULL.
//
// Returns as transom_select.
//
// What the pointers must be:
// The sets, `timeout` and `signals` are null or valid for reading, and the sets for writing.
int transom_pselect(int count,
                    fd_set *read,
                    fd_set *write,
                    fd_set *except,
                    const struct timespec *timeout,
                    const sigset_t *signals);

// Makes a socket's descriptor one that poll(2), select(2), epoll(7) and libraries over them can wait for. It shows readable and writable; errors and
// hang-ups show as both. Nothing else of it may be used.
//
// Returns 0. Errors: EBADF if it is no socket of this library's, EMFILE.
int transom_pollable(int fd);

// epoll_ctl(2), which makes a socket of this library pollable first. `epfd` is one of epoll_create(2); wait with epoll_wait(2).
//
// Returns 0. Errors: as epoll_ctl(2).
//
// What the pointers must be:
// `event` is null or valid for reading.
int transom_epoll_ctl(int epfd,
                      int op,
                      int fd,
                      struct epoll_event *event);

// Has the descriptor of the socket's stack (transom_stack_fd) tell when one of `events` holds: POLLIN, POLLOUT, POLLPRI, POLLRDHUP. POLLERR and
// POLLHUP are always told. With 0 it tells no more.
//
// Returns 0. Errors: EBADF if it is no socket of this library's.
int transom_watch(int fd,
                  int16_t events);

// Fills `fds` with sockets of a stack that are ready for what transom_watch has asked, at most `room` of them. It does not wait. What is ready
// is told again by the next call, until it is not ready any more. `stack` may be 0, for the default one.
//
// Returns how many. Errors: EBADF for a number that is no stack's.
//
// What the pointers must be:
// `fds` is null or valid for writing `room` structures.
int transom_ready(int stack,
                  struct pollfd *fds,
                  size_t room);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRANSOM_TRANSOM_H */
