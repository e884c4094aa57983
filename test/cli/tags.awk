# A test that asks is_sanitized has the tag `full`, or it would not run without a
# sanitizer: awk -f tags.awk FILE.bats...
FNR == 1 { name = ""; all = 0 }
/^# bats file_tags=full$/ { all = 1 }
/^@test/ { name = $0; tagged = all || before == "# bats test_tags=full" }
/is_sanitized/ && name && !tagged {
    print FILENAME ": no '# bats test_tags=full' before " name
    bad = 1
}
{ before = $0 }
END { exit bad }
