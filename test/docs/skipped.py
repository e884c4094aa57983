"""dev/list-skipped finds the cases that each kind of test program skips.

    test/docs/skipped.py LIST-SKIPPED
"""
import subprocess
import sys
import tempfile

LOG = """Start testing: Nov 17 06:00 UTC
----------------------------------------------------------
1/9 Testing: unit.a@avx2
1/9 Test: unit.a@avx2
[ RUN      ] it_works
[       OK ] it_works
[  SKIPPED ] it_is_large
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] it_is_large
Test Passed.
2/9 Testing: unit.a@scalar
2/9 Test: unit.a@scalar
[  SKIPPED ] it_is_large
3/9 Testing: cli.b
3/9 Test: cli.b
ok 1 what skips # nothing
ok 2 files of others # skip only root can make them
4/9 Testing: module.c
4/9 Test: module.c
SKIPPED [1] test/module/test_c.py:9: no such server
4 passed, 1 skipped in 0.1s
"""
WANTED = """skipped: it_is_large (unit.a@avx2, unit.a@scalar)
skipped: files of others: only root can make them (cli.b)
skipped: test/module/test_c.py:9: no such server (module.c)
"""

with tempfile.NamedTemporaryFile("w") as log:
    log.write(LOG)
    log.flush()
    found = subprocess.run([sys.argv[1], log.name], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
assert found == WANTED, found
