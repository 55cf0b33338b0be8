// model/encryption.hpp - payloads encrypted at rest.
//
// A stored envelope is the JSON object {"encrypted","iv","authTag"}, standard base64: the payload
// under AES-256-GCM, 16 random bytes, the tag of 16 bytes. Of the 16 bytes only the first 12 are
// the nonce; all are stored because other brokers of this API write and read them so (ENC-2). The
// frame's flag alone says that a payload is an envelope. A payload that merely looks like one is
// its producer's own: to open it would let whoever may push and pop read what somebody else copied
// out of the database (ENC-3).
#pragma once
#include "base/result.hpp"

#include <array>
#include <string>
#include <string_view>

namespace queen {

/// The broker's one key.
/// Invariant: the key's bytes are wiped with the object.
/// @thread any, concurrently
/// @source ENC-2
class Cipher {
public:
    /// @param key 64 hex digits
    /// @errors invalid_argument, without a digit of the key
    static Result<Cipher> from_hex(std::string_view key);

    Cipher(Cipher&& other) noexcept;
    Cipher& operator=(Cipher&&) = delete;
    ~Cipher();

    /// The envelope of a payload below 2 GiB, under a fresh nonce. A system that has no random
    /// bytes to give ends the program: whatever else it did would not be encryption.
    std::string seal(std::string_view payload) const;
    /// The payload of an envelope.
    /// @errors corrupt: not an envelope, another key's, or changed since
    Result<std::string> open(std::string_view envelope) const;

private:
    Cipher() = default;
    std::array<unsigned char, 32> key_{};
};

/// What a reader shows of a stored payload.
struct RenderedPayload {
    std::string_view json; ///< into the stored bytes, or into `scratch`
    bool sealed = false;   ///< still an envelope: no key here opens it
};

/// Every reader's way to a payload: opens what the frame marks as encrypted, and delivers the
/// envelope unchanged when there is no key or not the right one (ENC-3). Nothing stored reads as
/// null (FMT-8).
/// @param encrypted the frame's flag, or the column's
/// @param cipher null without a key
/// @param scratch holds an opened payload; reused from one call to the next
/// @source ENC-3
RenderedPayload render_payload(std::string_view stored, bool encrypted, const Cipher* cipher,
                               std::string& scratch);

} // namespace queen
