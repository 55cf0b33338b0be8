// mesh/proof.hpp - how brokers show each other that they know the secret.
//
//   dialler                                   acceptor
//   HELLO {server_id, instance, nonce, ->
//          mac, challenge: 1}
//                                      <-     CHALLENGE {server_id, instance, nonce, mac}
//   ANSWER {mac}                       ->
//
// The hello's mac is the old protocol's: it proves the secret to whoever sees it for the first
// time, and for ever to whoever recorded it. The answer covers a nonce that the acceptor made for
// this connection, so that a recording is worth nothing; both ids, so that it is worth nothing at
// another broker; and both instances, so that a broker whose frames somebody in between sends back
// to it knows itself. The challenge's own mac covers the dialler's nonce, so hints go to none but
// peers. Each kind of mac begins with a word of its own, so one can never pass for another.
#pragma once
#include <string>
#include <string_view>

namespace queen::mesh {

/// 32 hex digits from the system's random source. @errors throws when that has none
std::string make_nonce();

/// HMAC-SHA256 as 64 hex digits, over the nonce's text alone. @source ME-6
std::string hello_mac(std::string_view secret, std::string_view nonce);

/// What both macs of the challenge are made over.
struct Exchange {
    std::string_view dialler, acceptor; ///< server ids
    std::string_view hello_nonce, challenge_nonce;
    /// Part of it when both said one: brokers before it say none.
    std::string_view dialler_instance{}, acceptor_instance{};
};
std::string challenge_mac(std::string_view secret, const Exchange& exchange);
std::string answer_mac(std::string_view secret, const Exchange& exchange);

/// Takes as long for texts that differ early as for those that differ late.
bool same_mac(std::string_view a, std::string_view b) noexcept;

} // namespace queen::mesh
