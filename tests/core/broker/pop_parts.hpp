#pragma once
#include "broker/pop.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/names.hpp"
#include "support/manual_workers.hpp"

namespace queen::broker {

/// A pop path over BrokerParts, and the requests that its tests begin with.
class PopParts : public BrokerParts {
protected:
    ~PopParts() override {
        store_ = {}; // its hooks refer to what the test had on its stack
        pops_.close();
        run_all();
    }

    static PopRequest request() {
        PopRequest request;
        request.tenant = kDefaultTenant;
        request.queue = "q";
        request.group = "g";
        return request;
    }
    static PopRequest waiting() {
        auto wanted = request();
        wanted.wait = true;
        return wanted;
    }
    void run_all() {
        while (workers_.run_one()) {
        }
    }

    test::ManualWorkers workers_;
    Pop pops_{store_, sources_, announcer_, parking_, workers_, ticker_, clock_, {}};
};

} // namespace queen::broker
