/* Connects, writes, and returns without closing anything. The environment says where the default stack is. */

#include "check.h"

int main(int count, char **arguments)
{
    static char bytes[500000];
    struct sockaddr_in addr;
    int fd = transom_socket(AF_INET, SOCK_STREAM, 0);

    (void)open_stacks;
    (void)connected;
    (void)hang_up;
    CHECK(count == 3);
    addr = at(arguments[1], atoi(arguments[2]));
    CHECK(fd >= 0);
    CHECK(transom_connect(fd, ADDRESS(addr)) == 0);
    CHECK(transom_send(fd, bytes, sizeof bytes, 0) == sizeof bytes);
    return 0;
}
