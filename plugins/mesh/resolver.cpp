#include "resolver.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace queen::mesh {
namespace {

class SystemResolver final : public Resolver {
public:
    ~SystemResolver() override { stop(); }

    void start(Done done) override {
        state_->done = std::move(done);
        thread_ = std::thread(run, state_);
    }

    void ask(std::uint64_t ticket, const Address& address) override {
        {
            const std::lock_guard lock(state_->mutex);
            state_->asked.emplace_back(ticket, address);
        }
        state_->changed.notify_one();
    }

    void stop() override {
        if (!thread_.joinable()) {
            return;
        }
        bool busy = false;
        {
            const std::lock_guard lock(state_->mutex);
            state_->stopped = true;
            state_->done = nullptr;
            busy = state_->busy;
        }
        state_->changed.notify_one();
        if (busy) {
            thread_.detach();
        } else {
            thread_.join();
        }
    }

private:
    /// Shared with the thread, which may outlive the resolver.
    struct State {
        std::mutex mutex; ///< held while `done` runs, so that stop() is the end of it
        std::condition_variable changed;
        std::deque<std::pair<std::uint64_t, Address>> asked;
        Done done;
        bool busy = false;
        bool stopped = false;
    };

    static void run(const std::shared_ptr<State>& state) {
        std::unique_lock lock(state->mutex);
        while (true) {
            state->changed.wait(lock, [&] { return state->stopped || !state->asked.empty(); });
            if (state->stopped) {
                return;
            }
            const auto [ticket, address] = std::move(state->asked.front());
            state->asked.pop_front();
            state->busy = true;
            lock.unlock();
            Resolved found = resolve(address, false);
            lock.lock();
            state->busy = false;
            if (state->done) {
                state->done(ticket, std::move(found));
            }
        }
    }

    std::shared_ptr<State> state_ = std::make_shared<State>();
    std::thread thread_;
};

} // namespace

std::unique_ptr<Resolver> make_system_resolver() {
    return std::make_unique<SystemResolver>();
}

} // namespace queen::mesh
