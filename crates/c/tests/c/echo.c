/* An echo server and a client of it, over libtransom.
 *
 *     echo server PORT          serves one connection
 *     echo client ADDRESS PORT  sends a megabyte and compares what comes back
 *     echo both                 both, in one process, over memory
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <transom/transom.h>

#define CHECK(what) ((what) ? (void)0 : fail(__LINE__, #what))

static void fail(int line, const char *what)
{
    char why[256] = "";

    int error = errno;

    transom_message(why, sizeof why);
    printf("echo.c:%d: %s: %s (%s)\n", line, what, strerror(error), why);
    exit(1);
}

static struct sockaddr_in at(const char *address, int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    CHECK(inet_pton(AF_INET, address, &addr.sin_addr) == 1);
    return addr;
}

static int listener(int stack, const char *address, int port)
{
    struct sockaddr_in addr = at(address, port);
    int fd = transom_socket_on(stack, AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0);
    CHECK(transom_bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0);
    CHECK(transom_listen(fd, 5) == 0);
    return fd;
}

static void *serve(void *argument)
{
    int fd = *(int *)argument;
    struct sockaddr_in peer;
    socklen_t len = sizeof peer;
    char buffer[16384];
    ssize_t received;
    int stream = transom_accept(fd, (struct sockaddr *)&peer, &len);

    CHECK(stream >= 0);
    CHECK(len == sizeof peer && peer.sin_family == AF_INET && peer.sin_port != 0);
    while ((received = transom_read(stream, buffer, sizeof buffer)) > 0)
        CHECK(transom_write(stream, buffer, (size_t)received) == received);
    CHECK(received == 0);
    CHECK(transom_close(stream) == 0);
    CHECK(transom_close(fd) == 0);
    return NULL;
}

enum { LENGTH = 1 << 20 };

static void *send_all(void *argument)
{
    int fd = *(int *)argument;
    char *bytes = malloc(LENGTH);

    CHECK(bytes != NULL);
    for (int i = 0; i < LENGTH; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    CHECK(transom_send(fd, bytes, LENGTH, 0) == LENGTH);
    CHECK(transom_shutdown(fd, SHUT_WR) == 0);
    free(bytes);
    return NULL;
}

static void run_client(int stack, const char *address, int port)
{
    struct sockaddr_in addr = at(address, port);
    int fd = transom_socket_on(stack, AF_INET, SOCK_STREAM, 0);
    pthread_t writer;
    char buffer[10000];
    ssize_t received;
    int offset = 0;

    CHECK(fd >= 0);
    CHECK(transom_connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0);
    CHECK(pthread_create(&writer, NULL, send_all, &fd) == 0);
    while ((received = transom_recv(fd, buffer, sizeof buffer, 0)) > 0)
        for (ssize_t i = 0; i < received; i++, offset++)
            CHECK(buffer[i] == (char)(offset * 7 + offset / 251));
    CHECK(received == 0);
    CHECK(offset == LENGTH);
    CHECK(pthread_join(writer, NULL) == 0);
    CHECK(transom_close(fd) == 0);
    printf("%d bytes came back\n", offset);
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 3 && strcmp(arguments[1], "server") == 0) {
        int fd = listener(0, "0.0.0.0", atoi(arguments[2]));

        puts("listening");
        serve(&fd);
        puts("served");
    } else if (count == 4 && strcmp(arguments[1], "client") == 0) {
        run_client(0, arguments[2], atoi(arguments[3]));
    } else if (count == 2 && strcmp(arguments[1], "both") == 0) {
        int one = transom_stack_open("mem:echo", "192.0.2.1/24", NULL);
        int other = transom_stack_open("mem:echo", "192.0.2.2/24", "modern");
        pthread_t server;
        int fd;

        CHECK(one > 0);
        CHECK(other > one);
        fd = listener(other, "192.0.2.2", 7);
        CHECK(pthread_create(&server, NULL, serve, &fd) == 0);
        run_client(one, "192.0.2.2", 7);
        CHECK(pthread_join(server, NULL) == 0);
        CHECK(transom_stack_close(one) == 0);
        CHECK(transom_stack_close(other) == 0);
    } else {
        return 2;
    }
    return 0;
}
