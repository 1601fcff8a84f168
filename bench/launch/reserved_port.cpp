#include "bench/launch/reserved_port.hpp"

#include "bench/core/error.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace bench {

ReservedPort::ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int reuse = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)) != 0 ||
      ::bind(socket_.get(), generic, size) != 0 ||
      ::getsockname(socket_.get(), generic, &size) != 0) {
    throw MachineError(std::string("no free loopback port: ") + std::strerror(errno));
  }
  number_ = ntohs(address.sin_port);
}

}  // namespace bench
