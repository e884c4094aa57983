"""XXH3-64, XXH64, SipHash-2-4, MurmurHash3 and FNV-1a in plain Python, for read_filter.py.

Written from the xxHash specification and the papers; slow, and meant to be read. Each takes bytes and a seed, or a key of 16 bytes, and returns 64 bits.
"""
from struct import unpack_from

M32, M64 = 2**32 - 1, 2**64 - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F,
                      0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def u32(data, at):
    return unpack_from("<I", data, at)[0]


def u64(data, at):
    return unpack_from("<Q", data, at)[0]


def rotate(x, n):
    return (x << n | x >> 64 - n) & M64


def swap(x, size):
    return int.from_bytes(x.to_bytes(size, "little"), "big")


# ---- XXH64 ------------------------------------------------------------------

def xxh64_round(lane, word):
    return rotate((lane + word * P2) & M64, 31) * P1 & M64


def xxh64_avalanche(x):
    x = (x ^ x >> 33) * P2 & M64
    x = (x ^ x >> 29) * P3 & M64
    return x ^ x >> 32


def xxh64(data, seed=0):
    size, at = len(data), 0
    if size >= 32:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        while at + 32 <= size:
            lanes = [xxh64_round(lane & M64, word) for lane, word
                     in zip(lanes, unpack_from("<4Q", data, at))]
            at += 32
        x = sum(rotate(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18)))
        for lane in lanes:
            x = ((x ^ xxh64_round(0, lane)) * P1 + P4) & M64
    else:
        x = seed + P5
    x = x + size & M64
    for at in range(at, size - 7, 8):
        x = (rotate(x ^ xxh64_round(0, u64(data, at)), 27) * P1 + P4) & M64
    at = size & ~7
    if size & 4:
        x = (rotate(x ^ u32(data, at) * P1 & M64, 23) * P2 + P3) & M64
        at += 4
    for byte in data[at:]:
        x = rotate(x ^ byte * P5 & M64, 11) * P1 & M64
    return xxh64_avalanche(x)


# ---- XXH3-64 ----------------------------------------------------------------

def fold(a, b):
    return a * b & M64 ^ a * b >> 64


def avalanche(x):
    x = (x ^ x >> 37) * 0x165667919E3779F9 & M64
    return x ^ x >> 32


def mix(data, at, secret_at, seed):
    return fold(u64(data, at) ^ (u64(SECRET, secret_at) + seed & M64),
                u64(data, at + 8) ^ (u64(SECRET, secret_at + 8) - seed & M64))


def xxh3(data, seed=0):
    size = len(data)
    if size > 240:
        return xxh3_long(data, seed)
    if size > 128:
        x = size * P1 + sum(mix(data, i, i, seed) for i in range(0, 128, 16))
        x = avalanche(x & M64)
        x += sum(mix(data, i, i - 125, seed)
                 for i in range(128, size - 15, 16))
        return avalanche(x + mix(data, size - 16, 119, seed) & M64)
    if size > 16:
        x = size * P1
        for i in range(0, (size + 31) // 32):
            x += mix(data, 16 * i, 32 * i, seed)
            x += mix(data, size - 16 * (i + 1), 32 * i + 16, seed)
        return avalanche(x & M64)
    if size > 8:
        a = u64(data, 0) ^ (u64(SECRET, 24) ^ u64(SECRET, 32)) + seed & M64
        b = u64(data, size - 8) ^ (
            u64(SECRET, 40) ^ u64(SECRET, 48)) - seed & M64
        return avalanche(size + swap(a, 8) + b + fold(a, b) & M64)
    if size > 3:
        seed ^= swap(seed & M32, 4) << 32
        x = u32(data, size - 4) + (u32(data, 0) << 32)
        x ^= (u64(SECRET, 8) ^ u64(SECRET, 16)) - seed & M64
        x ^= rotate(x, 49) ^ rotate(x, 24)
        x = x * 0x9FB21C651E98DF25 & M64
        x = (x ^ (x >> 35) + size) * 0x9FB21C651E98DF25 & M64
        return x ^ x >> 28
    if size > 0:
        x = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return xxh64_avalanche(
            x ^ (u32(SECRET, 0) ^ u32(SECRET, 4)) + seed & M64)
    return xxh64_avalanche(seed ^ u64(SECRET, 56) ^ u64(SECRET, 64))


def xxh3_long(data, seed):
    words = unpack_from("<24Q", SECRET)
    words = [w + (-seed if i % 2 else seed) & M64 for i, w in enumerate(words)]
    secret = b"".join(w.to_bytes(8, "little") for w in words)
    acc = [P32_3, P1, P2, P3, P4, P32_2, P5, P32_1]

    def stripe(at, keys):
        for i, word in enumerate(unpack_from("<8Q", data, at)):
            key = word ^ keys[i]
            acc[i ^ 1] += word
            acc[i] = acc[i] + (key & M32) * (key >> 32) & M64

    size = len(data)
    for at in range(0, size - 1 & ~63, 64):
        n = at // 64 % 16
        stripe(at, words[n:])
        if n == 15:
            for i in range(8):
                x = acc[i] & M64
                acc[i] = (x ^ x >> 47 ^ words[16 + i]) * P32_1 & M64
    stripe(size - 64, unpack_from("<8Q", secret, 121))
    return avalanche(size * P1 + sum(
        fold(acc[i] & M64 ^ u64(secret, 11 + 8 * i),
             acc[i + 1] & M64 ^ u64(secret, 19 + 8 * i))
        for i in range(0, 8, 2)) & M64)


# ---- SipHash-2-4 ------------------------------------------------------------

def siphash(data, key):
    k0, k1 = unpack_from("<2Q", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D,
         k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(n):
        a, b, c, d = v
        for _ in range(n):
            a, c = a + b & M64, c + d & M64
            b, d = rotate(b, 13) ^ a, rotate(d, 16) ^ c
            a, c = rotate(a, 32) + d & M64, c + b & M64
            b, d = rotate(b, 17) ^ c, rotate(d, 21) ^ a
            c = rotate(c, 32)
        v[:] = a, b, c, d

    end = len(data) & ~7
    tail = data[end:].ljust(7, b"\0") + bytes([len(data) & 255])
    for word in unpack_from(f"<{end // 8}Q", data) + unpack_from("<Q", tail):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


# ---- MurmurHash3, the first 64 of its 128 bits ------------------------------

def murmur3_mix(x):
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & M64
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & M64
    return x ^ x >> 33


def murmur3(data, seed=0):
    a, b = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = seed
    end = len(data) & ~15
    for at in range(0, end, 16):
        h1 ^= rotate(u64(data, at) * a & M64, 31) * b & M64
        h1 = (rotate(h1, 27) + h2) * 5 + 0x52DCE729 & M64
        h2 ^= rotate(u64(data, at + 8) * b & M64, 33) * a & M64
        h2 = (rotate(h2, 31) + h1) * 5 + 0x38495AB5 & M64
    k1, k2 = unpack_from("<2Q", data[end:].ljust(16, b"\0"))
    h2 ^= rotate(k2 * b & M64, 33) * a & M64 ^ len(data)
    h1 ^= rotate(k1 * a & M64, 31) * b & M64 ^ len(data)
    h1 = h1 + h2 & M64
    h2 = h2 + h1 & M64
    return murmur3_mix(h1) + murmur3_mix(h2) & M64


# ---- FNV-1a, with the mix of MurmurHash3 at the end -------------------------

def fnv1a(data, seed=0):
    x = 0xCBF29CE484222325 ^ seed
    for byte in data:
        x = (x ^ byte) * 0x100000001B3 & M64
    return murmur3_mix(x)
