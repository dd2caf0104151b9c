package testserver

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Schemas lends schemas of one database. Creating the tables of a store takes
// twice as long as opening it, so a returned schema is emptied and lent again:
// to a store it looks new.
type Schemas struct {
	// Server has the database Database.
	Server   *PostgresServer
	Database string
	// Keep is the table whose rows are kept: that of the applied migrations.
	Keep string

	mu   sync.Mutex
	conn *pgx.Conn // for emptying them; ends with the server
	made int
	free []string
}

// Schema is a borrowed schema.
type Schema struct {
	URL  string // of the database, with the parameter "schema"
	name string
	from *Schemas
}

// Borrow lends a schema that is empty or does not exist yet.
func (s *Schemas) Borrow() Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	var name string
	if n := len(s.free); n > 0 {
		name, s.free = s.free[n-1], s.free[:n-1]
	} else {
		s.made++
		name = fmt.Sprintf("lent_%d", s.made)
	}
	return Schema{s.Server.URL(s.Database) + "&schema=" + url.QueryEscape(name), name, s}
}

// Return empties the schema, which must no longer be in use.
func (l Schema) Return() error {
	s := l.from
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx := context.Background()
	if s.conn == nil {
		conn, err := pgx.Connect(ctx, s.Server.SocketURL(s.Database))
		if err != nil {
			return err
		}
		s.conn = conn
	}
	const empty = `DO $$ DECLARE one name; BEGIN
		FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = '%[1]s' AND tablename <> '%[2]s' LOOP
			EXECUTE format('DELETE FROM %%I.%%I', '%[1]s', one);
		END LOOP;
	END $$`
	if _, err := s.conn.Exec(ctx, fmt.Sprintf(empty, l.name, s.Keep)); err != nil {
		return fmt.Errorf("empty schema %s: %w", l.name, err)
	}
	s.free = append(s.free, l.name)
	return nil
}
