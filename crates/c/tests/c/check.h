/* Shared by the test programs: checks, addresses, two stacks over memory, and a connection between them. */
#ifndef CHECK_H
#define CHECK_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <transom/transom.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : fail(__FILE__, __LINE__, #what))
/* The call fails with this error. */
#define FAILS(call, error) (errno = 0, CHECK((call) == -1), CHECK(errno == (error)))

static void fail(const char *file, int line, const char *what)
{
    int error = errno;
    char why[256] = "";

    transom_message(why, sizeof why);
    printf("%s:%d: %s: %s (%s)\n", file, line, what, strerror(error), why);
    fflush(stdout);
    _exit(1);
}

#define ADDRESS(addr) ((struct sockaddr *)&(addr)), sizeof(addr)

static inline struct sockaddr_in at(const char *address, int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    CHECK(inet_pton(AF_INET, address, &addr.sin_addr) == 1);
    return addr;
}

static int alice, bob;

static inline void open_stacks(void)
{
    alice = transom_stack_open("mem:pair", "192.0.2.1/24", NULL);
    CHECK(alice > 0);
    bob = transom_stack_open("mem:pair", "192.0.2.2/24", NULL);
    CHECK(bob > 0);
}

static inline int listen_at(int port)
{
    struct sockaddr_in addr = at("192.0.2.2", port);
    int fd = transom_socket_on(bob, AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0);
    CHECK(transom_bind(fd, ADDRESS(addr)) == 0);
    CHECK(transom_listen(fd, 16) == 0);
    return fd;
}

/* A connection: its ends on alice and on bob. */
struct link {
    int here, there;
};

static inline struct link connected(void)
{
    static int port = 1000;
    struct sockaddr_in addr;
    struct link link;
    int listener = listen_at(++port);

    addr = at("192.0.2.2", port);
    link.here = transom_socket_on(alice, AF_INET, SOCK_STREAM, 0);
    CHECK(link.here >= 0);
    CHECK(transom_connect(link.here, ADDRESS(addr)) == 0);
    link.there = transom_accept(listener, NULL, NULL);
    CHECK(link.there >= 0);
    CHECK(transom_close(listener) == 0);
    return link;
}

static inline void hang_up(struct link link)
{
    CHECK(transom_close(link.here) == 0);
    CHECK(transom_close(link.there) == 0);
}

#endif
