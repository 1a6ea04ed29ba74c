/*
 * One host against packets made by hand, as a script in the manner of packetdrill would make them: a handshake,
 * a transfer each way, losses that fast retransmit and the timer repair, and a close. What is expected is what
 * the RFCs say, worked out by hand, to the nanosecond where they leave no choice.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transom_sansio.h"

#define CHECK(what) ((what) ? (void)0 : (printf("scripted.c:%d: %s\n", __LINE__, #what), exit(1)))
#define MS ((int64_t)1000000)

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, HEADERS = 40 };

static ts_host host;
static uint32_t peer_seq = 5000, peer_ack; /* what the peer sends next, and what it has received */
static uint32_t iss;                       /* the host's initial sequence number */

static unsigned char packet[65535]; /* the packet taken last */
static int64_t left;                /* when it left */
static size_t payload;              /* its payload's length */

static uint32_t sum(const unsigned char *bytes, size_t len, uint32_t sum)
{
    for (size_t i = 0; i < len; i++)
        sum += (uint32_t)bytes[i] << (i % 2 ? 0 : 8);
    return sum;
}

static uint16_t folded(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void put16(unsigned char *to, uint32_t value)
{
    to[0] = (unsigned char)(value >> 8);
    to[1] = (unsigned char)value;
}

static void put32(unsigned char *to, uint32_t value)
{
    put16(to, value >> 16);
    put16(to + 2, value & 0xffff);
}

static uint32_t get16(const unsigned char *from)
{
    return (uint32_t)from[0] << 8 | from[1];
}

static uint32_t get32(const unsigned char *from)
{
    return get16(from) << 16 | get16(from + 2);
}

/* A segment from the peer, port 40000, to the host, port 80, arrives at a time. */
static void segment(int64_t at, int flags, uint32_t seq, uint32_t ack, const char *data, size_t len)
{
    static const unsigned char start[HEADERS] = {
        0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1, /* IPv4 */
        0x9c, 0x40, 0, 80,                                                     /* ports */
    };
    static unsigned char made[65535];
    memcpy(made, start, HEADERS);
    memcpy(made + HEADERS, data, len);
    put16(made + 2, (uint32_t)(HEADERS + len));
    put16(made + 10, folded(sum(made, 20, 0)));
    put32(made + 24, seq);
    put32(made + 28, ack);
    made[32] = 5 << 4;
    made[33] = (unsigned char)flags;
    put16(made + 34, 65535);
    /* The pseudo-header: addresses, protocol and length. */
    uint32_t tcp = (uint32_t)(20 + len);
    put16(made + 36, folded(sum(made + 20, tcp, sum(made + 12, 8, 6 + tcp))));
    CHECK(ts_inject(host, at, made, HEADERS + len) == 0);
}

/* The peer's segment now, with what it has received acknowledged. */
static void peer(int flags, const char *data, size_t len)
{
    segment(ts_now(host), flags, peer_seq, flags & ACK ? peer_ack : 0, data, len);
    peer_seq += (uint32_t)len + !!(flags & (SYN | FIN));
}

/* Takes the next packet of the host; its checksums must be right. */
static void take(void)
{
    int64_t len = ts_next_packet(host, packet, sizeof packet, &left);
    CHECK(len >= HEADERS);
    CHECK(folded(sum(packet, 20, 0)) == 0);
    size_t tcp = (size_t)len - 20;
    CHECK(folded(sum(packet + 20, tcp, sum(packet + 12, 8, 6 + (uint32_t)tcp))) == 0);
    payload = tcp - (size_t)(packet[32] >> 4) * 4;
}

/* The next packet has these flags, this sequence number (from the host's initial one) and this much payload. */
static void expect_at(int line, int64_t at, int flags, uint32_t seq, size_t len)
{
    take();
    if (left != at || (packet[33] & ~PSH) != flags || get32(packet + 24) - iss != seq || payload != len) {
        printf("scripted.c:%d: expected at %lld flags %#x seq %u len %zu, seen at %lld flags %#x seq %u len %zu\n",
               line, (long long)at, (unsigned)flags, seq, len, (long long)left, packet[33],
               get32(packet + 24) - iss, payload);
        exit(1);
    }
}

#define expect(at, flags, seq, len) expect_at(__LINE__, at, flags, seq, len)

/* The host has sent nothing more. */
#define nothing() CHECK(ts_next_packet(host, packet, sizeof packet, &left) == -TS_EAGAIN)

int main(void)
{
    struct ts_address address;
    struct ts_config config;
    CHECK(ts_parse_address("192.0.2.1/24", &address) == 0);
    CHECK(ts_config_init(&config, sizeof config) == 0);
    config.addresses = &address;
    config.address_count = 1;
    /* Recovery without SACK is that of RFC 6582. */
    config.tcp = "classic + no-sack + no-timestamps + no-window-scale + delayed-ack(delay=40ms)";
    config.receive_buffer = config.receive_buffer_max = 65535;
    host = ts_create(&config);
    CHECK(host > 0);

    /* The handshake. The peer announces no MSS: 536 it is (RFC 9293 section 3.7.1). */
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(80)};
    int listener = ts_socket(host, TS_AF_INET, TS_SOCK_STREAM | TS_SOCK_NONBLOCK, 0);
    CHECK(listener == 3);
    CHECK(ts_bind(host, listener, &sin, sizeof sin) == 0);
    CHECK(ts_listen(host, listener, 1) == 0);
    peer(SYN, "", 0);
    take();
    iss = get32(packet + 24);
    CHECK(packet[33] == (SYN | ACK) && get32(packet + 28) == peer_seq && get16(packet + 34) == 65535);
    CHECK(payload == 0 && packet[40] == 2 && packet[41] == 4 && get16(packet + 42) == 1460);
    CHECK(ts_accept(host, listener, NULL, NULL) == -TS_EAGAIN);
    CHECK(ts_run_to(host, 100 * MS) == 0);
    peer_ack = iss + 1;
    peer(ACK, "", 0);
    struct sockaddr_in from;
    uint32_t from_len = sizeof from;
    int fd = ts_accept(host, listener, &from, &from_len);
    CHECK(fd == 4 && from_len == sizeof from);
    CHECK(from.sin_port == htons(40000) && from.sin_addr.s_addr == inet_addr("192.0.2.2"));
    nothing();

    /* Data from the peer: acknowledged at once at the start of a connection, later after 40 ms. */
    char buffer[8192];
    int32_t off = 0;
    CHECK(ts_setsockopt(host, fd, TS_IPPROTO_TCP, TS_TCP_QUICKACK, &off, sizeof off) == 0);
    peer(ACK | PSH, "hello", 5);
    CHECK(ts_read(host, fd, buffer, sizeof buffer) == 5 && memcmp(buffer, "hello", 5) == 0);
    nothing();
    CHECK(ts_run_to(host, 140 * MS - 1) == 0);
    nothing();
    CHECK(ts_run_to(host, 140 * MS) == 0);
    expect(140 * MS, ACK, 1, 0);
    CHECK(get32(packet + 28) == peer_seq);

    /* Data to the peer: the initial window is ten segments (RFC 6928: min (10 * 536, max (2 * 536, 14600))). */
    static char data[536 * 12];
    CHECK(ts_write(host, fd, data, sizeof data) == sizeof data);
    for (uint32_t i = 0; i < 10; i++)
        expect(140 * MS, ACK, 1 + i * 536, 536);
    nothing();

    /* The first is lost. Two duplicates each let one new segment go (RFC 3042), the third brings it back. */
    CHECK(ts_run_to(host, 200 * MS) == 0);
    segment(200 * MS, ACK, peer_seq, iss + 1, "", 0);
    expect(200 * MS, ACK, 1 + 10 * 536, 536);
    segment(200 * MS, ACK, peer_seq, iss + 1, "", 0);
    expect(200 * MS, ACK, 1 + 11 * 536, 536);
    segment(200 * MS, ACK, peer_seq, iss + 1, "", 0);
    expect(200 * MS, ACK, 1, 536);
    nothing();
    struct ts_tcp_info info;
    uint32_t len = sizeof info;
    CHECK(ts_getsockopt(host, fd, TS_IPPROTO_TCP, TS_TCP_INFO, &info, &len) == 0);
    CHECK(info.tcpi_ca_state == 3 && info.tcpi_total_retrans == 1);
    /* ssthresh = flight / 2 (RFC 5681 equation 4; what limited transmit sent does not count). */
    CHECK(info.tcpi_snd_ssthresh == 5);
    CHECK(ts_run_to(host, 260 * MS) == 0);
    peer_ack = iss + 1 + 12 * 536;
    peer(ACK, "", 0);
    nothing();
    len = sizeof info;
    CHECK(ts_getsockopt(host, fd, TS_IPPROTO_TCP, TS_TCP_INFO, &info, &len) == 0);
    CHECK(info.tcpi_ca_state == 0 && info.tcpi_unacked == 0);

    /* A last segment is lost: nothing but the timer can tell. It backs off by two (RFC 6298 (5.5)). */
    CHECK(ts_write(host, fd, data, 100) == 100);
    expect(260 * MS, ACK, 1 + 12 * 536, 100);
    int64_t rto = (int64_t)info.tcpi_rto * 1000;
    CHECK(rto >= 200 * MS && rto <= 60000 * MS);
    CHECK(ts_run_to(host, 260 * MS + rto - 1) == 0);
    nothing();
    CHECK(ts_run_to(host, 260 * MS + rto) == 0);
    expect(260 * MS + rto, ACK, 1 + 12 * 536, 100);
    CHECK(ts_run_to(host, 260 * MS + 3 * rto) == 0);
    expect(260 * MS + 3 * rto, ACK, 1 + 12 * 536, 100);
    nothing();
    peer_ack += 100;
    peer(ACK, "", 0);

    /* The peer closes, then the host; the last acknowledgement ends it all. */
    int64_t now = ts_now(host);
    peer(FIN | ACK, "", 0);
    expect(now, ACK, 1 + 12 * 536 + 100, 0);
    CHECK(get32(packet + 28) == peer_seq);
    CHECK(ts_read(host, fd, buffer, sizeof buffer) == 0);
    CHECK(ts_close(host, fd) == 0);
    expect(now, FIN | ACK, 1 + 12 * 536 + 100, 0);
    peer_ack++;
    peer(ACK, "", 0);
    nothing();
    CHECK(ts_close(host, listener) == 0);
    CHECK(ts_run_to(host, now + 1000000 * MS) == 0);
    nothing();
    CHECK(ts_next_timer(host) == TS_NEVER);

    /* Nobody listens any more. */
    peer(SYN, "", 0);
    take();
    CHECK(packet[33] == (RST | ACK) && get32(packet + 28) == peer_seq);
    CHECK(ts_destroy(host) == 0);
    printf("scripted.c: all as expected\n");
    return 0;
}
