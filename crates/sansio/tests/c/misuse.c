/*
 * What a C program can do wrong gives an error: hosts and descriptors that are none, null where memory is needed,
 * configurations too short, too long or without sense. And what the header declares is laid out as Linux has it.
 */

#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transom_sansio.h"

#define CHECK(what) ((what) ? (void)0 : (printf("misuse.c:%d: %s\n", __LINE__, #what), exit(1)))

#define SAME(field) \
    _Static_assert(offsetof(struct tcp_info, field) == offsetof(struct ts_tcp_info, field), #field)
SAME(tcpi_options);
SAME(tcpi_rto);
SAME(tcpi_unacked);
SAME(tcpi_fackets);
SAME(tcpi_last_data_sent);
SAME(tcpi_pmtu);
SAME(tcpi_rtt);
SAME(tcpi_snd_cwnd);
SAME(tcpi_total_retrans);
SAME(tcpi_pacing_rate);
SAME(tcpi_bytes_acked);
SAME(tcpi_segs_out);
SAME(tcpi_notsent_bytes);
SAME(tcpi_delivery_rate);
SAME(tcpi_sndbuf_limited);
SAME(tcpi_delivered);
SAME(tcpi_bytes_sent);
SAME(tcpi_dsack_dups);
SAME(tcpi_rcv_ooopack);
SAME(tcpi_snd_wnd);
_Static_assert(sizeof(struct pollfd) == sizeof(struct ts_pollfd), "pollfd");
_Static_assert(offsetof(struct pollfd, revents) == offsetof(struct ts_pollfd, revents), "pollfd");
_Static_assert(TS_POLLIN == POLLIN && TS_POLLOUT == POLLOUT && TS_POLLPRI == POLLPRI, "poll");
_Static_assert(TS_TCP_USER_TIMEOUT == TCP_USER_TIMEOUT && TS_TCP_INFO == TCP_INFO, "options");

static void configurations(void)
{
    char text[200];
    struct ts_address address;
    struct {
        struct ts_config config;
        unsigned char later[40];
    } grown;
    struct ts_config config;
    CHECK(ts_parse_address(NULL, &address) == -TS_EFAULT);
    CHECK(ts_parse_address("192.0.2.1/24", NULL) == -TS_EFAULT);
    CHECK(ts_parse_address("192.0.2.256", &address) == -TS_EINVAL);
    CHECK(ts_parse_address("192.0.2.1/24", &address) == 0);
    CHECK(ts_config_init(NULL, sizeof config) == -TS_EFAULT);
    CHECK(ts_config_init(&config, 3) == -TS_EINVAL);
    CHECK(ts_create(NULL) == -TS_EFAULT);

    /* Never filled in, without addresses, with too many, with a profile that does not work. */
    memset(&config, 0, sizeof config);
    CHECK(ts_create(&config) == -TS_EINVAL);
    CHECK(ts_message(0, text, sizeof text) > 0 && strstr(text, "filled in"));
    CHECK(ts_config_init(&config, sizeof config) == 0);
    CHECK(config.size == sizeof config);
    CHECK(ts_create(&config) == -TS_EINVAL);
    CHECK(ts_message(0, text, sizeof text) > 0 && strstr(text, "address"));
    config.address_count = 1;
    CHECK(ts_create(&config) == -TS_EFAULT);
    config.addresses = &address;
    config.address_count = SIZE_MAX;
    CHECK(ts_create(&config) == -TS_EINVAL);
    config.address_count = 1;
    config.tcp = "cubik";
    CHECK(ts_create(&config) == -TS_EINVAL);
    CHECK(ts_message(0, text, sizeof text) > 0 && strstr(text, "did you mean cubic"));
    config.tcp = "adu";
    CHECK(ts_create(&config) == -TS_EINVAL);
    CHECK(ts_message(0, text, sizeof text) > 0 && strstr(text, "writes bytes"));
    config.tcp = "caf\xe9";
    CHECK(ts_create(&config) == -TS_EINVAL);
    CHECK(ts_message(0, text, sizeof text) > 0 && strstr(text, "UTF-8"));
    config.tcp = "no-window-scale";
    config.receive_buffer_max = 70000;
    CHECK(ts_create(&config) == -TS_EINVAL);
    CHECK(ts_message(0, text, sizeof text) > 0 && strstr(text, "window scale"));
    /* A message is cut to the room there is, and its length told. */
    int64_t whole = ts_message(0, NULL, 0);
    CHECK(whole > 8 && ts_message(0, text, 8) == whole && strlen(text) == 7);
    CHECK(ts_message(0, NULL, 8) == -TS_EFAULT);

    /* A program of a later version: what it adds has to be zero. One of an earlier version is shorter. */
    memset(&grown, 0xff, sizeof grown);
    CHECK(ts_config_init(&grown.config, sizeof grown) == 0);
    for (size_t i = 0; i < sizeof grown.later; i++)
        CHECK(grown.later[i] == 0);
    grown.config.addresses = &address;
    grown.config.address_count = 1;
    ts_host host = ts_create(&grown.config);
    CHECK(host > 0 && ts_message(0, text, sizeof text) == 0 && ts_destroy(host) == 0);
    grown.later[39] = 1;
    CHECK(ts_create(&grown.config) == -TS_E2BIG);
    grown.config.size = UINT32_MAX;
    CHECK(ts_create(&grown.config) == -TS_E2BIG);
    memset(&config, 0xff, sizeof config);
    CHECK(ts_config_init(&config, offsetof(struct ts_config, time_wait)) == 0);
    CHECK(config.time_wait == -1 && config.size == offsetof(struct ts_config, time_wait));
    config.addresses = &address;
    config.address_count = 1;
    host = ts_create(&config);
    CHECK(host > 0 && ts_destroy(host) == 0);
}

static void handles(ts_host good)
{
    ts_host bad[] = {0, -1, good + 1000, INT64_MIN, INT64_MAX};
    struct sockaddr_in sin = {.sin_family = AF_INET};
    struct ts_pollfd fds = {3, TS_POLLIN, 0};
    char buffer[10];
    uint32_t len = sizeof buffer;
    int32_t value;
    int64_t at;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ts_host h = bad[i];
        CHECK(ts_destroy(h) == -TS_EBADF);
        CHECK(h == 0 || ts_message(h, buffer, sizeof buffer) == -TS_EBADF);
        CHECK(ts_now(h) == -TS_EBADF && ts_run_to(h, 1) == -TS_EBADF);
        CHECK(ts_next_timer(h) == -TS_EBADF && ts_next_event(h) == -TS_EBADF);
        CHECK(ts_set_patience(h, 1) == -TS_EBADF && ts_inject(h, 1, buffer, 1) == -TS_EBADF);
        CHECK(ts_next_packet(h, buffer, sizeof buffer, &at) == -TS_EBADF);
        CHECK(ts_socket(h, TS_AF_INET, TS_SOCK_STREAM, 0) == -TS_EBADF);
        CHECK(ts_bind(h, 3, &sin, sizeof sin) == -TS_EBADF && ts_listen(h, 3, 1) == -TS_EBADF);
        CHECK(ts_connect(h, 3, &sin, sizeof sin) == -TS_EBADF);
        CHECK(ts_accept(h, 3, NULL, NULL) == -TS_EBADF);
        CHECK(ts_getsockname(h, 3, buffer, &len) == -TS_EBADF);
        CHECK(ts_getpeername(h, 3, buffer, &len) == -TS_EBADF);
        CHECK(ts_read(h, 3, buffer, 1) == -TS_EBADF && ts_write(h, 3, buffer, 1) == -TS_EBADF);
        CHECK(ts_recv(h, 3, buffer, 1, 0) == -TS_EBADF && ts_send(h, 3, buffer, 1, 0) == -TS_EBADF);
        CHECK(ts_shutdown(h, 3, 0) == -TS_EBADF && ts_close(h, 3) == -TS_EBADF);
        CHECK(ts_poll(h, &fds, 1, 0) == -TS_EBADF && ts_fcntl(h, 3, TS_F_GETFL, 0) == -TS_EBADF);
        CHECK(ts_ioctl(h, 3, TS_FIONREAD, &value) == -TS_EBADF);
        CHECK(ts_setsockopt(h, 3, TS_SOL_SOCKET, TS_SO_KEEPALIVE, buffer, 4) == -TS_EBADF);
        CHECK(ts_getsockopt(h, 3, TS_SOL_SOCKET, TS_SO_KEEPALIVE, buffer, &len) == -TS_EBADF);
    }
}

static void descriptors(ts_host h)
{
    int bad[] = {-1, 0, 4, INT_MIN, INT_MAX};
    struct sockaddr_in sin = {.sin_family = AF_INET};
    char buffer[10];
    uint32_t len = sizeof buffer;
    int32_t value;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int fd = bad[i];
        struct ts_pollfd fds = {fd, TS_POLLIN, -1};
        CHECK(ts_bind(h, fd, &sin, sizeof sin) == -TS_EBADF && ts_listen(h, fd, 1) == -TS_EBADF);
        CHECK(ts_connect(h, fd, &sin, sizeof sin) == -TS_EBADF);
        CHECK(ts_accept(h, fd, NULL, NULL) == -TS_EBADF);
        CHECK(ts_getsockname(h, fd, buffer, &len) == -TS_EBADF);
        CHECK(ts_getpeername(h, fd, buffer, &len) == -TS_EBADF);
        CHECK(ts_read(h, fd, buffer, 1) == -TS_EBADF && ts_write(h, fd, buffer, 1) == -TS_EBADF);
        CHECK(ts_shutdown(h, fd, 0) == -TS_EBADF && ts_close(h, fd) == -TS_EBADF);
        CHECK(ts_fcntl(h, fd, TS_F_GETFL, 0) == -TS_EBADF);
        CHECK(ts_ioctl(h, fd, TS_FIONREAD, &value) == -TS_EBADF);
        CHECK(ts_setsockopt(h, fd, TS_SOL_SOCKET, TS_SO_KEEPALIVE, buffer, 4) == -TS_EBADF);
        CHECK(ts_getsockopt(h, fd, TS_SOL_SOCKET, TS_SO_ERROR, buffer, &len) == -TS_EBADF);
        CHECK(ts_poll(h, &fds, 1, 0) == (fd >= 0) && fds.revents == (fd >= 0 ? TS_POLLNVAL : 0));
    }
}

static void nulls(ts_host h, int fd)
{
    char buffer[40];
    uint32_t len = sizeof buffer, none = 0;
    int64_t at = 0;
    CHECK(ts_inject(h, 0, NULL, 10) == -TS_EFAULT && ts_inject(h, 0, NULL, 0) == -TS_EINVAL);
    CHECK(ts_inject(h, -1, buffer, 10) == -TS_EINVAL && ts_inject(h, 0, buffer, SIZE_MAX) == -TS_EINVAL);
    CHECK(ts_run_to(h, -1) == -TS_EINVAL && ts_set_patience(h, -1) == -TS_EINVAL);
    CHECK(ts_bind(h, fd, NULL, 16) == -TS_EFAULT && ts_connect(h, fd, NULL, 16) == -TS_EFAULT);
    CHECK(ts_bind(h, fd, buffer, 0) == -TS_EINVAL);
    CHECK(ts_accept(h, fd, buffer, NULL) == -TS_EFAULT);
    CHECK(ts_getsockname(h, fd, NULL, &len) == -TS_EFAULT && ts_getsockname(h, fd, buffer, NULL) == -TS_EFAULT);
    CHECK(ts_setsockopt(h, fd, TS_SOL_SOCKET, TS_SO_KEEPALIVE, NULL, 4) == -TS_EFAULT);
    CHECK(ts_setsockopt(h, fd, TS_SOL_SOCKET, TS_SO_KEEPALIVE, NULL, 0) == -TS_EINVAL);
    CHECK(ts_getsockopt(h, fd, TS_SOL_SOCKET, TS_SO_ERROR, NULL, &len) == -TS_EFAULT);
    CHECK(ts_getsockopt(h, fd, TS_SOL_SOCKET, TS_SO_ERROR, buffer, NULL) == -TS_EFAULT);
    // Linux takes such a length for a negative one.
    len = (uint32_t)INT32_MAX + 1;
    CHECK(ts_getsockname(h, fd, buffer, &len) == -TS_EINVAL);
    CHECK(ts_getsockopt(h, fd, TS_SOL_SOCKET, TS_SO_ERROR, buffer, &len) == -TS_EINVAL);
    len = sizeof buffer;
    CHECK(ts_poll(h, NULL, 1, 0) == -TS_EFAULT && ts_poll(h, NULL, 0, 0) == 0);
    CHECK(ts_poll(h, NULL, SIZE_MAX, 0) == -TS_EINVAL);
    CHECK(ts_ioctl(h, fd, TS_FIONREAD, NULL) == -TS_EFAULT);

    /* A socket connecting to its own host is connected at once. */
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(80)};
    CHECK(ts_bind(h, fd, &sin, sizeof sin) == 0 && ts_listen(h, fd, 1) == 0);
    memcpy(&sin.sin_addr, "\300\0\2\1", 4);
    int client = ts_socket(h, TS_AF_INET, TS_SOCK_STREAM, 0);
    CHECK(ts_connect(h, client, &sin, sizeof sin) == 0);
    memset(buffer, 'x', sizeof buffer);
    len = 8;
    CHECK(ts_getpeername(h, client, buffer, &len) == 0 && len == 16);
    CHECK(memcmp(buffer, &sin, 8) == 0 && buffer[8] == 'x');
    CHECK(ts_getpeername(h, client, NULL, &none) == 0 && none == 16);
    CHECK(ts_write(h, client, NULL, 1) == -TS_EFAULT && ts_write(h, client, NULL, 0) == 0);
    CHECK(ts_write(h, client, buffer, SIZE_MAX) == -TS_EINVAL);
    CHECK(ts_write(h, client, "ab", 2) == 2);
    int server = ts_accept(h, fd, NULL, NULL);
    CHECK(server > client);
    CHECK(ts_read(h, server, NULL, 1) == -TS_EFAULT && ts_read(h, server, buffer, SIZE_MAX) == -TS_EINVAL);
    CHECK(ts_recv(h, server, NULL, 1, TS_MSG_TRUNC) == 1);
    CHECK(ts_read(h, server, buffer, sizeof buffer) == 1 && buffer[0] == 'b');
    /* Options are cut to the room there is. */
    len = 2;
    CHECK(ts_getsockopt(h, server, TS_SOL_SOCKET, TS_SO_TYPE, buffer, &len) == 0 && len == 2);
    CHECK(buffer[0] == TS_SOCK_STREAM);

    /* Packets stay until there is room for them. */
    memcpy(&sin.sin_addr, "\300\0\2\2", 4);
    int other = ts_socket(h, TS_AF_INET, TS_SOCK_STREAM | TS_SOCK_NONBLOCK, 0);
    CHECK(ts_connect(h, other, &sin, sizeof sin) == -TS_EINPROGRESS);
    char packet[100];
    int64_t length = ts_next_packet(h, NULL, 0, &at);
    CHECK(length >= 40 && length < (int64_t)sizeof packet && at == 0);
    CHECK(ts_next_packet(h, packet, (size_t)length - 1, NULL) == -TS_EMSGSIZE);
    CHECK(ts_next_packet(h, NULL, (size_t)length, NULL) == -TS_EFAULT);
    CHECK(ts_next_packet(h, packet, (size_t)length, NULL) == length);
    CHECK(ts_next_packet(h, packet, sizeof packet, &at) == -TS_EAGAIN);
}

int main(void)
{
    struct ts_address address;
    struct ts_config config;
    configurations();
    CHECK(ts_parse_address("192.0.2.1/24", &address) == 0);
    CHECK(ts_config_init(&config, sizeof config) == 0);
    config.addresses = &address;
    config.address_count = 1;
    ts_host host = ts_create(&config);
    int fd = ts_socket(host, TS_AF_INET, TS_SOCK_STREAM, 0);
    CHECK(host > 0 && fd == 3);
    handles(host);
    descriptors(host);
    nulls(host, fd);
    CHECK(ts_destroy(host) == 0 && ts_destroy(host) == -TS_EBADF);
    CHECK(ts_close(host, fd) == -TS_EBADF);
    printf("misuse.c: all as expected\n");
    return 0;
}
