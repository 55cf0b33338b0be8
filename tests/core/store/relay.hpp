#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace queen::store::test {

/// Stands between a client and a server's unix socket, and can go silent: bytes of the connections
/// it has then are swallowed in both directions without any of them being closed, as by a network
/// that drops packets. Connections made later pass.
class Relay {
public:
    Relay(std::string listen_path, std::string server_path); ///< throws std::system_error
    ~Relay();
    void go_silent();

private:
    struct Link {
        int client, server;
        bool silent = false;
    };
    void work();
    /// @return false at the end of the stream
    static bool pass(int from, int to, bool silent);

    std::string server_path_;
    int listener_, wake_;
    std::mutex mutex_;
    std::vector<Link> links_; ///< Requires mutex_.
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

} // namespace queen::store::test
