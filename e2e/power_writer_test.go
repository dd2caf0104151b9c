package e2e_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// powerWriterEnv makes this test binary a writer to a SQLite file: PATH
// SYNCHRONOUS. It inserts a row for each line that it reads, and reports each
// committed one.
const powerWriterEnv = "SIGNALBOX_E2E_POWER_WRITER"

func openRows(path, synchronous string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{
		"PRAGMA journal_mode = wal", "PRAGMA synchronous = " + synchronous, "CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY, pad TEXT)",
	} {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", sql, err), conn.Close())
		}
	}
	return conn, nil
}

func servePowerWriter(spec string) error {
	path, synchronous, _ := strings.Cut(spec, " ")
	conn, err := openRows(path, synchronous)
	if err != nil {
		return err
	}
	defer conn.Close()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		err := sqlitex.Execute(conn, "INSERT INTO rows VALUES (?, ?)", &sqlitex.ExecOptions{Args: []any{lines.Text(), strings.Repeat("x", 200)}})
		if err != nil {
			return err
		}
		fmt.Println(lines.Text())
	}
	return nil
}
