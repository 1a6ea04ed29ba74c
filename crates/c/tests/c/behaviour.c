/* How sockets behave: behaviour NAME runs the test of that name. */

#include "check.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <transom/tcpu.h>

static void pause_ms(int ms)
{
    struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L};

    while (nanosleep(&span, &span) != 0)
        ;
}

/* A wrong call gives the system's error. */
static void errors(void)
{
    struct sockaddr_in addr = at("192.0.2.2", 80);
    struct sockaddr_in foreign = at("198.51.100.1", 80);
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    char byte;
    int number = 1, fd;

    FAILS(transom_stack_open(NULL, NULL, NULL), EINVAL);
    FAILS(transom_stack_open("mem", NULL, NULL), EINVAL);
    FAILS(transom_stack_open("mem:x", "192.0.2.1/99", NULL), EINVAL);
    FAILS(transom_stack_open("mem:x", "192.0.2.1/24", "cubik"), EINVAL);
    {
        char why[64];
        size_t whole = transom_message(why, sizeof why);

        CHECK(whole == strlen("tcp: there is no unit called `cubik`; did you mean cubic?"));
        CHECK(strncmp(why, "tcp: there is no unit", 21) == 0);
        CHECK(transom_message(why, 5) == whole && strcmp(why, "tcp:") == 0);
        CHECK(transom_message(NULL, 0) == whole);
    }
    unsetenv("TRANSOM_DEVICE");
    FAILS(transom_socket(AF_INET, SOCK_STREAM, 0), ENODEV);
    FAILS(transom_socket_on(99, AF_INET, SOCK_STREAM, 0), EBADF);
    FAILS(transom_stack_close(99), EBADF);
    FAILS(transom_stack_fd(99), EBADF);
    FAILS(transom_socket_on(bob, AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
    FAILS(transom_socket_on(bob, AF_INET, SOCK_DGRAM, 0), ESOCKTNOSUPPORT);
    FAILS(transom_socket_on(bob, AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);

    CHECK((fd = transom_socket_on(bob, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
    FAILS(transom_bind(fd, NULL, sizeof addr), EFAULT);
    FAILS(transom_bind(fd, (struct sockaddr *)&addr, 4), EINVAL);
    FAILS(transom_bind(fd, ADDRESS(foreign)), EADDRNOTAVAIL);
    FAILS(transom_accept(fd, NULL, NULL), EINVAL);
    FAILS(transom_recv(fd, &byte, 1, 0), ENOTCONN);
    FAILS(transom_send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
    FAILS(transom_getpeername(fd, (struct sockaddr *)&peer, &len), ENOTCONN);
    FAILS(transom_getsockname(fd, NULL, &len), EFAULT);
    FAILS(transom_getsockname(fd, (struct sockaddr *)&peer, NULL), EFAULT);
    FAILS(transom_shutdown(fd, SHUT_RDWR), ENOTCONN);
    FAILS(transom_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, NULL, 4), EFAULT);
    FAILS(transom_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &number, 1), EINVAL);
    FAILS(transom_setsockopt(fd, IPPROTO_TCP, 12345, &number, sizeof number), ENOPROTOOPT);
    FAILS(transom_fcntl(fd, F_DUPFD, 0), EINVAL);
    FAILS(transom_ioctl(fd, FIONREAD, NULL), EFAULT);
    CHECK(transom_bind(fd, ADDRESS(addr)) == 0);
    CHECK(transom_listen(fd, 1) == 0);
    FAILS(transom_accept(fd, NULL, NULL), EAGAIN);
    CHECK(transom_fcntl(fd, F_GETFL, 0) == (O_RDWR | O_NONBLOCK));
    CHECK(transom_is_socket(fd) == 1 && transom_is_socket(1) == 0 && transom_is_socket(-1) == 0);

    /* The system's calls find nothing behind the number. */
    {
        struct pollfd asked = {.fd = fd, .events = POLLIN};

        FAILS(read(fd, &byte, 1), EBADF);
        FAILS(write(fd, "x", 1), EBADF);
        CHECK(poll(&asked, 1, 0) == 1 && asked.revents == POLLNVAL);
    }
    CHECK(transom_close(fd) == 0);
    FAILS(transom_close(fd), EBADF);
    FAILS(transom_listen(fd, 1), EBADF);
    FAILS(transom_close(-1), EBADF);

    /* Closed behind the library's back, and its number given out again. */
    CHECK((fd = transom_socket_on(bob, AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(close(fd) == 0);
    CHECK(transom_socket_on(bob, AF_INET, SOCK_STREAM, 0) == fd);
    CHECK(transom_bind(fd, ADDRESS(addr)) == 0);
    CHECK(transom_close(fd) == 0);
}

/* Without waiting: connect, read, write. */
static void nonblocking(void)
{
    struct sockaddr_in addr = at("192.0.2.2", 80);
    int listener = listen_at(80), fd, error;
    int there, on = 1;
    socklen_t len = sizeof error;
    struct pollfd asked;
    static char much[1 << 16];
    ssize_t all = 0, some;

    CHECK((fd = transom_socket_on(alice, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
    if (transom_connect(fd, ADDRESS(addr)) != 0)
        CHECK(errno == EINPROGRESS);
    asked = (struct pollfd){.fd = fd, .events = POLLOUT};
    CHECK(transom_poll(&asked, 1, -1) == 1 && asked.revents == POLLOUT);
    CHECK(transom_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0);
    CHECK((there = transom_accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0);
    FAILS(transom_read(there, much, sizeof much), EAGAIN);
    while ((some = transom_write(fd, much, sizeof much)) > 0)
        all += some;
    CHECK(some == -1 && errno == EAGAIN && all > 0);
    /* There is room again when enough of it has been read. */
    asked.revents = 0;
    CHECK(transom_poll(&asked, 1, 0) == 0);
    while (transom_poll(&asked, 1, 0) == 0)
        if ((some = transom_read(there, much, sizeof much)) < 0)
            CHECK(errno == EAGAIN);
    CHECK(asked.revents == POLLOUT);
    CHECK(transom_ioctl(fd, FIONBIO, &on) == 0);
    CHECK(transom_fcntl(fd, F_GETFL, 0) & O_NONBLOCK);
    hang_up((struct link){fd, there});
    CHECK(transom_close(listener) == 0);

    /* Nobody listens there. */
    CHECK((fd = transom_socket_on(alice, AF_INET, SOCK_STREAM, 0)) >= 0);
    addr = at("192.0.2.2", 81);
    FAILS(transom_connect(fd, ADDRESS(addr)), ECONNREFUSED);
    CHECK(transom_close(fd) == 0);
}

/* Several pieces of memory in one call, a look ahead, and a file. */
static void pieces(void)
{
    struct link link = connected();
    struct iovec out[3] = {{"one ", 4}, {"", 0}, {"two three", 9}};
    char first[4], second[2], third[20];
    struct iovec in[3] = {{first, 4}, {second, 2}, {third, sizeof third}};
    struct msghdr message = {.msg_iov = out, .msg_iovlen = 3};
    char name[] = "/tmp/transom-XXXXXX";
    off_t offset = 2;
    int file;

    CHECK(transom_writev(link.here, out, 3) == 13);
    CHECK(transom_recv(link.there, third, 7, MSG_PEEK | MSG_WAITALL) == 7);
    CHECK(memcmp(third, "one two", 7) == 0);
    CHECK(transom_recv(link.there, third, 13, MSG_PEEK | MSG_WAITALL) == 13);
    CHECK(transom_readv(link.there, in, 3) == 13);
    CHECK(memcmp(first, "one ", 4) == 0 && memcmp(second, "tw", 2) == 0);
    CHECK(memcmp(third, "o three", 7) == 0);

    CHECK(transom_sendmsg(link.here, &message, 0) == 13);
    message = (struct msghdr){.msg_iov = in, .msg_iovlen = 2, .msg_controllen = 7, .msg_namelen = 9};
    CHECK(transom_recvmsg(link.there, &message, MSG_WAITALL) == 6);
    CHECK(message.msg_controllen == 0 && message.msg_namelen == 0);
    CHECK(transom_recv(link.there, NULL, 3, MSG_TRUNC | MSG_WAITALL) == 3);
    CHECK(transom_recv(link.there, third, 4, MSG_WAITALL) == 4 && memcmp(third, "hree", 4) == 0);
    FAILS(transom_readv(link.there, in, -1), EINVAL);
    FAILS(transom_writev(link.here, NULL, 2), EFAULT);
    FAILS(transom_writev(link.here, out, 1025), EINVAL);
    in[0].iov_len = (size_t)-1;
    FAILS(transom_readv(link.there, in, 2), EINVAL);
    in[0] = (struct iovec){NULL, 4};
    FAILS(transom_readv(link.there, in, 1), EFAULT);

    CHECK((file = mkstemp(name)) >= 0);
    CHECK(write(file, "a file's text", 13) == 13);
    CHECK(transom_sendfile(link.here, file, &offset, 100) == 11 && offset == 13);
    CHECK(lseek(file, 7, SEEK_SET) == 7);
    CHECK(transom_sendfile(link.here, file, NULL, 2) == 2);
    CHECK(lseek(file, 0, SEEK_CUR) == 9);
    CHECK(transom_recv(link.there, third, 13, MSG_WAITALL) == 13);
    CHECK(memcmp(third, "file's texts ", 13) == 0);
    FAILS(transom_sendfile(link.here, link.there, NULL, 2), EINVAL);
    CHECK(close(file) == 0 && unlink(name) == 0);
    hang_up(link);
}

static void *write_later(void *argument)
{
    pause_ms(50);
    CHECK(transom_write(*(int *)argument, "late", 4) == 4);
    return NULL;
}

/* poll and select over both kinds of descriptors, and epoll. */
static void waiting(void)
{
    struct link link = connected();
    struct pollfd asked[3];
    pthread_t later;
    int pipe_fds[2], epoll_fd;
    char bytes[16];
    fd_set reads;
    struct timeval span;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = 7};

    CHECK(pipe(pipe_fds) == 0);
    asked[0] = (struct pollfd){.fd = pipe_fds[0], .events = POLLIN};
    asked[1] = (struct pollfd){.fd = link.there, .events = POLLIN | POLLOUT};
    asked[2] = (struct pollfd){.fd = -1, .events = POLLIN};
    CHECK(transom_poll(asked, 3, 0) == 1 && asked[1].revents == POLLOUT);
    asked[1].events = POLLIN;
    CHECK(transom_poll(asked, 3, 30) == 0);
    CHECK(write(pipe_fds[1], "x", 1) == 1);
    CHECK(transom_poll(asked, 3, -1) == 1 && asked[0].revents == POLLIN && asked[1].revents == 0);
    CHECK(read(pipe_fds[0], bytes, 1) == 1);
    CHECK(pthread_create(&later, NULL, write_later, &link.here) == 0);
    CHECK(transom_poll(asked, 3, -1) == 1 && asked[0].revents == 0 && asked[1].revents == POLLIN);
    CHECK(pthread_join(later, NULL) == 0);
    CHECK(transom_read(link.there, bytes, sizeof bytes) == 4);
    CHECK(pthread_create(&later, NULL, write_later, &pipe_fds[1]) == 0);
    CHECK(transom_poll(asked, 3, -1) == 1 && asked[0].revents == POLLIN);
    CHECK(pthread_join(later, NULL) == 0);
    CHECK(read(pipe_fds[0], bytes, sizeof bytes) == 4);
    FAILS(transom_poll(NULL, 1, 0), EFAULT);
    FAILS(transom_poll(asked, 1u << 30, 0), EINVAL);

    FD_ZERO(&reads);
    FD_SET(link.there, &reads);
    FD_SET(pipe_fds[0], &reads);
    span = (struct timeval){.tv_usec = 20000};
    CHECK(transom_select(FD_SETSIZE, &reads, NULL, NULL, &span) == 0);
    CHECK(!FD_ISSET(link.there, &reads) && span.tv_sec == 0 && span.tv_usec == 0);
    FD_SET(link.there, &reads);
    FD_SET(pipe_fds[0], &reads);
    CHECK(pthread_create(&later, NULL, write_later, &link.here) == 0);
    CHECK(transom_select(FD_SETSIZE, &reads, NULL, NULL, NULL) == 1);
    CHECK(FD_ISSET(link.there, &reads) && !FD_ISSET(pipe_fds[0], &reads));
    CHECK(pthread_join(later, NULL) == 0);
    CHECK(transom_read(link.there, bytes, sizeof bytes) == 4);
    FAILS(transom_select(-1, NULL, NULL, NULL, NULL), EINVAL);
    FD_ZERO(&reads);
    FD_SET(1000, &reads);
    FAILS(transom_select(1001, &reads, NULL, NULL, NULL), EBADF);

    CHECK((epoll_fd = epoll_create1(0)) >= 0);
    FAILS(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, link.there, &event), EBADF);
    CHECK(transom_epoll_ctl(epoll_fd, EPOLL_CTL_ADD, link.there, &event) == 0);
    CHECK(epoll_wait(epoll_fd, &event, 1, 0) == 0);
    CHECK(pthread_create(&later, NULL, write_later, &link.here) == 0);
    CHECK(epoll_wait(epoll_fd, &event, 1, -1) == 1 && event.data.fd == 7);
    CHECK(pthread_join(later, NULL) == 0);
    CHECK(transom_read(link.there, bytes, sizeof bytes) == 4);
    CHECK(epoll_wait(epoll_fd, &event, 1, 0) == 0);
    CHECK(close(epoll_fd) == 0);

    /* The same number, for poll(2). */
    asked[0] = (struct pollfd){.fd = link.there, .events = POLLIN | POLLOUT};
    CHECK(poll(asked, 1, 0) == 1 && asked[0].revents == POLLOUT);
    CHECK(transom_shutdown(link.here, SHUT_WR) == 0);
    asked[0].events = POLLIN;
    CHECK(poll(asked, 1, -1) == 1 && asked[0].revents == POLLIN);
    CHECK(transom_read(link.there, bytes, sizeof bytes) == 0);
    CHECK(close(pipe_fds[0]) == 0 && close(pipe_fds[1]) == 0);
    FAILS(transom_pollable(pipe_fds[0]), EBADF);
    hang_up(link);
    CHECK(poll(asked, 1, 0) == 1 && asked[0].revents == POLLNVAL);
}

/* One descriptor for all sockets of a stack. */
static void watching(void)
{
    enum { MANY = 20 };
    struct link links[MANY];
    struct pollfd stack = {.fd = transom_stack_fd(bob), .events = POLLIN};
    struct pollfd ready[MANY];
    char byte;

    CHECK(stack.fd >= 0);
    CHECK(transom_ready(bob, ready, MANY) == 0);
    for (int i = 0; i < MANY; i++) {
        links[i] = connected();
        CHECK(transom_watch(links[i].there, POLLIN) == 0);
    }
    CHECK(transom_ready(bob, ready, MANY) == 0);
    CHECK(poll(&stack, 1, 0) == 0);
    CHECK(transom_write(links[3].here, "x", 1) == 1);
    CHECK(poll(&stack, 1, -1) == 1);
    CHECK(transom_ready(bob, ready, MANY) == 1);
    CHECK(ready[0].fd == links[3].there && ready[0].revents == POLLIN);
    /* Until it is read. */
    CHECK(poll(&stack, 1, 0) == 1);
    CHECK(transom_ready(bob, ready, MANY) == 1);
    CHECK(transom_read(links[3].there, &byte, 1) == 1);
    CHECK(transom_ready(bob, ready, MANY) == 0);
    CHECK(poll(&stack, 1, 0) == 0);
    /* More than there is room for. */
    for (int i = 0; i < MANY; i++)
        CHECK(transom_write(links[i].here, "y", 1) == 1);
    for (int seen = 0; seen < MANY;) {
        int some;

        CHECK(poll(&stack, 1, -1) == 1);
        CHECK((some = transom_ready(bob, ready, 7)) <= 7);
        for (int i = 0; i < some; i++, seen++)
            CHECK(transom_read(ready[i].fd, &byte, 1) == 1);
    }
    CHECK(transom_ready(bob, ready, 7) == 0);
    /* Another thread may end a connection meanwhile. */
    CHECK(transom_shutdown(links[5].there, SHUT_RD) == 0);
    CHECK(poll(&stack, 1, 0) == 1);
    CHECK(transom_ready(bob, ready, 7) == 1 && ready[0].fd == links[5].there);
    CHECK(transom_watch(links[5].there, 0) == 0);
    CHECK(transom_ready(bob, ready, 7) == 0);
    FAILS(transom_ready(bob, NULL, 7), EFAULT);
    FAILS(transom_watch(0, POLLIN), EBADF);
    for (int i = 0; i < MANY; i++)
        hang_up(links[i]);
}

static int calls_left;

struct call {
    int fd;
    ssize_t returned;
    int error;
};

static void *receive(void *argument)
{
    struct call *call = argument;
    char bytes[16];

    call->returned = transom_recv(call->fd, bytes, sizeof bytes, 0);
    call->error = errno;
    __atomic_fetch_sub(&calls_left, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *accept_connection(void *argument)
{
    struct call *call = argument;

    call->returned = transom_accept(call->fd, NULL, NULL);
    call->error = errno;
    return NULL;
}

/* Calls of several threads on one socket. */
static void threads(void)
{
    struct link link = connected();
    struct call calls[2] = {{link.there, 0, 0}, {link.there, 0, 0}}, accept = {listen_at(90), 0, 0};
    pthread_t readers[2], acceptor;
    char bytes[16];

    /* Two read; each gets something, and then the end. */
    calls_left = 2;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&readers[i], NULL, receive, &calls[i]) == 0);
    pause_ms(30);
    CHECK(transom_write(link.here, "for one", 7) == 7);
    while (__atomic_load_n(&calls_left, __ATOMIC_SEQ_CST) == 2)
        pause_ms(1);
    CHECK(transom_shutdown(link.here, SHUT_WR) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(readers[i], NULL) == 0);
    CHECK(calls[0].returned + calls[1].returned == 7);

    /* shutdown ends a call that waits. */
    hang_up(link);
    link = connected();
    calls[0] = (struct call){link.there, -2, 0};
    CHECK(pthread_create(&readers[0], NULL, receive, &calls[0]) == 0);
    pause_ms(30);
    CHECK(transom_shutdown(link.there, SHUT_RD) == 0);
    CHECK(pthread_join(readers[0], NULL) == 0);
    CHECK(calls[0].returned == 0);
    CHECK(pthread_create(&acceptor, NULL, accept_connection, &accept) == 0);
    pause_ms(30);
    CHECK(transom_shutdown(accept.fd, SHUT_RD) == 0);
    CHECK(pthread_join(acceptor, NULL) == 0);
    CHECK(accept.returned == -1 && accept.error == EINVAL);
    CHECK(transom_close(accept.fd) == 0);

    /* close does not: the call goes on, and the connection ends after it. */
    hang_up(link);
    link = connected();
    calls[0] = (struct call){link.there, -2, 0};
    CHECK(pthread_create(&readers[0], NULL, receive, &calls[0]) == 0);
    pause_ms(30);
    CHECK(transom_close(link.there) == 0);
    CHECK(transom_is_socket(link.there) == 0);
    FAILS(transom_recv(link.there, bytes, sizeof bytes, 0), EBADF);
    CHECK(transom_write(link.here, "still", 5) == 5);
    CHECK(pthread_join(readers[0], NULL) == 0);
    CHECK(calls[0].returned == 5);
    CHECK(transom_read(link.here, bytes, sizeof bytes) == 0);
    CHECK(transom_close(link.here) == 0);
}

/* A child has the numbers, and not the sockets. */
static void forking(void)
{
    struct link link = connected();
    char bytes[16];
    int status;
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        FAILS(transom_write(link.here, "x", 1), EBADF);
        FAILS(transom_read(link.here, bytes, 1), EBADF);
        FAILS(transom_socket_on(alice, AF_INET, SOCK_STREAM, 0), EBADF);
        CHECK(transom_close(link.here) == 0);
        FAILS(transom_close(link.here), EBADF);
        /* A stack of its own. */
        open_stacks();
        link = connected();
        CHECK(transom_write(link.here, "child", 5) == 5);
        CHECK(transom_read(link.there, bytes, sizeof bytes) == 5);
        hang_up(link);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(transom_write(link.here, "parent", 6) == 6);
    CHECK(transom_read(link.there, bytes, sizeof bytes) == 6);
    hang_up(link);
}

static volatile sig_atomic_t handled;

static void handle(int signal)
{
    (void)signal;
    handled++;
}

static void on_signal(int flags)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = flags};

    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

static pthread_t main_thread;

static void *signal_later(void *argument)
{
    int *fd = argument;

    /* As often as it takes: a signal before the call waits is lost. */
    for (int i = 0; i < 20; i++) {
        pause_ms(20);
        CHECK(pthread_kill(main_thread, SIGUSR1) == 0);
    }
    if (fd != NULL)
        CHECK(transom_write(*fd, "now", 3) == 3);
    return NULL;
}

/* A handler ends a call, unless it has SA_RESTART. */
static void signals(void)
{
    struct link link = connected();
    struct timeval span = {.tv_usec = 30000};
    struct pollfd asked = {.fd = link.there, .events = POLLIN};
    char bytes[16];
    pthread_t sender;

    main_thread = pthread_self();
    on_signal(0);
    CHECK(pthread_create(&sender, NULL, signal_later, NULL) == 0);
    FAILS(transom_recv(link.there, bytes, sizeof bytes, 0), EINTR);
    CHECK(handled > 0);
    FAILS(transom_poll(&asked, 1, -1), EINTR);
    CHECK(pthread_join(sender, NULL) == 0);

    on_signal(SA_RESTART);
    handled = 0;
    CHECK(pthread_create(&sender, NULL, signal_later, &link.here) == 0);
    CHECK(transom_recv(link.there, bytes, sizeof bytes, 0) == 3);
    CHECK(handled > 0);
    CHECK(pthread_join(sender, NULL) == 0);

    /* Timeouts. */
    CHECK(transom_setsockopt(link.there, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span) == 0);
    FAILS(transom_recv(link.there, bytes, sizeof bytes, 0), EAGAIN);

    /* Writing where nobody reads: a signal, unless it is not wanted. */
    signal(SIGPIPE, handle);
    handled = 0;
    CHECK(transom_shutdown(link.here, SHUT_WR) == 0);
    FAILS(transom_send(link.here, "x", 1, MSG_NOSIGNAL), EPIPE);
    CHECK(handled == 0);
    FAILS(transom_send(link.here, "x", 1, 0), EPIPE);
    CHECK(handled == 1);
    hang_up(link);
}

/* Options are the connection's. */
static void options(void)
{
    struct link link = connected();
    struct tcp_info info;
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    char name[16] = "newreno";
    int number = 1;
    socklen_t len = sizeof number;
    char byte, bytes[3] = {9, 9, 9};

    CHECK(transom_setsockopt(link.here, IPPROTO_TCP, TCP_NODELAY, &number, sizeof number) == 0);
    number = 0;
    CHECK(transom_getsockopt(link.here, IPPROTO_TCP, TCP_NODELAY, &number, &len) == 0);
    CHECK(number == 1 && len == sizeof number);
    /* At the level of IP a byte will do, both ways. */
    byte = 16;
    CHECK(transom_setsockopt(link.here, IPPROTO_IP, IP_TOS, &byte, 1) == 0);
    number = 0;
    len = sizeof number;
    CHECK(transom_getsockopt(link.here, IPPROTO_IP, IP_TOS, &number, &len) == 0);
    CHECK(number == 16 && len == sizeof number);
    len = 3;
    CHECK(transom_getsockopt(link.here, IPPROTO_IP, IP_TOS, bytes, &len) == 0);
    CHECK(bytes[0] == 16 && bytes[1] == 9 && len == 1);
    FAILS(transom_setsockopt(link.here, IPPROTO_TCP, TCP_NODELAY, &byte, 1), EINVAL);
    len = sizeof name;
    CHECK(transom_getsockopt(link.here, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0);
    CHECK(strcmp(name, "cubic") == 0);
    CHECK(transom_setsockopt(link.here, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0);
    FAILS(transom_setsockopt(link.here, IPPROTO_TCP, TCP_CONGESTION, "none such", 9), ENOENT);
    CHECK(transom_write(link.here, "x", 1) == 1);
    CHECK(transom_read(link.there, &byte, 1) == 1);
    len = sizeof info;
    CHECK(transom_getsockopt(link.here, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
    CHECK(info.tcpi_state == TCP_ESTABLISHED && info.tcpi_snd_mss > 0 && info.tcpi_rtt > 0);
    CHECK(transom_setsockopt(link.here, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    CHECK(transom_close(link.here) == 0);
    FAILS(transom_read(link.there, &byte, 1), ECONNRESET);
    CHECK(transom_close(link.there) == 0);
}

static void *tcpu_server(void *argument)
{
    struct sockaddr_in addr = at("192.0.2.2", 99), peer;
    socklen_t len = sizeof peer;
    char bytes[16];
    int fd = socket_tcpu(AF_INET, SOCK_STREAM, 0), stream;

    (void)argument;
    CHECK(fd >= 0);
    CHECK(bind_tcpu(fd, &addr, sizeof addr) == 0);
    CHECK((stream = accept_tcpu(fd, &peer, &len)) >= 0);
    CHECK(recv_tcpu(stream, bytes, 5, MSG_WAITALL) == 5 && memcmp(bytes, "paper", 5) == 0);
    CHECK(send_tcpu(stream, "1995", 4, TF_NODELAY) == 4);
    CHECK(shutdown_tcpu(stream, SHUT_WR) == 0);
    CHECK(recv_tcpu(stream, bytes, sizeof bytes, 0) == 0);
    CHECK(close_tcpu(stream) == 0);
    CHECK(close_tcpu(fd) == 0);
    return NULL;
}

/* The calls of the paper. */
static void tcpu(void)
{
    struct sockaddr_in addr = at("192.0.2.2", 99);
    pthread_t server;
    char bytes[16];
    int fd;

    CHECK(transom_stack_default(bob) == 0);
    CHECK(pthread_create(&server, NULL, tcpu_server, NULL) == 0);
    CHECK((fd = transom_socket_on(alice, AF_INET, SOCK_STREAM, 0)) >= 0);
    /* Until the server listens. */
    while (connect_tcpu(fd, &addr, sizeof addr) != 0)
        CHECK(errno == ECONNREFUSED);
    CHECK(send_tcpu(fd, "paper", 5, 0) == 5);
    CHECK(recv_tcpu(fd, bytes, sizeof bytes, 0) == 4);
    CHECK(recv_tcpu(fd, bytes, sizeof bytes, 0) == 0);
    CHECK(close_tcpu(fd) == 0);
    CHECK(pthread_join(server, NULL) == 0);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"errors", errors},     {"nonblocking", nonblocking}, {"pieces", pieces},
        {"waiting", waiting},   {"watching", watching},       {"threads", threads},
        {"forking", forking},   {"signals", signals},         {"options", options},
        {"tcpu", tcpu},
    };

    open_stacks();
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (count == 2 && strcmp(arguments[1], tests[i].name) == 0) {
            tests[i].run();
            puts("as expected");
            return 0;
        }
    return 2;
}
