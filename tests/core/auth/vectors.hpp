// Keys and tokens made by Python's cryptography 48: what another implementation signs must verify
// here. The private keys are gone. All tokens: sub service-a, roles [read-write], iat 1800000000,
// exp an hour later, iss https://id.example, aud [queen, other].
#pragma once
#include <string_view>

namespace queen::auth::vectors {

inline constexpr std::string_view kRsaPem =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtSFce7TPbV8RtWMfqwlG\n"
    "ZtMs1eUy/lzeEX8xvstaJa7ODb66M4gkfCCYj1MzRfmFX/2WxQgGT4gnvaFsyw5p\n"
    "jQ+2QlQY0MQnEjSf9X0c9NvYzFYJ/dMksBnCpxLr/pM4Rv12nxzMEaONv5vroTCS\n"
    "6bXp/1Dm/NHB5r8sSz9NcAkjlSIrKsvaAeFFdVfbJkP8+TvcxyHMx2VV0TNIvTUM\n"
    "+0ohd375LglS3879uVESBx/vWMB5qgNAJcriBDTXCpZM6bHUl/J2fYWGcTGeCf2c\n"
    "iAVY8LyZServS5rW94aQMQXzQfiVwpeFXJ8TGPy92LmeWNxYDJIIagn1pDvZL3PY\n"
    "mwIDAQAB\n"
    "-----END PUBLIC KEY-----\n";

inline constexpr std::string_view kShortRsaPem =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDVLyrGgAeaXnt/CxsrZjxKkczy\n"
    "+IFu4tXeyMdCzrm8LTOWl+klUzXuCmhF7wHujSWHyvJiIXkH3pnwphw0qR/uL/lB\n"
    "YJdp+hIZWuaKYLhgO42p408oNc009Ana5q4jZYdhqgrefN2iPG8iqvGOOfyZ655N\n"
    "3CmF75FP0hGLYiohbQIDAQAB\n"
    "-----END PUBLIC KEY-----\n";

inline constexpr std::string_view kEdPem =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA8U7SB6ibV1GZS7/luTgHoP2PB3sBxt+qMhcda109NWQ=\n"
    "-----END PUBLIC KEY-----\n";

inline constexpr std::string_view kPrivatePem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEID77O2m0cKE3SA5O+FEQrtdN1h0xYEoQDI85q5N/meW0\n"
    "-----END PRIVATE KEY-----\n";

inline constexpr std::string_view kRsaModulus =
    "tSFce7TPbV8RtWMfqwlGZtMs1eUy_lzeEX8xvstaJa7ODb66M4gkfCCYj1MzRfmFX_2WxQgGT4gnvaFsyw5p"
    "jQ-2QlQY0MQnEjSf9X0c9NvYzFYJ_dMksBnCpxLr_pM4Rv12nxzMEaONv5vroTCS6bXp_1Dm_NHB5r8sSz9N"
    "cAkjlSIrKsvaAeFFdVfbJkP8-TvcxyHMx2VV0TNIvTUM-0ohd375LglS3879uVESBx_vWMB5qgNAJcriBDTX"
    "CpZM6bHUl_J2fYWGcTGeCf2ciAVY8LyZServS5rW94aQMQXzQfiVwpeFXJ8TGPy92LmeWNxYDJIIagn1pDvZ"
    "L3PYmw";

inline constexpr std::string_view kShortModulus =
    "1S8qxoAHml57fwsbK2Y8SpHM8viBbuLV3sjHQs65vC0zlpfpJVM17gpoRe8B7o0lh8ryYiF5B96Z8KYcNKkf"
    "7i_5QWCXafoSGVrmimC4YDuNqeNPKDXNNPQJ2uauI2WHYaoK3nzdojxvIqrxjjn8meueTdwphe-RT9IRi2Iq"
    "IW0";

inline constexpr std::string_view kEdX = "8U7SB6ibV1GZS7_luTgHoP2PB3sBxt-qMhcda109NWQ";

inline constexpr std::string_view kRS256 =
    "eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiAic2VydmljZS1hIiwgInJvbGVzIjogWyJ"
    "yZWFkLXdyaXRlIl0sICJpYXQiOiAxODAwMDAwMDAwLCAiZXhwIjogMTgwMDAwMzYwMCwgImlzcyI6ICJodHR"
    "wczovL2lkLmV4YW1wbGUiLCAiYXVkIjogWyJxdWVlbiIsICJvdGhlciJdfQ.I-mJxEJxPPm_9-EthYzzYRxP"
    "1JYvBYuvohjlzDyY9EKGJ2C5PGtmLv26zTQuNZeazzkBmUPI21kSLjTye6Fi36V08i0N9pAtY_-aSO23U-R4"
    "GwkAgxh_r-m5AcMY7w2amf5l8gJXtXvZCUg6WiLhCBe34kRB8kZ1l49EPa9zkw6BuXF7BhE_RjJadDEBdUpR"
    "0UBB4k9FBCylEU8n2QokFb-7YkeGp7z5e_4LzNOpqfjw9X08lh0qLouEESyX8AIDx9vAJK3y26X9IkEiw49x"
    "pQoeook2JghdRLK6dMpHnErZPP-N_GIeZeQCRplrXaI4dBsLIoBpofBGHR32lTka6A";

inline constexpr std::string_view kRS384 =
    "eyJhbGciOiAiUlMzODQiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiAic2VydmljZS1hIiwgInJvbGVzIjogWyJ"
    "yZWFkLXdyaXRlIl0sICJpYXQiOiAxODAwMDAwMDAwLCAiZXhwIjogMTgwMDAwMzYwMCwgImlzcyI6ICJodHR"
    "wczovL2lkLmV4YW1wbGUiLCAiYXVkIjogWyJxdWVlbiIsICJvdGhlciJdfQ.gkmZZj3V7Qc0D1GQ08j1sQJE"
    "tnycA_HPfoaoak1Yx5dAw1FudxaqD0l69DVcBDoRiuHVTVZH-YfihEIRxxuBm_tDLe_PTPxaMeYlhLXTy7qR"
    "YHL38st0qKgmV8YUfd2WexGNnn3xSqnR3oaRufGcPlbYicVjaV0aXdV76ZjtaMhrBBZBQUdkn8VZ8P2EVEuS"
    "D-fowN-TZcpEBWlXCXT_pcVsuZHCK1qa4lqC18DoWyKXRT7DXD2hQkYpHf0COLPdGjSL4r_3cvWIJBJBRzRA"
    "qxCLO4si6F4gc6ALhG0xnTcHCfUL-8kZsHMs7boeWnO7fhayt3bmBCjIWG995YoQLA";

inline constexpr std::string_view kRS512 =
    "eyJhbGciOiAiUlM1MTIiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiAic2VydmljZS1hIiwgInJvbGVzIjogWyJ"
    "yZWFkLXdyaXRlIl0sICJpYXQiOiAxODAwMDAwMDAwLCAiZXhwIjogMTgwMDAwMzYwMCwgImlzcyI6ICJodHR"
    "wczovL2lkLmV4YW1wbGUiLCAiYXVkIjogWyJxdWVlbiIsICJvdGhlciJdfQ.Fr3bs4yLLkYzd5QcRoa6SZb9"
    "WC5OswA6pfPUaod3cinjWngzZwFNAJ-sn9L8c_YNowQBY3cX8fx1qkbnbKUihil-nI2APTcotEi0_A_1Dvxy"
    "AjuFbWhQKb6d7K4ZtVkQ9-h8P0UK9GdwxJJdA6KN537rwQH7FQzW8XXpgsv8H8V5wGRNqi0uZh6NBChYJX8u"
    "RELt9zyxFe3BUzA2FNZ2fI-CB2S3dhG8p5oYOOnHec-M6Enf12Kul-29KG9-YYbJaY2A4rmCxQQmpKURfHrS"
    "aSjr4JDT5IQqR322N4BS89DLqHpYiVqtGl23kHqs9xfhSE6nBhCVC6ghFqrJ2tureA";

inline constexpr std::string_view kRS256WithKid =
    "eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAicnNhLTEifQ.eyJzdWIiOiAic2VydmljZ"
    "S1hIiwgInJvbGVzIjogWyJyZWFkLXdyaXRlIl0sICJpYXQiOiAxODAwMDAwMDAwLCAiZXhwIjogMTgwMDAwM"
    "zYwMCwgImlzcyI6ICJodHRwczovL2lkLmV4YW1wbGUiLCAiYXVkIjogWyJxdWVlbiIsICJvdGhlciJdfQ.jm"
    "n8sAd_fUYomoi0u0RfbFUycXMlUOSuM5IVVdIvTt9StuXCSL_j0ir_D9wWr_666ywk_K_z4o0_Z448bKFPq2"
    "EAJmOOEJhAXU8j_L4MHUvu5EElTcrpe17xHbSFG3mfyl-kfzPKy3Iu6PMBFk8UhkiLwbbix5WHFNRwlADybu"
    "1dM7vp6I8I4zBJFAq6rqKiS4t2CYMTKAdmV9MWMyWxGggeMqd_08B8ngNpTT-cRsGbPscQmNImAKhlGb1jnF"
    "8d3RP4m6QfXrKoPtqrNW5N1MNtd5BSQEUXtnb56g8DMU9XdOEtoXGGSPJ6Pj_QkrbfgFElAeUz03W0XuLyL-"
    "9Jng";

inline constexpr std::string_view kEdDSA =
    "eyJhbGciOiAiRWREU0EiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiAic2VydmljZS1hIiwgInJvbGVzIjogWyJ"
    "yZWFkLXdyaXRlIl0sICJpYXQiOiAxODAwMDAwMDAwLCAiZXhwIjogMTgwMDAwMzYwMCwgImlzcyI6ICJodHR"
    "wczovL2lkLmV4YW1wbGUiLCAiYXVkIjogWyJxdWVlbiIsICJvdGhlciJdfQ.3GYueaGYsRhh69Q_ZEaUY7c2"
    "NU0N2_5xeUz_CCqY5huATidp5FCTVMtBMkTHMA1XdzI0pmE3uHcMxuVkxJyPCw";

inline constexpr std::string_view kEdDSAWithKid =
    "eyJhbGciOiAiRWREU0EiLCAidHlwIjogIkpXVCIsICJraWQiOiAiZWQtMSJ9.eyJzdWIiOiAic2VydmljZS1"
    "hIiwgInJvbGVzIjogWyJyZWFkLXdyaXRlIl0sICJpYXQiOiAxODAwMDAwMDAwLCAiZXhwIjogMTgwMDAwMzY"
    "wMCwgImlzcyI6ICJodHRwczovL2lkLmV4YW1wbGUiLCAiYXVkIjogWyJxdWVlbiIsICJvdGhlciJdfQ.gf37"
    "xDVwg4ctcABRoHT2i68BaiwPRanYXGMQfxXDmP6KNtMLrbRFADeuBXKy9ZhUp54t3fAQjccoES6DR7yBCQ";

} // namespace queen::auth::vectors
