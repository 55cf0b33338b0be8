#include "beat.hpp"
#include "timers_conformance.hpp"

namespace queen::conformance {

INSTANTIATE_TEST_SUITE_P(Beat, TimersConformance,
                         testing::Values(TimersSubject{
                             "Class",
                             [](const std::shared_ptr<ScriptedTimers>& store,
                                const std::shared_ptr<plugin::ManualClock>& clock) {
                                 return LoadedDriver{
                                     std::make_shared<acme::beat::Beat>(
                                         acme::beat::Options{std::chrono::seconds(1), 5}, *clock,
                                         *store),
                                     nullptr,
                                     {}};
                             }}),
                         timers_name_of);

} // namespace queen::conformance
