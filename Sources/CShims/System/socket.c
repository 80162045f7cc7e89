#include "csystem.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int64_t system_socket_taken(int descriptor)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    int unread = 0;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) || ioctl(descriptor, SIOCINQ, &unread))
        return -1;
    if (size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
        return -1;
    return (int64_t)info.tcpi_bytes_received - unread;
}

int system_socket_has_unsent(int descriptor)
{
    int unsent = 0;
    return !ioctl(descriptor, SIOCOUTQNSD, &unsent) && unsent > 0;
}

/* FNV-1a. */
static uint64_t mixed(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t index = 0; index < count; index++)
        hash = (hash ^ ((const unsigned char *)bytes)[index]) * 0x100000001B3;
    return hash;
}

uint64_t system_connection_name(const char *address, int remote_port, int local_port)
{
    const int ports[] = {remote_port, local_port};
    return mixed(mixed(0xCBF29CE484222325, ports, sizeof ports), address, strlen(address));
}

static const char *text(const struct sockaddr_storage *name, char *text, int *port)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)name;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)name;
    int is_six = name->ss_family == AF_INET6;
    *port = ntohs(is_six ? six->sin6_port : four->sin_port);
    return inet_ntop(name->ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, text, INET6_ADDRSTRLEN);
}

uint64_t system_socket_name(int descriptor)
{
    struct sockaddr_storage local, remote;
    socklen_t size = sizeof local, remote_size = sizeof remote;
    char address[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
    int local_port, remote_port;
    if (getsockname(descriptor, (struct sockaddr *)&local, &size)
        || getpeername(descriptor, (struct sockaddr *)&remote, &remote_size) || !text(&local, own, &local_port)
        || !text(&remote, address, &remote_port))
        return 0;
    return system_connection_name(address, remote_port, local_port);
}

int system_unread(int descriptor)
{
    int count = 0;
    return ioctl(descriptor, FIONREAD, &count) == 0 ? count : 0;
}
