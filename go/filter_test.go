package calyx_test

import (
	"bytes"
	"calyx"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// made returns what a call made, or ends the test.
func made[thing any](it thing, err error) func(t *testing.T) thing {
	return func(t *testing.T) thing {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
}

func check(t *testing.T, is bool, what ...any) {
	t.Helper()
	if !is {
		t.Error(what...)
	}
}

func texts(name string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s/%d", name, i)
	}
	return all
}

func passed(found []bool) int {
	n := 0
	for _, is := range found {
		if is {
			n++
		}
	}
	return n
}

// addable returns a filter of each kind that keys can be added to.
func addable(t *testing.T, n uint64) map[string]*calyx.Filter {
	all := make(map[string]*calyx.Filter)
	for _, kind := range calyx.Kinds() {
		if calyx.KindCan(kind)&calyx.CanAdd != 0 {
			all[kind] = made(calyx.NewWith(calyx.Options{Kind: kind, Capacity: n}))(t)
		}
	}
	return all
}

func TestAStringItsBytesAndANumberAreKeys(t *testing.T) {
	for kind, f := range addable(t, 1000) {
		fresh := made(f.AddString("rose"))(t)
		check(t, fresh, kind, "has a key that was never added")
		fresh = made(f.AddBytes([]byte("rose")))(t)
		check(t, !fresh, kind, "does not know the bytes of a string")
		made(f.AddNumber(0x0807060504030201))(t)
		check(t, f.ExistsBytes([]byte{1, 2, 3, 4, 5, 6, 7, 8}), kind, "number")
		check(t, !f.ExistsString(""), kind, "has the empty key before")
		made(f.AddBytes(nil))(t)
		check(t, f.ExistsString(""), kind, "forgot the empty key")
	}
}

func TestManyKeysAnswerAsSingleOnes(t *testing.T) {
	const n = 5000 // several blocks
	in, out := texts("in", n), texts("out", n)
	in[7] = strings.Repeat("long", 100_000) // more than a block holds
	for kind, f := range addable(t, 2*n) {  // for both: some kinds are full then
		fresh := made(f.AddStrings(in))(t)
		check(t, fresh > n*9/10, kind, fresh)
		check(t, passed(f.ExistsStrings(in)) == n, kind, "forgot keys")
		slices := make([][]byte, n)
		for i, text := range out {
			slices[i] = []byte(text)
		}
		found := f.ExistsByteSlices(slices)
		for i, text := range out {
			check(t, found[i] == f.ExistsString(text), kind, text)
		}
		// 1 % of 5000 is 50; one in 10^9 runs has more than 110
		check(t, passed(found) <= 110, kind, passed(found))
		made(f.AddByteSlices(slices))(t)
		check(t, passed(f.ExistsStrings(out)) == n, kind, "forgot slices")
	}
}

func TestManyNumbersAnswerAsSingleOnes(t *testing.T) {
	numbers := make([]uint64, 200_000) // several locks
	for i := range numbers {
		numbers[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	for kind, f := range addable(t, uint64(len(numbers))) {
		made(f.AddNumbers(numbers))(t)
		check(t, passed(f.ExistsNumbers(numbers)) == len(numbers), kind, "forgot numbers")
		check(t, f.ExistsNumber(numbers[99]), kind)
		check(t, len(f.ExistsNumbers(nil)) == 0 && len(f.ExistsStrings(nil)) == 0, kind)
		made(f.AddNumbers(nil))(t)
	}
}

func TestResetForgetsAllKeys(t *testing.T) {
	for kind, f := range addable(t, 1000) {
		made(f.AddStrings(texts("key", 100)))(t)
		check(t, f.Number() > 90, kind, f.Number())
		made(0, f.Reset())(t)
		check(t, f.Number() == 0 && !f.ExistsString("key/1"), kind)
	}
}

func TestKeysCanBeRemovedFromKindsThatCan(t *testing.T) {
	for kind, f := range addable(t, 1000) {
		made(f.AddString("rose"))(t)
		made(f.AddNumber(7))(t)
		found, err := f.RemoveString("rose")
		if calyx.KindCan(kind)&calyx.CanRemove == 0 {
			check(t, errors.Is(err, calyx.ErrCannot), kind, err)
			continue
		}
		check(t, found && err == nil && !f.ExistsString("rose"), kind, err)
		check(t, f.CountBytes([]byte{7, 0, 0, 0, 0, 0, 0, 0}) == 1, kind)
		check(t, f.CountNumber(7) == 1 && f.CountString("rose") == 0, kind)
		made(f.RemoveNumber(7))(t)
		check(t, f.Number() == 0, kind)
	}
}

func TestGoroutinesLoseNoKey(t *testing.T) {
	const each, many = 2000, 8
	for kind, f := range addable(t, each*many) {
		var all sync.WaitGroup
		for i := 0; i < many; i++ {
			all.Add(1)
			go func(i int) {
				defer all.Done()
				keys := texts(fmt.Sprint(i), each)
				if i%2 == 0 {
					made(f.AddStrings(keys))(t)
				} else {
					for _, key := range keys {
						made(f.AddString(key))(t)
						f.Number()
					}
				}
				check(t, passed(f.ExistsStrings(keys)) == each, kind, "forgot keys")
			}(i)
		}
		all.Wait()
		for i := 0; i < many; i++ {
			found := passed(f.ExistsStrings(texts(fmt.Sprint(i), each)))
			check(t, found == each, kind, "forgot", each-found)
		}
	}
}

func TestGoroutinesMayResetCloseAndMerge(t *testing.T) {
	a, b := made(calyx.New(1000, 0.01))(t), made(calyx.New(1000, 0.01))(t)
	made(b.AddString("rose"))(t)
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for k := uint64(0); k < 200; k++ {
				if _, err := a.AddNumber(k); errors.Is(err, calyx.ErrClosed) {
					return
				}
				if i == 0 {
					_ = a.Merge(b)
				} else if i == 1 {
					_ = b.Merge(a)
				}
				if k == 100 && i == 2 {
					_ = a.Reset()
				}
				if k == 150 && i == 3 {
					_ = a.Close()
				}
			}
		}(i)
	}
	all.Wait()
	_, err := a.AddNumber(1)
	check(t, errors.Is(err, calyx.ErrClosed), err)
	check(t, b.ExistsString("rose"), "a merge forgot a key")
}

func TestAClosedFilterSaysSo(t *testing.T) {
	f := made(calyx.New(1000, 0.01))(t)
	made(0, f.Close())(t)
	made(0, f.Close())(t)
	for _, err := range []error{f.Reset(), f.Save("x"), f.Health()} {
		check(t, errors.Is(err, calyx.ErrClosed), err)
	}
	defer func() { check(t, recover() == calyx.ErrClosed, "no panic") }()
	f.ExistsString("rose")
}

func TestErrorsSayWhatWasWanted(t *testing.T) {
	_, err := calyx.New(0, 0.01)
	check(t, errors.Is(err, calyx.ErrBadArgument), err)
	_, err = calyx.New(1000, 2)
	check(t, err != nil && strings.Contains(err.Error(), "fpr"), err)
	_, err = calyx.NewWith(calyx.Options{Kind: "rosebush", Capacity: 10})
	check(t, err != nil && strings.Contains(err.Error(), "rosebush"), err)
	_, err = calyx.NewWith(calyx.Options{Capacity: 10, Key: []byte("short")})
	check(t, errors.Is(err, calyx.ErrBadArgument), err)
	_, err = calyx.Open(filepath.Join(t.TempDir(), "none.calyx"))
	check(t, errors.Is(err, fs.ErrNotExist) && errors.Is(err, calyx.ErrIO), err)
	_, err = calyx.Open("a\x00b")
	check(t, errors.Is(err, calyx.ErrBadArgument), err)

	f := made(calyx.NewWith(calyx.Options{Capacity: 100, Strict: true}))(t)
	fresh, err := f.AddStrings(texts("key", 100_000))
	check(t, errors.Is(err, calyx.ErrFull) && fresh >= 90 && fresh <= 400, fresh, err)
	numbers := make([]uint64, 1000)
	_, err = f.AddNumbers(append(numbers, 99, 98))
	check(t, errors.Is(err, calyx.ErrFull), err)
}

func TestAFileIsSharedChangedAndKnownToTheCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.calyx")
	f := made(calyx.New(1000, 0.01))(t)
	made(f.AddString("rose"))(t)
	made(0, f.Save(path))(t)

	read := made(calyx.Open(path))(t)
	check(t, read.ExistsString("rose") && !read.ExistsString("tulip"), "wrong answers")
	_, err := read.AddString("tulip")
	check(t, errors.Is(err, calyx.ErrReadOnly), err)
	made(0, read.Verify())(t)

	write := made(calyx.OpenWith(path, calyx.OpenOptions{Write: true}))(t)
	made(write.AddString("tulip"))(t)
	made(0, write.Sync())(t)
	made(0, write.Close())(t)
	check(t, read.ExistsString("tulip"), "not shared")
	copied := made(calyx.Load(path, calyx.OpenOptions{}))(t)
	made(copied.AddString("iris"))(t)
	check(t, copied.ExistsString("tulip") && !read.ExistsString("iris"), "not a copy")

	command := os.Getenv("CALYX")
	if command == "" {
		t.Skip("CALYX does not name the command")
	}
	check := exec.Command(command, "check", "-f", path)
	check.Stdin = strings.NewReader("rose\nviolet\ntulip\n")
	answer, err := check.Output()
	if string(answer) != "rose\ntulip\n" {
		t.Error(string(answer), err)
	}
}

func TestFilesOfEveryKindAreLoadedToAdd(t *testing.T) {
	for kind, f := range addable(t, 1000) {
		path := filepath.Join(t.TempDir(), "ids.calyx")
		made(0, f.Save(path))(t)
		g := made(calyx.Load(path, calyx.OpenOptions{}))(t)
		made(g.AddString("rose"))(t)
		check(t, g.ExistsString("rose"), kind)
	}
}

func TestADamagedFileIsRefusedOrSaysYes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.calyx")
	f := made(calyx.New(1000, 0.01))(t)
	made(f.AddString("rose"))(t)
	made(0, f.Save(path))(t)
	content := made(os.ReadFile(path))(t)
	content[len(content)-1] ^= 1
	content[len(content)/2] ^= 1
	made(0, os.WriteFile(path, content, 0o600))(t)

	_, err := calyx.OpenWith(path, calyx.OpenOptions{Verify: calyx.VerifyWhole})
	check(t, errors.Is(err, calyx.ErrDamaged), err)
	lazy, err := calyx.Open(path)
	if err == nil { // the damage is in the bits
		check(t, lazy.ExistsString("rose") && lazy.ExistsString("tulip"), "a no from damaged bits")
		check(t, errors.Is(lazy.Health(), calyx.ErrDamaged), lazy.Health())
	}
	var g calyx.Filter
	check(t, g.UnmarshalBinary(content) != nil && g.UnmarshalBinary(nil) != nil, "damaged bytes")
}

func TestASecretKeyIsNeededToOpenAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.calyx")
	secret := []byte("0123456789abcdef")
	f := made(calyx.NewWith(calyx.Options{Capacity: 100, Hash: "siphash", Key: secret}))(t)
	made(f.AddString("rose"))(t)
	made(0, f.Save(path))(t)
	_, err := calyx.Open(path)
	check(t, errors.Is(err, calyx.ErrWrongKey), err)
	g := made(calyx.OpenWith(path, calyx.OpenOptions{Key: secret}))(t)
	check(t, g.ExistsString("rose"), "forgot a key")
}

func TestFiltersTravelByGob(t *testing.T) {
	f := made(calyx.New(1000, 0.01))(t)
	made(f.AddString("rose"))(t)
	var wire bytes.Buffer
	made(0, gob.NewEncoder(&wire).Encode(f))(t)
	var g calyx.Filter
	made(0, gob.NewDecoder(&wire).Decode(&g))(t)
	made(g.AddString("tulip"))(t)
	check(t, g.ExistsString("rose") && g.Number() == 2, "not the same")
}

func TestFiltersTravelAsJSONInAStruct(t *testing.T) {
	type settings struct {
		Name  string
		Known *calyx.Filter
	}
	for kind, f := range addable(t, 1000) {
		made(f.AddString("rose"))(t)
		text := made(json.Marshal(settings{"flowers", f}))(t)
		var back settings
		made(0, json.Unmarshal(text, &back))(t)
		check(t, back.Known.ExistsString("rose") && back.Known.Number() == 1, kind)
		made(back.Known.AddString("tulip"))(t)
	}
	var g calyx.Filter
	for _, wrong := range []string{`"AAAA"`, `"not base64"`, `{}`, `""`} {
		check(t, json.Unmarshal([]byte(wrong), &g) != nil, wrong)
	}
	closed := made(calyx.New(1000, 0.01))(t)
	made(0, closed.Close())(t)
	_, err := json.Marshal(closed)
	check(t, errors.Is(err, calyx.ErrClosed), err)
}

func TestFiltersAreWrittenAndRead(t *testing.T) {
	f := made(calyx.New(1000, 0.01))(t)
	made(f.AddString("rose"))(t)
	var stream bytes.Buffer
	wrote := made(f.WriteTo(&stream))(t)
	check(t, int(wrote) == stream.Len(), wrote)
	var g calyx.Filter
	read := made(g.ReadFrom(&stream))(t)
	check(t, read == wrote && g.ExistsString("rose") && !g.ExistsString("tulip"), read)
	_, err := g.ReadFrom(strings.NewReader("no filter"))
	check(t, errors.Is(err, calyx.ErrDamaged) && g.ExistsString("rose"), err)
}

func TestACopyIsAFilterOfItsOwn(t *testing.T) {
	for kind, f := range addable(t, 1000) {
		made(f.AddString("rose"))(t)
		g := made(f.Copy())(t)
		made(g.AddString("tulip"))(t)
		check(t, g.ExistsString("rose") && !f.ExistsString("tulip"), kind)
	}
}

func TestMergeJoinsFiltersOfOneShape(t *testing.T) {
	f := made(calyx.New(1000, 0.01))(t)
	g := made(calyx.New(1000, 0.01))(t)
	made(g.AddString("rose"))(t)
	made(0, f.Merge(g))(t)
	made(0, f.Merge(f))(t)
	check(t, f.ExistsString("rose"), "not merged")
	check(t, errors.Is(f.Merge(made(calyx.New(9000, 0.01))(t)), calyx.ErrMismatch), "other size")
}

func TestABuilderMakesEveryKind(t *testing.T) {
	const n = 3000
	for _, kind := range calyx.Kinds() {
		b := made(calyx.NewBuilder(calyx.BuilderOptions{
			Options: calyx.Options{Kind: kind}, Folder: t.TempDir()}))(t)
		made(0, b.AddStrings(texts("key", n)...))(t)
		made(0, b.AddByteSlices([]byte("rose"), nil))(t)
		made(0, b.AddNumbers(1, 2, 3))(t)
		made(0, b.AddNumbers())(t)
		f := made(b.Finish())(t)
		check(t, passed(f.ExistsStrings(texts("key", n))) == n, kind, "forgot keys")
		check(t, f.ExistsString("rose") && f.ExistsString("") && f.ExistsNumber(3), kind)
		check(t, passed(f.ExistsStrings(texts("out", n))) < n/20, kind, "passes others")
		path := filepath.Join(t.TempDir(), "built.calyx")
		made(0, b.Save(path))(t)
		check(t, made(calyx.Open(path))(t).Number() == f.Number(), kind)
		made(0, b.Close())(t)
		check(t, errors.Is(b.AddNumbers(1), calyx.ErrClosed), kind)
	}
}

func TestAPlanIsWhatIsMade(t *testing.T) {
	for kind, f := range addable(t, 12345) {
		plan := made(calyx.Plan(calyx.Options{Kind: kind, Capacity: 12345}))(t)
		info := f.Info()
		check(t, plan.Bytes == info.Bytes && plan.Kind == kind && plan.Rate == info.Rate, kind)
		check(t, plan.Can == calyx.KindCan(kind), kind)
	}
	check(t, calyx.KindCan("rosebush") == 0, "a kind that is none")
	check(t, calyx.Version() != "" && len(calyx.Hashes()) > 1, "nothing built in")
}

func TestAFilterThatGrowsHasARandomSeedUnlessOneIsGiven(t *testing.T) {
	seed := func(o calyx.Options) uint64 { return made(calyx.NewWith(o))(t).Info().Seed }
	grows := calyx.Options{Growth: 2}
	check(t, seed(grows) != seed(grows), "equal once in 2^64 runs")
	check(t, seed(calyx.Options{Growth: 2, Seeded: true}) == 0, "seed 0 is not taken")
	check(t, seed(calyx.Options{Growth: 2, Seed: 5}) == 5, "seed 5 is not taken")
	check(t, seed(calyx.Options{Capacity: 100}) == 0, "a fixed size has another seed")
}

func TestFiltersThatNobodyUsesAreFreed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.calyx")
	f := made(calyx.New(1000, 0.01))(t)
	made(0, f.Save(path))(t)
	// A writer that nobody closes locks the file until it is collected.
	made(made(calyx.OpenWith(path, calyx.OpenOptions{Write: true}))(t).AddNumber(1))(t)
	for {
		runtime.GC()
		again, err := calyx.OpenWith(path, calyx.OpenOptions{Write: true})
		if err == nil {
			made(0, again.Close())(t)
			break
		}
		runtime.Gosched()
	}
	check(t, made(calyx.Open(path))(t).ExistsNumber(1), "forgot a number")
}
