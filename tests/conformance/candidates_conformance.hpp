// tests/conformance/candidates_conformance.hpp - what every candidate source must keep to, whoever
// wrote it and however it is loaded. Depends on the public plugin headers and GoogleTest alone, so
// a vendor adds candidates_conformance.cpp to a test program and instantiates the suite:
//
//     INSTANTIATE_TEST_SUITE_P(Recent, CandidateConformance, testing::Values(Subject{"class", [] {
//         auto clock = std::make_shared<ManualClock>();
//         return Loaded{clock, std::make_shared<Recent>(Options{}, *clock), nullptr, {}};
//     }}), name_of);
#pragma once
#include <queen/plugin/testing.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

namespace queen::conformance {

struct Loaded {
    std::shared_ptr<plugin::ManualClock> clock; ///< the clock the source reads
    std::shared_ptr<plugin::CandidateSource> source;
    std::shared_ptr<void> keeps;         ///< whatever must outlive the source, or nullptr
    std::function<std::string()> faults; ///< what the host counted against it, "" for none
};

struct Subject {
    std::string name;             ///< letters and digits
    std::function<Loaded()> load; ///< a new source each time
    friend std::ostream& operator<<(std::ostream& out, const Subject& subject) {
        return out << subject.name;
    }
};

inline std::string name_of(const testing::TestParamInfo<Subject>& info) {
    return info.param.name;
}

class CandidateConformance : public testing::TestWithParam<Subject> {
protected:
    void SetUp() override {
        loaded_ = GetParam().load();
        ASSERT_NE(loaded_.source, nullptr) << "the subject could not be loaded";
    }
    /// Loaded through a host: its guard must have had nothing to object to.
    void TearDown() override {
        if (loaded_.faults) {
            EXPECT_EQ(loaded_.faults(), "");
        }
    }
    plugin::CandidateSource& source() { return *loaded_.source; }
    plugin::ManualClock& clock() { return *loaded_.clock; }

    Loaded loaded_;
};

} // namespace queen::conformance
