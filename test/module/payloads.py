"""DUMP payloads: an RDB value, the version of RDB, and a CRC-64 of both."""

POLYNOMIAL = 0x95AC9329AC4BC9B5  # Jones's, reflected, as Redis has it


def _table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = _table()


def crc64(data):
    crc = 0
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


def sealed(payload):
    """The payload with the checksum that belongs to it."""
    return payload[:-8] + crc64(payload[:-8]).to_bytes(8, "little")
