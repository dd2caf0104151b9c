package testserver

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Command runs a command as the user with all rights, and returns its answer:
// a list as one value per line.
func (s *RedisServer) Command(args ...string) (string, error) {
	const patience = 10 * time.Second
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(context.Background(), "tcp", s.Addr())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	from := bufio.NewReader(conn)
	if s.options.Password != "" {
		user := s.options.User
		user = cmp.Or(user, "default")
		if _, err := ask(conn, from, []string{"AUTH", user, s.options.Password}); err != nil {
			return "", err
		}
	}
	return ask(conn, from, args)
}

func ask(to io.Writer, from *bufio.Reader, args []string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(to, b.String()); err != nil {
		return "", err
	}
	return answer(from)
}

// answer reads one RESP2 reply.
func answer(from *bufio.Reader) (string, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	kind, rest := line[:1], line[1:]
	switch kind {
	case "-":
		return "", fmt.Errorf("the server answers: %s", rest)
	case "$", "*":
	default:
		return rest, nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 {
		return "", err
	}
	if kind == "$" {
		b := make([]byte, n+2)
		_, err := io.ReadFull(from, b)
		return string(b[:n]), err
	}
	var list []string
	for range n {
		one, err := answer(from)
		if err != nil {
			return "", err
		}
		list = append(list, one)
	}
	return strings.Join(list, "\n"), nil
}
