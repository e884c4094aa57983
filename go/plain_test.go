package calyx_test

import (
	"bufio"
	"bytes"
	"calyx"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// wire is a client as small as it can be, on one connection.
type wire struct {
	lock   sync.Mutex
	link   net.Conn
	reader *bufio.Reader
}

func (w *wire) reply() (any, error) {
	line, err := w.reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil || kind == ':' || n < 0 {
		return map[bool]any{true: n}[kind == ':'], err
	}
	if kind == '$' {
		bytes := make([]byte, n+2)
		_, err := io.ReadFull(w.reader, bytes)
		return string(bytes[:n]), err
	}
	all := make([]any, n)
	for i := range all {
		if all[i], err = w.reply(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// do is a calyx.Pipeline.
func (w *wire) do(_ context.Context, commands [][]any) ([]any, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	var all bytes.Buffer
	for _, words := range commands {
		fmt.Fprintf(&all, "*%d\r\n", len(words))
		for _, word := range words {
			text := fmt.Sprint(word)
			fmt.Fprintf(&all, "$%d\r\n%s\r\n", len(text), text)
		}
	}
	sent := make(chan error, 1)
	go func() {
		_, err := w.link.Write(all.Bytes())
		sent <- err
	}()
	replies := make([]any, len(commands))
	var failed error
	for i := range commands {
		reply, err := w.reply()
		if replies[i] = reply; err != nil && failed == nil {
			failed = err
		}
	}
	if err := <-sent; err != nil {
		return nil, err
	}
	return replies, failed
}

func (w *wire) one(t *testing.T, words ...any) any {
	replies, err := w.do(context.Background(), [][]any{words})
	if err != nil {
		t.Fatal(words, err)
	}
	return replies[0]
}

// serve starts a server without a module, and returns a client and a function that
// runs the command on keys. FOLDER in its words is a folder, SEEN the filter "seen".
func serve(t *testing.T) (*wire, func(given []string, words ...string) string) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil || os.Getenv("CALYX") == "" {
		t.Skip("no redis-server, or CALYX does not name the command")
	}
	folder := t.TempDir()
	socket := filepath.Join(folder, "s")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder)
	said, err := server.StdoutPipe()
	if err != nil || server.Start() != nil {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if strings.Contains(lines.Text(), "eady to accept") {
			break
		}
	}
	go io.Copy(io.Discard, said)
	link, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	calyx := func(given []string, words ...string) string {
		t.Helper()
		for i, word := range words {
			words[i] = strings.NewReplacer("SEEN", "redis+unix://"+socket+"?key=seen",
				"FOLDER", folder).Replace(word)
		}
		run := exec.Command(os.Getenv("CALYX"), words...)
		run.Stdin = strings.NewReader(strings.Join(append(given, ""), "\n"))
		var why bytes.Buffer
		run.Stderr = &why
		out, err := run.Output()
		if err != nil {
			t.Fatal(words, why.String())
		}
		return string(out)
	}
	return &wire{link: link, reader: bufio.NewReader(link)}, calyx
}

func openPlain(t *testing.T, client *wire) *calyx.PlainFilter {
	return made(calyx.OpenPlain(context.Background(), client.do, "seen", nil))(t)
}

func TestPlainFiltersAnswerAndTakeKeysAsTheFile(t *testing.T) {
	client, command := serve(t)
	ctx, keys := context.Background(), texts("key", 6000)
	for _, kind := range []string{"line", "line2", "flat", "ribbon", "grown"} {
		options := []string{"build", "--force", "-p", "1e-3", "-o", "FOLDER/a.calyx", "--kind", kind}
		if kind == "grown" {
			options = append(options[:7], "line", "-n", "100", "--growth", "2")
		}
		command(keys[:3000], options...)
		command(nil, "push", "--plain", "--swap", "--piece", "64KiB", "FOLDER/a.calyx", "SEEN")
		f := openPlain(t, client)
		found := made(f.HasMany(ctx, keys))(t)
		var selected []string
		for i, is := range found {
			if is {
				selected = append(selected, keys[i])
			}
		}
		out := command(keys, "check", "-f", "FOLDER/a.calyx")
		check(t, strings.Join(append(selected, ""), "\n") == out, kind)
		if kind != "line" && kind != "grown" {
			_, err := f.Add(ctx, "rose")
			check(t, errors.Is(err, calyx.ErrCannot), kind, err)
			continue
		}
		fresh := made(f.AddMany(ctx, keys[2000:5000]))(t)
		check(t, fresh > 1900 && fresh <= 2000, fresh)
		check(t, passed(made(f.HasMany(ctx, keys[:5000]))(t)) == 5000)
		command(nil, "pull", "--force", "-o", "FOLDER/b.calyx", "SEEN")
		out = command(keys[:5000], "check", "-f", "FOLDER/b.calyx")
		check(t, strings.Count(out, "\n") == 5000)
	}
	command([]string{"key/7"}, "allow", "FOLDER/a.calyx")
	command(nil, "push", "--plain", "--swap", "FOLDER/a.calyx", "SEEN")
	f := openPlain(t, client)
	check(t, fmt.Sprint(made(f.HasMany(ctx, keys[6:9]))(t)) == "[true false true]")
	_, err := f.Add(ctx, "rose")
	check(t, errors.Is(err, calyx.ErrCannot), err)
}

func TestWhatIsMissingOfAPlainFilterIsAnErrorAndNeverANo(t *testing.T) {
	client, command := serve(t)
	ctx := context.Background()
	_, err := calyx.OpenPlain(ctx, client.do, "seen", nil)
	check(t, errors.Is(err, calyx.ErrLost), err)
	command(texts("key", 100), "build", "-o", "FOLDER/a.calyx")
	command(nil, "push", "--plain", "FOLDER/a.calyx", "SEEN")
	f := openPlain(t, client)
	piece := client.one(t, "KEYS", "seen:*").([]any)[0]
	size := client.one(t, "STRLEN", piece).(int64)
	client.one(t, "DEL", piece)
	_, err = f.Has(ctx, "key/1")
	check(t, errors.Is(err, calyx.ErrLost), err)
	_, err = f.Add(ctx, "rose")
	check(t, errors.Is(err, calyx.ErrLost), err)
	check(t, client.one(t, "EXISTS", piece) == int64(0))
	client.one(t, "SETBIT", piece, int(8*size-1), 1) // as by a client that died
	_, err = f.Has(ctx, "key/1")
	check(t, errors.Is(err, calyx.ErrLost), err)
	command(nil, "push", "--plain", "--swap", "FOLDER/a.calyx", "SEEN")
	check(t, made(f.Has(ctx, "key/1"))(t))
	client.one(t, "FLUSHALL")
	_, err = f.Add(ctx, "rose")
	check(t, errors.Is(err, calyx.ErrLost), err)
}

func TestPlainFiltersLoseNothingOf16Goroutines(t *testing.T) {
	client, command := serve(t)
	ctx, keys := context.Background(), texts("key", 8500)
	command(nil, "build", "-n", "9000", "-p", "1e-6", "-o", "FOLDER/a.calyx")
	command(nil, "push", "--plain", "--piece", "64KiB", "FOLDER/a.calyx", "SEEN")
	f := openPlain(t, client)
	var all sync.WaitGroup
	var fresh [16]int
	for i := range fresh {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			fresh[i], _ = f.AddMany(ctx, keys[500*i:500*i+1000])
		}(i)
	}
	all.Wait()
	sum := 0
	for _, n := range fresh {
		sum += n
	}
	check(t, sum > 8490 && sum <= 8500, sum)
	check(t, passed(made(f.HasMany(ctx, keys))(t)) == 8500)
}
