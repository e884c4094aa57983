"""RBloomFilter of Redisson as it writes into a server, apart from Calyx:
HighwayHash, positions, SETBIT and the config."""
import math

MASK = 2**64 - 1
SECRET = (0x9E3779B97F4A7C15, 0xF39CC0605CEDC834, 0x1082276BF3A27251, 0xF86C6A11D0C18E95)
INIT0 = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
INIT1 = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)
# Of the 16 bytes of two lanes, which one goes to each place.
ZIP = (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)


def swap(x):
    return x >> 32 | (x << 32) & MASK


def zipped(low, high):
    both = low.to_bytes(8, "little") + high.to_bytes(8, "little")
    out = bytes(both[i] for i in ZIP)
    return int.from_bytes(out[:8], "little"), int.from_bytes(out[8:], "little")


class Highway:
    def __init__(self, key):
        self.mul0, self.mul1 = list(INIT0), list(INIT1)
        self.v0 = [m ^ k for m, k in zip(INIT0, key)]
        self.v1 = [m ^ swap(k) for m, k in zip(INIT1, key)]

    def update(self, lanes):
        for i, lane in enumerate(lanes):
            self.v1[i] = (self.v1[i] + self.mul0[i] + lane) & MASK
            self.mul0[i] ^= (self.v1[i] & 0xFFFFFFFF) * (self.v0[i] >> 32)
            self.v0[i] = (self.v0[i] + self.mul1[i]) & MASK
            self.mul1[i] ^= (self.v0[i] & 0xFFFFFFFF) * (self.v1[i] >> 32)
        for to, by in (self.v0, self.v1), (self.v1, self.v0):
            for pair in 0, 2:
                first, second = zipped(by[pair], by[pair + 1])
                to[pair] = (to[pair] + first) & MASK
                to[pair + 1] = (to[pair + 1] + second) & MASK

    def packet(self, data):
        self.update([int.from_bytes(data[i:i + 8], "little") for i in (0, 8, 16, 24)])

    def rest(self, data):
        size, odd = len(data), len(data) % 4
        packet = bytearray(32)
        packet[:size - odd] = data[:size - odd]
        if size >= 16:
            packet[28:] = data[-4:]
        elif odd:
            tail = data[size - odd:]
            packet[16:19] = bytes((tail[0], tail[odd >> 1], tail[-1]))
        for i in range(4):
            self.v0[i] = (self.v0[i] + (size << 32) + size) & MASK
            halves = self.v1[i] & 0xFFFFFFFF, self.v1[i] >> 32
            low, high = ((h << size | h >> 32 - size) & 0xFFFFFFFF for h in halves)
            self.v1[i] = high << 32 | low
        self.packet(bytes(packet))

    def of(self, data):
        """The two halves of 128 bits."""
        whole = len(data) // 32 * 32
        for at in range(0, whole, 32):
            self.packet(data[at:at + 32])
        if data[whole:]:
            self.rest(data[whole:])
        for _ in range(6):
            v = self.v0
            self.update([swap(v[2]), swap(v[3]), swap(v[0]), swap(v[1])])
        return tuple((self.v0[i] + self.mul0[i] + self.v1[i + 2] + self.mul1[i + 2]) & MASK
                     for i in (0, 1))


class RBloomFilter:
    """For items whose codec makes them these bytes."""

    def __init__(self, client, name, capacity, rate):
        self.client, self.name = client, name
        self.config = (name if "{" in name else "{%s}" % name) + ":config"
        self.size = int(-capacity * math.log(rate) / (math.log(2) * math.log(2)))
        self.probes = max(1, math.floor(self.size / capacity * math.log(2) + 0.5))
        client("HSET", self.config, "size", self.size, "hashIterations", self.probes,
               "expectedInsertions", capacity, "falseProbability", repr(rate))

    def positions(self, item):
        first, second = Highway(SECRET).of(item)
        at, hash_ = [], first
        for i in range(self.probes):
            at.append((hash_ & 2**63 - 1) % self.size)
            hash_ = (hash_ + (first if i % 2 else second)) & MASK
        return at

    def add(self, item):
        for p in self.positions(item):
            self.client("SETBIT", self.name, p, 1)

    def bits(self):
        return self.client("GET", self.name) or b""

    def contains(self, bits, item):
        return all(p // 8 < len(bits) and bits[p // 8] & 128 >> p % 8
                   for p in self.positions(item))
