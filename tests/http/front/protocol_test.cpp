// What a client sees on the wire: framing, order, persistence, refusals it can read.
#include "http/front/front_fixture.hpp"

namespace queen::test {
namespace {

class Protocol : public FrontTest {};

TEST_F(Protocol, AnswersAGetWithExactLengthTypeAndDate) {
    RawClient client = connect();
    const Answer answer = client.ask(get("/echo?a=1&b=%20"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "GET /echo?a=1&b=%20\n");
    EXPECT_EQ(answer.field("Content-Type"), "text/plain");
    ASSERT_TRUE(answer.field("Date"));
    EXPECT_TRUE(answer.field("Date")->ends_with(" GMT"));
    EXPECT_FALSE(answer.field("Connection"));
}

} // namespace
} // namespace queen::test
