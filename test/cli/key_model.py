"""Compare the keys of random lines with the keys of a model, verb by verb.

    key_model.py CALYX FOLDER CASES SEED
"""
import gzip
import json
import os
import random
import subprocess
import sys

SPACE = b" \t\n\x0b\x0c\r"


class Missing(Exception):
    pass


class Wrong(Exception):
    pass


class Number(str):
    pass


def unquoted(field):
    return field[1:-1].replace(b'""', b'"') if field[:1] == b'"' else field


def csv_fields(line, sep):
    """Fields as in the line; every quoted one here is sound or the line is wrong."""
    fields, at = [], 0
    while True:
        start = at
        if line[at:at + 1] == b'"':
            at += 1
            while True:
                at = line.find(b'"', at)
                if at < 0:
                    raise Wrong
                if line[at + 1:at + 2] != b'"':
                    break
                at += 2
            at += 1
            if at < len(line) and line[at:at + 1] != sep:
                raise Wrong
        else:
            at = line.find(sep, at)
            at = len(line) if at < 0 else at
        fields.append(line[start:at])
        if at == len(line):
            return fields
        at += 1


def constant(name):
    raise Wrong


def json_value(line, path):
    try:
        value = json.loads(line.decode(), parse_int=Number, parse_float=Number,
                           parse_constant=constant) if line.strip(b" \t\r") else {}
    except (ValueError, RecursionError):
        raise Wrong from None
    if not isinstance(value, dict):
        raise Wrong
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        raise Missing
    if value is True or value is False:
        return str(value).lower().encode()
    if isinstance(value, (dict, list)):
        raise Wrong
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise Wrong from None


class Case:
    def __init__(self, rng):
        self.rng = rng
        self.end = b"\0" if rng.random() < 0.2 else b"\n"
        self.form = rng.choice(["tab", "sep", "blanks", "csv", "csv", "json", "json"])
        self.fold, self.trim = rng.random() < 0.3, rng.random() < 0.4
        self.crlf = rng.random() < 0.3
        self.header = self.form != "json" and rng.random() < 0.5
        self.missing = rng.choice(["error", "skip", "skip", "empty"])
        self.invalid = rng.choice(["error", "skip"])
        self.separator = {"tab": b"\t", "csv": b","}.get(self.form)
        if self.form == "sep":
            self.separator = rng.choice([b"::", b"|", b"ab", b"\x01", b" ; "])
        if self.form == "csv" and rng.random() < 0.3:
            self.separator = b";"
        self.names = [b"id", b"e mail", b'q"x', b"2", "ü".encode()]
        self.bad = rng.random() < (0.5 if self.invalid == "skip" else 0.15)
        if self.form == "json":
            self.paths = rng.sample([("a",), ("a", "b"), ("n",), ("a.b",), ("é",)],
                                    rng.choice([1, 1, 2]))
        else:
            self.columns = [self.column() for _ in range(rng.choice([0, 1, 1, 2]))]

    def column(self):
        if self.header and self.rng.random() < 0.6:
            name = self.rng.choice(self.names)
            if self.form == "blanks" and b" " in name:
                name = b"id"
            return name
        return self.rng.choice([(1, 1), (2, 2), (-1, -1), (2, 3), (2, -1), (-2, -1)])

    def options(self):
        words = []
        if self.end == b"\0":
            words.append("-z")
        for flag in ("crlf", "trim", "header"):
            if getattr(self, flag):
                words.append("--" + flag)
        if self.fold:
            words.append("-i")
        if self.form in ("csv", "blanks"):
            words.append("--" + self.form)
        if self.separator not in (None, b"\t", b","):
            words += ["-t", "".join("\\x%02x" % b if b < 33 else chr(b)
                                    for b in self.separator)]
        words += ["--missing=" + self.missing, "--invalid=" + self.invalid]
        if self.form == "json":
            for path in self.paths:
                words += ["--jsonl", ".".join(p.replace(".", "\\.") for p in path)]
        elif self.columns:
            words += ["-k", ",".join(self.written(c) for c in self.columns)]
        return words

    @staticmethod
    def written(column):
        if isinstance(column, bytes):
            name = column.decode().replace("\\", "\\\\").replace('"', '\\"')
            return '"%s"' % name
        first, last = column
        if first == last:
            return str(first)
        return "%d-" % first if last == -1 else "%d-%d" % column

    # ---- random files ----

    def field(self):
        rng = self.rng
        text = bytes(rng.choice(b"abAB 1;,|:\t\x01") for _ in range(rng.randrange(4)))
        if self.form == "csv":
            if rng.random() < 0.3:
                text += rng.choice([b'""', b"\n", b",", b"\r\n", b"\0"])
                if self.end != b"\0":
                    text = text.replace(b"\0", b"")
                return b'"' + text + b'"'
            text = text.replace(self.separator, b"")
        elif self.separator:
            text = text.replace(self.separator, b"")
        return text

    def text_line(self):
        if self.bad and self.rng.random() < 0.1 and self.form == "csv":
            return self.rng.choice([b'"x"y', b'a,"x', b'"x\ny"z,"'])
        fields = [self.field() for _ in range(self.rng.choice([1, 2, 3, 3, 3]))]
        if self.form == "blanks":
            return self.rng.choice([b" ", b"\t ", b"  "]).join(fields)
        return self.separator.join(fields)

    def json_text(self, depth):
        rng = self.rng
        kind = rng.randrange(12 if depth < 3 else 7)
        if kind < 3:
            return rng.choice(['"x"', '"X "', '" \\t\\u00e9"', '"\\ud83d\\ude00"',
                               '"a\\"b\\\\"', '""', '"é"', '"\\/\\b\\f\\n\\r"'])
        if kind < 5:
            return rng.choice(["1", "-0", "1.50", "2e+3", "10", "1E2", "0.0"])
        if kind == 5:
            return rng.choice(["true", "false", "null"])
        if kind == 6 and depth > 0:
            return rng.choice(["[]", "[1, {\"a\": 2}]", "{}", "[[\"b\"]]"]) \
                if self.bad or depth > 1 else "7"
        pairs = [(rng.choice(['"a"', '"b"', '"n"', '"a.b"', '"\\u0061"', '"\\u00e9"', '"é"',
                              '"c"']), self.json_text(depth + 1))
                 for _ in range(rng.randrange(4))]
        space = rng.choice(["", " ", "\t"])
        return "{" + space + ("," + space).join(
            k + space + ":" + space + v for k, v in pairs) + space + "}"

    def json_line(self):
        rng = self.rng
        text = self.json_text(0)
        while not text.startswith("{"):
            text = self.json_text(0)
        if rng.random() < 0.05:
            text = rng.choice(["", "  "])
        elif self.bad and rng.random() < 0.15:
            cut = rng.randrange(len(text))
            text = rng.choice([text[:cut], text[:cut] + "x" + text[cut:], text + "}",
                               '{"a":"\\ud800"}', '{"a":01}', '{"a":1,}', "[1]", '{"a":"\t"}',
                               '{"a":nul}', '{"a" 1}', '{a:1}', '{"a":.5}', '{"a":"\\x"}'])
        return text.encode()

    def make_file(self):
        rng = self.rng
        lines = []
        if self.header and rng.random() < 0.97:
            names = list(self.names)
            rng.shuffle(names)
            if self.form == "blanks":
                names = [n for n in names if b" " not in n]
            if self.form == "csv":
                names = [b'"' + n.replace(b'"', b'""') + b'"' if b'"' in n or rng.random() < 0.2
                         else n for n in names]
            lines.append((self.separator or b" ").join(names))
        for _ in range(rng.choice([0, 1, 5, 40])):
            line = self.json_line() if self.form == "json" else self.text_line()
            if self.form != "csv":
                line = line.replace(self.end, b"")
            lines.append(line + (b"\r" if rng.random() < 0.2 else b""))
        data = self.end.join(lines)
        return data + self.end if lines and rng.random() < 0.9 else data

    # ---- the model ----

    def records(self, data, number=1):
        """Lines with the number of the first of their line ends."""
        lines, start = [], 0
        place = "start"
        for at in range(len(data)):
            c = data[at:at + 1]
            if c == self.end and not (self.form == "csv" and place == "quotes"):
                lines.append((number, data[start:at]))
                number += data[start:at].count(self.end) + 1 if self.form == "csv" else 1
                start, place = at + 1, "start"
            elif place == "quotes":
                place = "quote" if c == b'"' else "quotes"
            elif place in ("quote", "start") and c == b'"':
                place = "quotes"
            else:
                place = "start" if c == self.separator else "field"
        if start < len(data):
            lines.append((number, data[start:]))
        return lines

    def open_quote(self, line):
        """Where a quote opens that is never closed, or None."""
        place, opened = "start", 0
        for at in range(len(line)):
            c = line[at:at + 1]
            opened = at if place == "start" else opened
            if place == "quotes":
                place = "quote" if c == b'"' else "quotes"
            elif place in ("quote", "start") and c == b'"':
                place = "quotes"
            else:
                place = "start" if c == self.separator else "field"
        return opened if place == "quotes" else None

    def left_out(self, number, line, after):
        """Leave a broken line out; if a quote is never closed, go on after its line."""
        opened = self.open_quote(line) if self.form == "csv" else None
        stop = line.find(self.end, opened) if opened is not None else -1
        if stop >= 0:
            number += line[:stop].count(self.end) + 1
            after[:0] = self.records(line[stop + 1:], number)
            line = line[:stop]
        self.skipped[1] += line.count(self.end) + 1 if self.form == "csv" else 1

    def fields(self, line):
        if self.form == "csv":
            return csv_fields(line, self.separator)
        if self.form == "blanks":
            return [f for f in line.replace(b"\t", b" ").split(b" ") if f]
        return line.split(self.separator)

    def value(self, field):
        value = unquoted(field) if self.form == "csv" else field
        value = value.strip(SPACE) if self.trim else value
        return value.lower() if self.fold else value

    def strip_cr(self, line):
        crlf = self.crlf or self.form == "csv"
        return line[:-1] if crlf and line.endswith(b"\r") else line

    def key(self, line, columns):
        line = self.strip_cr(line)
        if self.form == "json":
            values = []
            lacking = wrong = False
            for path in self.paths:
                try:
                    value = json_value(line, path)
                except Missing:
                    if self.missing != "empty":
                        raise
                    value = b""
                values.append(self.json_form(value))
            return tuple(values) if len(values) > 1 else values[0]
        fields = self.fields(line) if columns or self.form == "csv" else None
        if not columns:
            value = line.strip(SPACE) if self.trim else line
            return value.lower() if self.fold else value
        values = []
        for first, last in columns:
            n = len(fields)
            first = first + n + 1 if first < 0 else first
            last = last + n + 1 if last < 0 else last
            if not (1 <= first <= last <= n):
                if self.missing != "empty":
                    raise Missing
                last = max(first, last)
            values += [self.value(fields[i - 1]) if 1 <= i <= n else b""
                       for i in range(first, last + 1)]
        single = len(columns) == 1 and self.columns[0] is not None and (
            isinstance(self.columns[0], bytes) or self.columns[0][0] == self.columns[0][1])
        return values[0] if single else tuple(values)

    def json_form(self, value):
        value = value.strip(SPACE) if self.trim else value
        return value.lower() if self.fold else value

    def read(self, data):
        """Header, [(number, line, key)], and the number of the wrong line or None; and
        how many lines lack their key and are broken, if they are left out."""
        self.skipped = [0, 0]
        return self.read_lines(data) + (self.skipped,)

    def read_lines(self, data):
        lines, header, out = self.records(data), None, []
        columns = None if self.form == "json" else self.columns
        if self.header and lines:
            header = lines.pop(0)[1]
            names = []
            try:
                names = [self.value_of_name(f) for f in self.fields(self.strip_cr(header))]
            except Wrong:
                return header, out, 1
            numbers = []
            for c in columns:
                if isinstance(c, bytes):
                    if names.count(c) != 1:
                        return header, out, 1
                    c = (names.index(c) + 1,) * 2
                numbers.append(c)
            columns = numbers
        elif columns and not lines:
            columns = []
        while lines:
            number, line = lines.pop(0)
            try:
                out.append((number, line, self.key(line, columns)))
            except Missing:
                if self.missing == "error":
                    return header, out, number
                self.skipped[0] += 1
            except Wrong:
                if self.invalid == "error":
                    return header, out, number
                self.left_out(number, line, lines)
        return header, out, None

    def value_of_name(self, field):
        value = unquoted(field) if self.form == "csv" else field
        return value.strip(SPACE) if self.trim else value


def lower_ascii_only():
    """bytes.lower() changes A to Z only, as -i does."""
    assert bytes(range(256)).lower() == bytes(
        b + 32 if 65 <= b <= 90 else b for b in range(256))


def run(calyx, words, stdin=None):
    done = subprocess.run([calyx] + words, input=stdin, capture_output=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def no_key(model):
    """All lines of a file were left out, which is an error."""
    return not model[1] and sum(model[3]) > 0


def expect(case, what, same, words, got):
    if same:
        return
    print("%s: %s\nargs %r\ngot %r" % (case, what, words, got), file=sys.stderr)
    sys.exit(1)


def main():
    calyx, folder, cases, seed = sys.argv[1:]
    os.chdir(folder)
    lower_ascii_only()
    wrong_seen = skipped_seen = broken_seen = empty_seen = 0
    for number in range(int(cases)):
        rng = random.Random("%s %d" % (seed, number))
        case = Case(rng)
        datas = [case.make_file(), case.make_file()]
        packed = rng.random() < 0.2
        for name, data in zip("ab", datas):
            with (gzip.open if packed else open)(name, "wb") as file:
                file.write(data)
        models = [case.read(data) for data in datas]
        options = case.options() + ["--no-progress", "-j", rng.choice(["1", "3"]),
                                    "--json-stats", "figures"]
        verb = rng.choice(["dedup", "minus", "common", "check", "approx"])
        # the last two: keys by hashes, in several passes, and spilled ones
        budget = rng.choice(["16000000", "16000000", "4000", "500"])
        os.environ["CALYX_TEST_BUDGET"] = budget if verb != "approx" else "16000000"
        words = {"dedup": ["dedup", "a"], "minus": ["minus", "a", "b"],
                 "common": ["common", "a", "b"], "approx": ["dedup", "--approx=1e-9", "a"],
                 "check": ["build", "-p", "1e-9", "--force", "-o", "f", "b"]}[verb] + options
        read = models[:1] if verb in ("dedup", "approx") else models
        if verb == "check":
            status, out, err = run(calyx, words)
            wanted = models[1][2] is not None or no_key(models[1])
            expect(number, "status of build", (status == 2) == wanted,
                   words, (status, err, datas))
            expect(number, "a filter", os.path.exists("f") != wanted, words, (status, err))
            if status:
                wrong_seen += 1
                continue
            os.rename("f", "g")
            words = ["check", "-f", "g", "a"] + options
            if not case.options():
                continue
            read = models[:1]
        status, out, err = run(calyx, words)
        wrong = [(name, model[2]) for name, model in zip("ab", read) if model[2] is not None]
        if wrong:
            wrong_seen += 1
            expect(number, "an error is wanted at one of %r" % wrong,
                   status == 2 and (any(b" %s:%d: " % (n.encode(), l) in err for n, l in wrong)
                                    or any(map(no_key, read)) and b": no line has a key" in err),
                   words, (status, out, err, datas))
            continue
        if any(map(no_key, read)):
            empty_seen += 1
            expect(number, "all lines of a file are left out",
                   status == 2 and b": no line has a key: of " in err and out == b"",
                   words, (status, out, err, datas))
            continue
        expect(number, "an error", status in (0, 1), words, (status, err, datas))
        header, lines = models[0][:2]
        if header is None and verb in ("common", "minus"):
            header = models[1][0]
        there = {key for _, _, key in models[1][1]}
        wanted, seen = [], set()
        for _, line, key in lines:
            chosen = {"dedup": key not in seen, "approx": key not in seen,
                      "minus": key not in there, "check": key in there,
                      "common": key in there and key not in seen}[verb]
            seen.add(key)
            if chosen:
                wanted.append(line)
        if header is not None:
            wanted.insert(0, header)
        text = b"".join(line + case.end for line in wanted)
        expect(number, "wanted %r" % text, out == text, words, (status, out, err, datas))
        skipped = [sum(model[3][i] for model in read) for i in (0, 1)]
        with open("figures", encoding="ascii") as file:
            figures = json.load(file)
        if "skip" in (case.missing, case.invalid):
            expect(number, "skipped lines %r" % skipped, skipped == [
                figures["skipped_missing"], figures["skipped_invalid"]], words, figures)
        mostly = any(sum(m[3]) > len(m[1]) for m in read)
        expect(number, "a warning if more than half are left out",
               (b"lines were left out: " in err) == mostly, words, (err, datas))
        skipped_seen += skipped[0] > 0
        broken_seen += skipped[1] > 0
    print("%s cases, %d with an error, %d with skipped lines, %d with broken ones left out, "
          "%d with no line left" % (cases, wrong_seen, skipped_seen, broken_seen, empty_seen))


main()
