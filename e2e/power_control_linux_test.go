package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// The controls of the power cuts: a writer that only commits rows one after
// another, once with the setting that the director requires, and once with a
// faster one that guarantees less. The second must lose acknowledged rows.
// Otherwise the cuts would not be real, and the other tests would prove
// nothing.

// careless is a control.
type careless struct {
	// settings that must keep everything, and that must lose something.
	safe, unsafe string
	// begin creates the store on a disk. It returns functions that write row n,
	// end the store's processes, and restart them and count the rows.
	begin func(t *testing.T, disk *powerDisk, setting string) (write func(n int) error, kill func(), count func() int)
}

func TestPowerCutsLoseWhatSQLiteDidNotSync(t *testing.T) {
	careless{"FULL", "NORMAL", beginSQLite}.cut(t)
}

func TestPowerCutsLoseWhatPostgresDidNotSync(t *testing.T) {
	careless{"on", "off", beginPostgres}.cut(t)
}

func TestPowerCutsLoseWhatRedisDidNotSync(t *testing.T) {
	careless{"always", "everysec", beginRedis}.cut(t)
}

func (c careless) cut(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{c.safe, c.unsafe} {
		t.Run(setting, func(t *testing.T) {
			disk := newPowerDisk(t, 512)
			write, kill, count := c.begin(t, disk, setting)
			disk.settle()
			rows, lost, lossy, cuts := 0, 0, 0, 0
			for cuts < powerCuts() || setting == c.unsafe && lost == 0 && cuts < 12 {
				cuts++
				for range 50 + cuts*37%100 {
					if err := write(rows); err != nil {
						t.Fatal(err)
					}
					rows++
				}
				disk.cut()
				kill()
				disk.back()
				have := count()
				if have < rows {
					lossy++
					lost += rows - have
				}
				rows = have // the next ones follow the existing rows
			}
			t.Logf("%s: %d of %d cuts lost something, %d acknowledged rows in all", setting, lossy, cuts, lost)
			if setting == c.safe && lost > 0 {
				t.Errorf("%d rows that were acknowledged with %s are gone", lost, setting)
			}
			if setting == c.unsafe && lost == 0 {
				t.Errorf("%d cuts lost nothing with %s: such cuts prove nothing", cuts, setting)
			}
		})
	}
}

func beginSQLite(t *testing.T, disk *powerDisk, synchronous string) (func(n int) error, func(), func() int) {
	path := filepath.Join(disk.dir, "rows.db")
	var child *exec.Cmd
	var said *bufio.Scanner
	var ask *os.File
	start := func() {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		child = exec.Command(self)
		child.Env = append(os.Environ(), powerWriterEnv+"="+path+" "+synchronous)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		said = bufio.NewScanner(out)
		end, ours, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer end.Close()
		child.Stdin, ask = end, ours
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
	}
	kill := func() {
		if child == nil {
			return
		}
		ask.Close()
		_ = child.Process.Kill()
		_ = child.Wait()
		child = nil
	}
	t.Cleanup(kill)
	write := func(n int) error {
		if child == nil {
			start()
		}
		if _, err := fmt.Fprintln(ask, n); err != nil {
			return err
		}
		if !said.Scan() || said.Text() != strconv.Itoa(n) {
			return fmt.Errorf("row %d was not committed: %q", n, said.Text())
		}
		return nil
	}
	if err := write(-1); err != nil { // so that the file exists before the disk settles
		t.Fatal(err)
	}
	return write, kill, func() (n int) {
		conn, err := openRows(path, synchronous)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		err = sqlitex.Execute(conn, "SELECT count(*) FROM rows WHERE n >= 0", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			n = s.ColumnInt(0)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func beginPostgres(t *testing.T, disk *powerDisk, synchronous string) (func(n int) error, func(), func() int) {
	server := testserver.NewPostgres(t, testserver.PostgresOptions{Folder: disk.dir, Settings: map[string]string{"synchronous_commit": synchronous, "shared_buffers": "16MB"}})
	if err := server.Exec("postgres", "CREATE TABLE rows (n int PRIMARY KEY)", "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	var conn *pgx.Conn
	write := func(n int) (err error) {
		if conn == nil {
			if conn, err = pgx.Connect(t.Context(), server.URL("postgres")); err != nil {
				return err
			}
		}
		_, err = conn.Exec(t.Context(), "INSERT INTO rows VALUES ($1)", n)
		return err
	}
	kill := func() {
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if conn != nil {
			_ = conn.Close(context.Background())
			conn = nil
		}
	}
	t.Cleanup(func() {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	})
	return write, kill, func() int {
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		got, err := server.Query("postgres", "SELECT count(*)::text FROM rows")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(got[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func beginRedis(t *testing.T, disk *powerDisk, fsync string) (func(n int) error, func(), func() int) {
	server := testserver.NewRedis(t, testserver.RedisOptions{Folder: disk.dir, Settings: []string{"appendfsync " + fsync}})
	var conn net.Conn
	var answers *bufio.Reader
	ask := func(line string) (string, error) {
		if conn == nil {
			c, err := net.DialTimeout("tcp", server.Addr(), 10*time.Second)
			if err != nil {
				return "", err
			}
			conn, answers = c, bufio.NewReader(c)
		}
		if _, err := fmt.Fprintf(conn, "%s\r\n", line); err != nil {
			return "", err
		}
		answer, err := answers.ReadString('\n')
		return strings.TrimSpace(answer), err
	}
	hangUp := func() {
		if conn != nil {
			conn.Close()
			conn = nil
		}
	}
	t.Cleanup(hangUp)
	write := func(n int) error {
		answer, err := ask(fmt.Sprintf("SET row%d 1", n))
		if err == nil && answer != "+OK" {
			err = fmt.Errorf("row %d: %s", n, answer)
		}
		return err
	}
	kill := func() {
		hangUp()
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	return write, kill, func() int {
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		answer, err := ask("DBSIZE")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimPrefix(answer, ":"))
		if err != nil {
			t.Fatalf("DBSIZE: %q", answer)
		}
		return n
	}
}
