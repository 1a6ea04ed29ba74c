/* Two stacks of one process with a connection between them, for somebody who looks at it from outside.
 *
 * It says "connected" and goes on when its input ends. A child that has come and gone by then leaves everything as it is.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <transom/transom.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : fail(__LINE__, #what))

static void fail(int line, const char *what)
{
    char why[256] = "";

    transom_message(why, sizeof why);
    printf("status.c:%d: %s (%s)\n", line, what, why);
    exit(1);
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7)};
    int here = transom_stack_open("mem:status", "192.0.2.1/24", NULL);
    char why[256] = "";
    char bytes[5];

    CHECK(here > 0);
    transom_message(why, sizeof why);
    int there = transom_stack_open("mem:status", "192.0.2.2/24", NULL);
    CHECK(there > 0);
    CHECK(inet_pton(AF_INET, "192.0.2.2", &at.sin_addr) == 1);
    int listener = transom_socket_on(there, AF_INET, SOCK_STREAM, 0);
    CHECK(transom_bind(listener, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(transom_listen(listener, 5) == 0);
    int client = transom_socket_on(here, AF_INET, SOCK_STREAM, 0);
    CHECK(transom_connect(client, (struct sockaddr *)&at, sizeof at) == 0);
    int server = transom_accept(listener, NULL, NULL);
    CHECK(server >= 0);
    CHECK(transom_send(client, "hello", 5, 0) == 5);
    /* The counts that the test reads are those of bytes that have arrived. */
    CHECK(transom_recv(server, bytes, sizeof bytes, MSG_WAITALL) == 5);
    /* It ends when its last socket is closed. */
    CHECK(transom_stack_close(there) == 0);

    pid_t child = fork();
    int status;
    if (child == 0)
        exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    printf("connected %s\n", why);
    fflush(stdout);
    CHECK(getchar() == EOF);
    return 0;
}
