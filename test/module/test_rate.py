"""A filter keeps its error rate however it came to its size, and takes no more
bits an item than was promised."""
import pytest
from servers import in_batches

MILLION = 1000000


@pytest.mark.parametrize("reserve, items, bits", [
    ((0.01, MILLION, "NONSCALING"), 990000, 9.95 / 0.99),
    ((0.01, MILLION), MILLION, 11.0),
    ((0.01, MILLION // 4), 10 * MILLION // 4, 21),
    (None, 10 * MILLION // 4, 28)],
    ids=["nonscaling", "reserved", "a tenth reserved", "nothing reserved"])
def test_rate_and_size_at_1_percent(server, r, reserve, items, bits):
    if reserve:
        assert r("BF.RESERVE", "k", *reserve) == "OK"
    fresh = in_batches(server.port, "BF.MADD", "k", range(items))

    assert r("BF.CARD", "k") == fresh >= 0.99 * items
    known = range(0, items, items // 100000)[:90000]
    assert in_batches(server.port, "BF.MEXISTS", "k", known) == 90000
    absent = range(10**11, 10**11 + MILLION)
    passed = in_batches(server.port, "BF.MEXISTS", "k", absent)
    assert passed / MILLION <= 0.01
    assert 8 * r("BF.INFO", "k", "SIZE")[0] / items <= bits


def test_the_rate_holds_at_every_size_on_the_way(server, r):
    """From 100 to a million, queried at each doubling. Of 100,000 absent keys 1,000
    may pass; 1,200 would happen by chance once in 10^9 times."""
    at, step = 0, 1000
    while at < MILLION:
        to = min(MILLION, max(2 * at, step))
        in_batches(server.port, "BF.MADD", "k", range(at, to))
        at = to
        passed = in_batches(server.port, "BF.MEXISTS", "k",
                            range(10**11, 10**11 + 100000))
        assert passed < 1200, at
    assert r("BF.INFO", "k", "EXPANSION") == [2]
